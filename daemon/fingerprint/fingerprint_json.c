/* fingerprint_json.c: writes a fingerprint as schema/json/fingerprint.schema.json says.
 *
 * The layout follows the words of the design, not the struct: levels under "tlb", each group with
 * its SMs, the origin at the top, because it has to reach the last client.
 */
#include "fingerprint/fingerprint_json.h"

#include "base/hash.h"
#include "base/identity_json.h"
#include "base/json_builder.h"
#include "fingerprint/evidence_columns.h"
#include "fingerprint/evidence_json.h"
#include "fingerprint/kept_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* SM ids of one group, ascending. */
static json_t *group_sms_to_json(const struct sm_partition *p, uint32_t group)
{
    json_t *array = json_array();

    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++) {
        if (p->group_of_sm[sm] == group && !json_builder_append(&array, json_integer(sm)))
            break;
    }
    return array;
}

static json_t *partition_to_json(const struct sm_partition *p)
{
    json_t *array = json_array();

    for (uint32_t g = 0; g < p->group_count; g++) {
        if (!json_builder_append(&array, group_sms_to_json(p, g)))
            break;
    }
    return array;
}

static json_t *runs_to_json(const struct tlb_level *l)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < l->run_count; i++) {
        struct json_builder o;
        json_builder_begin(&o);
        json_builder_u64(&o, "ways", l->runs[i].ways);
        json_builder_u64(&o, "sets", l->runs[i].sets);
        if (!json_builder_append(&array, json_builder_end(&o)))
            break;
    }
    return array;
}

static json_t *level_to_json(const struct tlb_level *l)
{
    struct json_builder o;

    json_builder_begin(&o);
    json_builder_u64(&o, "level", l->level);
    json_builder_u32_maybe(&o, "entries", l->entries);
    json_builder_u64_maybe(&o, "entry_bytes", l->entry_bytes);
    json_builder_u64_maybe(&o, "page_bytes", l->page_bytes);
    json_builder_u64_maybe(&o, "reach_bytes", l->reach_bytes);
    json_builder_u64_maybe(&o, "onset_bytes", l->onset_bytes);
    json_builder_u64_maybe(&o, "saturation_bytes", l->saturation_bytes);
    json_builder_u32_maybe(&o, "sets", l->sets);
    json_builder_u32_maybe(&o, "ways", l->ways);
    if (l->run_count > 0)
        json_builder_value(&o, "set_sizes", runs_to_json(l));
    json_builder_u32_maybe(&o, "victim_entries", l->victim_entries);
    json_builder_text(&o, "replacement", replacement_name(l->replacement));
    json_builder_text(&o, "fill", fill_name(l->fill));
    json_builder_u32_maybe(&o, "entry_pages", l->entry_pages);
    json_builder_u64_maybe(&o, "tag_bytes", l->tag_bytes);
    json_builder_f64_maybe(&o, "miss_penalty_cycles", l->miss_penalty_cycles);
    json_builder_text(&o, "shared_by", shared_by_name(l->shared_by));
    if (l->sharing.group_count > 0)
        json_builder_value(&o, "groups", partition_to_json(&l->sharing));
    json_builder_f64_maybe(&o, "confidence", l->confidence);
    evidence_write(&o, evidence_level_names, l->evidence, LEVEL_EVIDENCE_COUNT);
    return json_builder_end(&o);
}

static json_t *beyond_to_json(const struct fingerprint *fp)
{
    struct json_builder o;

    json_builder_begin(&o);
    json_builder_u64(&o, "probed_bytes", fp->beyond.probed_bytes);
    json_builder_u64_maybe(&o, "reach_bytes", fp->beyond.reach_bytes);
    json_builder_f64_maybe(&o, "walk_cycles", fp->beyond.walk_cycles);
    return json_builder_end(&o);
}

static json_t *pages_to_json(const struct fingerprint *fp)
{
    struct json_builder o;

    json_builder_begin(&o);
    for (uint32_t a = 0; a < ALLOCATION_COUNT; a++)
        json_builder_u64_maybe(&o, allocation_name((enum allocation)a), fp->page_bytes[a]);
    return json_builder_end(&o);
}

static json_t *tlb_to_json(const struct fingerprint *fp)
{
    struct json_builder o;
    json_t *levels = json_array();

    for (uint32_t i = 0; i < fp->level_count; i++) {
        if (!json_builder_append(&levels, level_to_json(&fp->levels[i])))
            break;
    }
    json_builder_begin(&o);
    json_builder_value(&o, "levels", levels);
    json_builder_value(&o, "beyond", beyond_to_json(fp));
    json_builder_value(&o, "page_bytes", pages_to_json(fp));
    return json_builder_end(&o);
}

static bool group_has_sm_penalties(const struct topology *t, uint32_t g)
{
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++)
        if (t->partition.group_of_sm[sm] == g && IS_KNOWN(t->sm_miss_penalty_cycles[sm]))
            return true;
    return false;
}

/* In the order of "sms"; null where it is not known. */
static json_t *sm_penalties_to_json(const struct topology *t, uint32_t g)
{
    json_t *array = json_array();

    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++) {
        const struct maybe_f64 *const m = &t->sm_miss_penalty_cycles[sm];
        if (t->partition.group_of_sm[sm] == g &&
            !json_builder_append(&array, IS_KNOWN(*m) ? json_real(m->v) : json_null()))
            break;
    }
    return array;
}

static json_t *slow_to_json(const struct slow_pair *s)
{
    struct json_builder o;

    json_builder_begin(&o);
    json_builder_value(&o, "groups", json_pack("[i,i]", (int)s->groups[0], (int)s->groups[1]));
    json_builder_real(&o, "ratio", s->ratio);
    json_builder_text(&o, "cause", slow_cause_name(s->cause));
    return json_builder_end(&o);
}

static json_t *pairs_to_json(const struct group_pairs *p)
{
    struct json_builder o;
    json_t *slow = json_array();

    for (uint32_t i = 0; i < p->listed; i++) {
        if (!json_builder_append(&slow, slow_to_json(&p->slow[i])))
            break;
    }
    json_builder_begin(&o);
    json_builder_u64(&o, "measured", p->measured);
    json_builder_f64_maybe(&o, "worst_ratio", p->worst_ratio);
    if (IS_KNOWN(p->worst_ratio))
        json_builder_value(&o, "worst", json_pack("[i,i]", (int)p->worst[0], (int)p->worst[1]));
    json_builder_text(&o, "share_tlb", finding_name(p->share_tlb));
    json_builder_u64(&o, "slow_count", p->slow_count);
    json_builder_value(&o, "slow", slow);
    return json_builder_end(&o);
}

static json_t *group_to_json(const struct topology *t, uint32_t g)
{
    struct json_builder o;

    json_builder_begin(&o);
    json_builder_u64(&o, "id", g);
    json_builder_value(&o, "sms", group_sms_to_json(&t->partition, g));
    json_builder_f64_maybe(&o, "miss_penalty_cycles", t->groups[g].miss_penalty_cycles);
    json_builder_f64_maybe(&o, "random_read_gbps", t->groups[g].random_read_gbps);
    json_builder_f64_maybe(&o, "alone_gbps", t->groups[g].alone_gbps);
    json_builder_f64_maybe(&o, "beyond_gbps", t->groups[g].beyond_gbps);
    json_builder_u32_maybe(&o, "penalty_class", t->groups[g].penalty_class);
    json_builder_u32_maybe(&o, "speed_class", t->groups[g].speed_class);
    if (group_has_sm_penalties(t, g))
        json_builder_value(&o, "sm_miss_penalty_cycles", sm_penalties_to_json(t, g));
    return json_builder_end(&o);
}

static json_t *candidate_to_json(const uint16_t *sms, uint32_t count)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < count; i++) {
        if (!json_builder_append(&array, json_integer(sms[i])))
            break;
    }
    return array;
}

/* What each group lacks follows from its size; it is written for readers' sake, and never read. */
static json_t *lost_to_json(const struct topology *t, uint32_t g)
{
    struct json_builder o;

    json_builder_begin(&o);
    json_builder_u64(&o, "group", g);
    json_builder_u64(&o, "sms", t->nominal_group_sms.v - t->groups[g].sm_count);
    return json_builder_end(&o);
}

static json_t *disabled_to_json(const struct topology *t)
{
    const struct disabled_sms *const d = &t->disabled;
    json_t *candidates = json_array();
    json_t *lost = json_array();
    struct json_builder o;

    for (uint32_t i = 0; i < d->listed; i++) {
        if (!json_builder_append(&candidates, candidate_to_json(d->candidates[i], d->sm_count.v)))
            break;
    }
    for (uint32_t g = 0; IS_KNOWN(d->sm_count) && g < t->partition.group_count; g++) {
        if (t->groups[g].sm_count >= t->nominal_group_sms.v)
            continue;
        if (!json_builder_append(&lost, lost_to_json(t, g)))
            break;
    }
    json_builder_begin(&o);
    json_builder_u32_maybe(&o, "sm_count", d->sm_count);
    json_builder_u32_maybe(&o, "unit_sms", d->unit_sms);
    json_builder_u32_maybe(&o, "lost_groups", d->lost_groups);
    json_builder_value(&o, "by_group", lost);
    json_builder_text_or_null(&o, "signature", d->signature);
    json_builder_u32_maybe(&o, "candidate_count", d->candidate_count);
    json_builder_value(&o, "candidates", candidates);
    return json_builder_end(&o);
}

static json_t *topology_to_json(const struct topology *t)
{
    struct json_builder o;
    json_t *groups = json_array();

    for (uint32_t g = 0; g < t->partition.group_count; g++) {
        if (!json_builder_append(&groups, group_to_json(t, g)))
            break;
    }
    json_builder_begin(&o);
    json_builder_u32_maybe(&o, "level", t->level);
    json_builder_value(&o, "groups", groups);
    evidence_columns_write(&o, &evidence_columns_groups, t->groups[0].evidence,
                           t->partition.group_count);
    json_builder_u32_maybe(&o, "nominal_group_sms", t->nominal_group_sms);
    json_builder_u32_maybe(&o, "full_sm_count", t->full_sm_count);
    json_builder_value(&o, "disabled", disabled_to_json(t));
    json_builder_f64_maybe(&o, "confidence", t->confidence);
    json_builder_u32_maybe(&o, "penalty_classes", t->penalty_classes);
    json_builder_u32_maybe(&o, "speed_classes", t->speed_classes);
    json_builder_text(&o, "speed_follows_sms", finding_name(t->speed_follows_sms));
    json_builder_value(&o, "pairs", pairs_to_json(&t->pairs));
    evidence_write(&o, evidence_topology_names, t->evidence, TOPOLOGY_EVIDENCE_COUNT);
    return json_builder_end(&o);
}

static json_t *windows_to_json(const struct fingerprint *fp)
{
    struct json_builder o;

    json_builder_begin(&o);
    json_builder_u64_maybe(&o, "reach_bytes", fp->windows.reach_bytes);
    json_builder_u64_maybe(&o, "entry_bytes", fp->windows.entry_bytes);
    json_builder_u64_maybe(&o, "recommended_bytes", fp->windows.recommended_bytes);
    return json_builder_end(&o);
}

static json_t *point_to_json(const struct curve_point *p)
{
    struct json_builder o;

    json_builder_begin(&o);
    json_builder_u64(&o, "region_bytes", p->region_bytes);
    json_builder_f64_maybe(&o, "naive_gbps", p->naive_gbps);
    json_builder_f64_maybe(&o, "by_group_gbps", p->by_group_gbps);
    json_builder_f64_maybe(&o, "by_sm_gbps", p->by_sm_gbps);
    json_builder_u64(&o, "windows", p->windows);
    return json_builder_end(&o);
}

static json_t *rate_point_to_json(const struct rate_point *p)
{
    struct json_builder o;

    json_builder_begin(&o);
    json_builder_u64(&o, "region_bytes", p->region_bytes);
    json_builder_f64_maybe(&o, "naive_gbps", p->naive_gbps);
    json_builder_f64_maybe(&o, "by_group_gbps", p->by_group_gbps);
    return json_builder_end(&o);
}

static json_t *rate_to_json(const struct access_rate *r)
{
    struct json_builder o;
    json_t *points = json_array();

    for (uint32_t i = 0; i < r->point_count; i++) {
        if (!json_builder_append(&points, rate_point_to_json(&r->points[i])))
            break;
    }
    json_builder_begin(&o);
    json_builder_text(&o, "access", access_name(r->access));
    json_builder_u64(&o, "transaction_bytes", r->transaction_bytes);
    json_builder_f64_maybe(&o, "plateau_gbps", r->plateau_gbps);
    json_builder_value(&o, "points", points);
    evidence_columns_write(&o, &evidence_columns_points, r->points[0].evidence, r->point_count);
    evidence_write(&o, evidence_rate_names, r->evidence, RATE_EVIDENCE_COUNT);
    return json_builder_end(&o);
}

/* Left out where there are none, as in fingerprints of before there were any. */
static void write_rates(struct json_builder *o, const struct throughput *t)
{
    json_t *rates;

    if (t->rate_count == 0)
        return;
    rates = json_array();
    for (uint32_t i = 0; i < t->rate_count; i++) {
        if (!json_builder_append(&rates, rate_to_json(&t->rates[i])))
            break;
    }
    json_builder_value(o, "rates", rates);
}

static json_t *throughput_to_json(const struct throughput *t)
{
    struct json_builder o;
    json_t *curve = json_array();

    for (uint32_t i = 0; i < t->curve_count; i++) {
        if (!json_builder_append(&curve, point_to_json(&t->curve[i])))
            break;
    }
    json_builder_begin(&o);
    json_builder_f64_maybe(&o, "plateau_gbps", t->plateau_gbps);
    json_builder_f64_maybe(&o, "whole_memory_gbps", t->whole_memory_gbps);
    json_builder_value(&o, "curve", curve);
    evidence_columns_write(&o, &evidence_columns_curve, t->curve[0].evidence, t->curve_count);
    write_rates(&o, t);
    evidence_write(&o, evidence_throughput_names, t->evidence, THROUGHPUT_EVIDENCE_COUNT);
    return json_builder_end(&o);
}

static json_t *conditions_to_json(const struct fingerprint_conditions *c)
{
    struct json_builder o;
    json_t *notes = json_array();

    for (uint32_t i = 0; i < c->note_count; i++) {
        if (!json_builder_append(&notes, json_new_text(c->notes[i])))
            break;
    }
    json_builder_begin(&o);
    json_builder_text(&o, "verdict", verdict_name(c->verdict));
    json_builder_text_or_null(&o, "arena", c->arena);
    json_builder_u64(&o, "range_bytes", c->range_bytes);
    json_builder_u64(&o, "backing_bytes", c->backing_bytes);
    json_builder_u32_maybe(&o, "sm_clock_khz", c->sm_clock_khz);
    json_builder_u32_maybe(&o, "other_processes", c->other_processes);
    json_builder_value(&o, "notes", notes);
    return json_builder_end(&o);
}

static bool rates_fit(const struct throughput *t)
{
    if (t->rate_count > FINGERPRINT_MAX_RATES)
        return false;
    for (uint32_t i = 0; i < t->rate_count; i++)
        if (t->rates[i].point_count > FINGERPRINT_MAX_RATE_POINTS ||
            (unsigned)t->rates[i].access >= ACCESS_COUNT)
            return false;
    return true;
}

/* What nobody has checked yet must not lead out of its own arrays. */
static bool counts_fit(const struct fingerprint *fp)
{
    for (uint32_t i = 0; i < FINGERPRINT_MAX_LEVELS; i++)
        if (fp->levels[i].run_count > FINGERPRINT_MAX_SET_RUNS)
            return false;
    return fp->level_count <= FINGERPRINT_MAX_LEVELS &&
           fp->topology.partition.group_count <= REACH_MAX_GROUPS &&
           fp->topology.disabled.listed <= FINGERPRINT_MAX_CANDIDATES &&
           (fp->topology.disabled.listed == 0 ||
            fp->topology.disabled.sm_count.v <= FINGERPRINT_MAX_DISABLED) &&
           fp->topology.pairs.listed <= FINGERPRINT_MAX_SLOW_PAIRS &&
           fp->throughput.curve_count <= FINGERPRINT_MAX_CURVE && rates_fit(&fp->throughput) &&
           fp->conditions.note_count <= FINGERPRINT_MAX_NOTES;
}

json_t *fingerprint_json_body(const struct fingerprint *fp)
{
    struct json_builder o;

    if (!counts_fit(fp))
        return NULL;
    json_builder_begin(&o);
    json_builder_value(&o, "gpu", identity_json_new(&fp->gpu));
    json_builder_text(&o, "origin", origin_name(fp->gpu.origin));
    json_builder_text(&o, "depth", depth_name(fp->depth));
    json_builder_time(&o, "taken_at", fp->taken_at);
    json_builder_u64(&o, "duration_ms", fp->duration_ms);
    json_builder_u64(&o, "probe_ms", fp->probe_ms);
    json_builder_u64(&o, "device_memory_bytes", fp->device_memory_bytes);
    json_builder_value(&o, "tlb", tlb_to_json(fp));
    json_builder_value(&o, "topology", topology_to_json(&fp->topology));
    json_builder_value(&o, "windows", windows_to_json(fp));
    json_builder_value(&o, "throughput", throughput_to_json(&fp->throughput));
    json_builder_value(&o, "conditions", conditions_to_json(&fp->conditions));
    kept_write(&o, fp);
    return json_builder_end(&o);
}

/* ---- the id ---- */

static int hash_text(const char *text, size_t size, void *data)
{
    uint64_t *const h = data;

    *h = hash_bytes(*h, text, size);
    return 0;
}

bool fingerprint_json_id(const json_t *body, char *out)
{
    uint64_t h = HASH_START;

    if (json_dump_callback(body, hash_text, &h, JSON_COMPACT | JSON_SORT_KEYS) != 0)
        return false;
    (void)snprintf(out, FINGERPRINT_ID_BYTES, "fp%016" PRIx64, h);
    return true;
}

char *fingerprint_json_text(const json_t *body, char *out_id)
{
    char *const text = json_dumps(body, JSON_COMPACT | JSON_SORT_KEYS);

    if (text)
        (void)snprintf(out_id, FINGERPRINT_ID_BYTES, "fp%016" PRIx64,
                       hash_bytes(HASH_START, text, strlen(text)));
    return text;
}

enum status fingerprint_id(const struct fingerprint *fp, char *out, struct err *err)
{
    json_t *const body = fingerprint_json_body(fp);
    const bool done = body && fingerprint_json_id(body, out);

    json_decref(body);
    if (done)
        return STATUS_OK;
    out[0] = '\0';
    return err_set(err, STATUS_NO_MEMORY, "no memory for the id of a fingerprint");
}

/* ---- the document ---- */

/* The id comes first: readers look for it. */
json_t *fingerprint_to_json(const struct fingerprint *fp)
{
    char id[FINGERPRINT_ID_BYTES];
    json_t *const body = fingerprint_json_body(fp);
    struct json_builder o;

    if (!body || !fingerprint_json_id(body, id)) {
        json_decref(body);
        return NULL;
    }
    json_builder_begin(&o);
    json_builder_text(&o, "id", id);
    if (!o.failed && json_object_update(o.object, body) != 0)
        o.failed = true;
    json_decref(body);
    return json_builder_end(&o);
}
