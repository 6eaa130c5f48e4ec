/* fingerprint_read.c: reads what fingerprint_json.c wrote, or what a newer release wrote: fields it
 * does not know are passed over, fields that are missing stay unknown. What is there must be right,
 * and the whole must pass fingerprint_check.
 *
 * The "id" is not compared: a newer release hashes fields that are dropped here.
 */
#include "fingerprint/fingerprint_json.h"

#include "base/identity_json.h"
#include "base/json_in.h"
#include "fingerprint/evidence_json.h"

#include <stdio.h>

/* Puts the SMs of one array into `group`. An SM in two groups is a failure. */
static void group_sms_from_json(struct json_in *in, const json_t *array, uint32_t group,
                                struct sm_partition *out)
{
    size_t i;
    const json_t *value;

    if (!json_is_array(array)) {
        json_in_fail(in, "groups", "group %u must have an array of SM ids", group);
        return;
    }
    json_array_foreach(array, i, value)
    {
        const json_int_t sm = json_integer_value(value);
        if (!json_is_integer(value) || sm < 0 || sm >= REACH_MAX_SMS) {
            json_in_fail(in, "groups", "SM ids must be integers from 0 to %d", REACH_MAX_SMS - 1);
            return;
        }
        if (out->group_of_sm[sm] != FINGERPRINT_NO_GROUP) {
            json_in_fail(in, "groups", "SM %d is in two groups", (int)sm);
            return;
        }
        out->group_of_sm[sm] = (uint16_t)group;
    }
}

static void partition_from_json(struct json_in *in, struct sm_partition *out)
{
    const json_t *const groups = json_in_array(in, "groups", REACH_MAX_GROUPS);

    for (uint32_t g = 0; g < json_array_size(groups); g++)
        group_sms_from_json(in, json_array_get(groups, g), g, out);
    out->group_count = (uint32_t)json_array_size(groups);
}

static void runs_from_json(struct json_in *in, struct tlb_level *out)
{
    const json_t *const runs = json_in_array(in, "set_sizes", FINGERPRINT_MAX_SET_RUNS);

    for (uint32_t i = 0; json_in_ok(in) && i < json_array_size(runs); i++) {
        struct json_in run;
        json_in_begin_inside(&run, in, json_array_get(runs, i), "set_sizes", (int)i);
        json_in_u32(&run, "ways", UINT32_MAX, &out->runs[i].ways);
        json_in_u32(&run, "sets", UINT32_MAX, &out->runs[i].sets);
        json_in_absorb(in, json_in_end(&run));
        out->run_count = i + 1;
    }
}

static void fill_from_json(struct json_in *in, struct tlb_level *out)
{
    const char *const word = json_in_word(in, "fill");

    if (word && !fill_from_name(word, &out->fill))
        json_in_fail(in, "fill", "must be unknown, whole or parts");
    json_in_u32_maybe(in, "entry_pages", &out->entry_pages);
    json_in_u64_maybe(in, "tag_bytes", &out->tag_bytes);
}

static void level_from_json(const struct json_in *outer, const json_t *json, uint32_t i,
                            struct tlb_level *l, enum status *status)
{
    struct json_in in;
    const char *word;

    json_in_begin_inside(&in, outer, json, "levels", (int)i);
    json_in_u32(&in, "level", UINT32_MAX, &l->level);
    json_in_u32_maybe(&in, "entries", &l->entries);
    json_in_u64_maybe(&in, "entry_bytes", &l->entry_bytes);
    json_in_u64_maybe(&in, "page_bytes", &l->page_bytes);
    json_in_u64_maybe(&in, "reach_bytes", &l->reach_bytes);
    json_in_u64_maybe(&in, "onset_bytes", &l->onset_bytes);
    json_in_u64_maybe(&in, "saturation_bytes", &l->saturation_bytes);
    json_in_u32_maybe(&in, "sets", &l->sets);
    json_in_u32_maybe(&in, "ways", &l->ways);
    runs_from_json(&in, l);
    json_in_u32_maybe(&in, "victim_entries", &l->victim_entries);
    fill_from_json(&in, l);
    word = json_in_word(&in, "replacement");
    if (word && !replacement_from_name(word, &l->replacement))
        json_in_fail(&in, "replacement", "must be unknown, lru or not-lru");
    json_in_f64_maybe(&in, "miss_penalty_cycles", &l->miss_penalty_cycles);
    word = json_in_word(&in, "shared_by");
    if (word && !shared_by_from_name(word, &l->shared_by))
        json_in_fail(&in, "shared_by", "must be unknown, sm, group or gpu");
    partition_from_json(&in, &l->sharing);
    json_in_f64_maybe(&in, "confidence", &l->confidence);
    evidence_read(&in, evidence_level_names, l->evidence, LEVEL_EVIDENCE_COUNT);
    *status = json_in_end(&in);
}

static void beyond_from_json(struct json_in *outer, struct fingerprint *out)
{
    const json_t *const json = json_in_object(outer, "beyond");
    struct json_in in;

    if (!json)
        return;
    json_in_begin_inside(&in, outer, json, "beyond", -1);
    json_in_u64(&in, "probed_bytes", &out->beyond.probed_bytes);
    json_in_u64_maybe(&in, "reach_bytes", &out->beyond.reach_bytes);
    json_in_f64_maybe(&in, "walk_cycles", &out->beyond.walk_cycles);
    json_in_absorb(outer, json_in_end(&in));
}

static void pages_from_json(struct json_in *outer, struct fingerprint *out)
{
    const json_t *const json = json_in_object(outer, "page_bytes");
    struct json_in in;

    if (!json)
        return;
    json_in_begin_inside(&in, outer, json, "page_bytes", -1);
    for (uint32_t a = 0; a < ALLOCATION_COUNT; a++)
        json_in_u64_maybe(&in, allocation_name((enum allocation)a), &out->page_bytes[a]);
    json_in_absorb(outer, json_in_end(&in));
}

static void tlb_from_json(struct json_in *outer, struct fingerprint *out)
{
    const json_t *const json = json_in_object(outer, "tlb");
    const json_t *levels;
    struct json_in in;

    if (!json)
        return;
    json_in_begin_inside(&in, outer, json, "tlb", -1);
    levels = json_in_array(&in, "levels", FINGERPRINT_MAX_LEVELS);
    for (uint32_t i = 0; json_in_ok(&in) && i < json_array_size(levels); i++) {
        enum status s = STATUS_OK;
        level_from_json(&in, json_array_get(levels, i), i, &out->levels[i], &s);
        json_in_absorb(&in, s);
        out->level_count = i + 1;
    }
    beyond_from_json(&in, out);
    pages_from_json(&in, out);
    json_in_absorb(outer, json_in_end(&in));
}

/* The numbers stand in the order of the SMs. */
static void sm_penalties_from_json(struct json_in *in, const json_t *sms, struct topology *out)
{
    const json_t *const array = json_in_array(in, "sm_miss_penalty_cycles", REACH_MAX_SMS);
    size_t i;
    const json_t *value;

    if (!json_in_ok(in) || json_array_size(array) == 0)
        return;
    if (json_array_size(array) != json_array_size(sms)) {
        json_in_fail(in, "sm_miss_penalty_cycles", "must have a number for each of sms");
        return;
    }
    json_array_foreach(array, i, value)
    {
        const json_int_t sm = json_integer_value(json_array_get(sms, i));
        if (json_is_number(value))
            out->sm_miss_penalty_cycles[sm] = KNOWN_F64(json_number_value(value));
        else if (!json_is_null(value))
            json_in_fail(in, "sm_miss_penalty_cycles", "must be numbers or null");
    }
}

/* Two groups, the lower one first. */
static void two_groups_from_json(struct json_in *in, const char *name, uint16_t *out)
{
    const uint32_t n = json_in_u16_array(in, name, 2, REACH_MAX_GROUPS - 1, UINT32_MAX, out);

    if (json_in_ok(in) && n != 2)
        json_in_fail(in, name, "must be two groups");
}

static void slow_from_json(struct json_in *outer, const json_t *json, uint32_t i,
                           struct slow_pair *out)
{
    struct maybe_f64 ratio = UNKNOWN(REASON_NOT_MEASURED);
    struct json_in in;
    const char *word;

    json_in_begin_inside(&in, outer, json, "slow", (int)i);
    two_groups_from_json(&in, "groups", out->groups);
    json_in_f64_maybe(&in, "ratio", &ratio);
    out->ratio = ratio.v;
    word = json_in_word(&in, "cause");
    if (word && !slow_cause_from_name(word, &out->cause))
        json_in_fail(&in, "cause", "must be unknown, tlb or bandwidth");
    json_in_absorb(outer, json_in_end(&in));
}

static void pairs_from_json(struct json_in *outer, struct group_pairs *out)
{
    const json_t *const json = json_in_object(outer, "pairs");
    const json_t *slow;
    const char *word;
    struct json_in in;

    if (!json)
        return;
    json_in_begin_inside(&in, outer, json, "pairs", -1);
    json_in_u32(&in, "measured", UINT32_MAX, &out->measured);
    json_in_f64_maybe(&in, "worst_ratio", &out->worst_ratio);
    if (IS_KNOWN(out->worst_ratio))
        two_groups_from_json(&in, "worst", out->worst);
    word = json_in_word(&in, "share_tlb");
    if (word && !finding_from_name(word, &out->share_tlb))
        json_in_fail(&in, "share_tlb", "must be unknown, yes or no");
    json_in_u32(&in, "slow_count", UINT32_MAX, &out->slow_count);
    slow = json_in_array(&in, "slow", FINGERPRINT_MAX_SLOW_PAIRS);
    for (uint32_t i = 0; json_in_ok(&in) && i < json_array_size(slow); i++) {
        slow_from_json(&in, json_array_get(slow, i), i, &out->slow[i]);
        out->listed = i + 1;
    }
    json_in_absorb(outer, json_in_end(&in));
}

static void group_from_json(struct json_in *outer, const json_t *json, uint32_t g,
                            struct topology *out)
{
    struct json_in in;
    uint32_t id = g;
    const json_t *sms;

    json_in_begin_inside(&in, outer, json, "groups", (int)g);
    json_in_u32(&in, "id", REACH_MAX_GROUPS, &id);
    if (id != g)
        json_in_fail(&in, "id", "must be %u, its place", g);
    sms = json_in_array(&in, "sms", REACH_MAX_SMS);
    if (json_in_ok(&in))
        group_sms_from_json(&in, sms, g, &out->partition);
    out->groups[g].sm_count = (uint32_t)json_array_size(sms);
    json_in_f64_maybe(&in, "miss_penalty_cycles", &out->groups[g].miss_penalty_cycles);
    json_in_f64_maybe(&in, "random_read_gbps", &out->groups[g].random_read_gbps);
    json_in_f64_maybe(&in, "alone_gbps", &out->groups[g].alone_gbps);
    json_in_f64_maybe(&in, "beyond_gbps", &out->groups[g].beyond_gbps);
    json_in_u32_maybe(&in, "penalty_class", &out->groups[g].penalty_class);
    json_in_u32_maybe(&in, "speed_class", &out->groups[g].speed_class);
    sm_penalties_from_json(&in, sms, out);
    evidence_read(&in, evidence_group_names, out->groups[g].evidence, GROUP_EVIDENCE_COUNT);
    json_in_absorb(outer, json_in_end(&in));
}

static void candidate_from_json(struct json_in *in, const json_t *json, uint32_t k,
                                struct disabled_sms *out)
{
    size_t i;
    const json_t *value;

    if (!json_is_array(json) || json_array_size(json) != out->sm_count.v ||
        json_array_size(json) > FINGERPRINT_MAX_DISABLED) {
        json_in_fail(in, "candidates", "element %u must be an array of sm_count SM ids", k);
        return;
    }
    json_array_foreach(json, i, value)
    {
        const json_int_t sm = json_integer_value(value);
        if (!json_is_integer(value) || sm < 0 || sm >= REACH_MAX_SMS)
            json_in_fail(in, "candidates", "SM ids must be integers from 0 to %d",
                         REACH_MAX_SMS - 1);
        else
            out->candidates[k][i] = (uint16_t)sm;
    }
}

static void disabled_from_json(struct json_in *outer, struct disabled_sms *out)
{
    const json_t *const json = json_in_object(outer, "disabled");
    const json_t *candidates;
    struct json_in in;

    if (!json)
        return;
    json_in_begin_inside(&in, outer, json, "disabled", -1);
    json_in_u32_maybe(&in, "sm_count", &out->sm_count);
    json_in_u32_maybe(&in, "unit_sms", &out->unit_sms);
    json_in_u32_maybe(&in, "lost_groups", &out->lost_groups);
    json_in_text_or_null(&in, "signature", out->signature, sizeof(out->signature));
    json_in_u32_maybe(&in, "candidate_count", &out->candidate_count);
    candidates = json_in_array(&in, "candidates", FINGERPRINT_MAX_CANDIDATES);
    for (uint32_t k = 0; json_in_ok(&in) && k < json_array_size(candidates); k++) {
        candidate_from_json(&in, json_array_get(candidates, k), k, out);
        out->listed = k + 1;
    }
    json_in_absorb(outer, json_in_end(&in));
}

static void topology_from_json(struct json_in *outer, struct topology *out)
{
    const json_t *const json = json_in_object(outer, "topology");
    const json_t *groups;
    const char *word;
    struct json_in in;

    if (!json)
        return;
    json_in_begin_inside(&in, outer, json, "topology", -1);
    json_in_u32_maybe(&in, "level", &out->level);
    groups = json_in_array(&in, "groups", REACH_MAX_GROUPS);
    for (uint32_t g = 0; json_in_ok(&in) && g < json_array_size(groups); g++) {
        group_from_json(&in, json_array_get(groups, g), g, out);
        out->partition.group_count = g + 1;
    }
    json_in_u32_maybe(&in, "nominal_group_sms", &out->nominal_group_sms);
    json_in_u32_maybe(&in, "full_sm_count", &out->full_sm_count);
    disabled_from_json(&in, &out->disabled);
    json_in_f64_maybe(&in, "confidence", &out->confidence);
    json_in_u32_maybe(&in, "penalty_classes", &out->penalty_classes);
    json_in_u32_maybe(&in, "speed_classes", &out->speed_classes);
    word = json_in_word(&in, "speed_follows_sms");
    if (word && !finding_from_name(word, &out->speed_follows_sms))
        json_in_fail(&in, "speed_follows_sms", "must be unknown, yes or no");
    pairs_from_json(&in, &out->pairs);
    evidence_read(&in, evidence_topology_names, out->evidence, TOPOLOGY_EVIDENCE_COUNT);
    json_in_absorb(outer, json_in_end(&in));
}

static void windows_from_json(struct json_in *outer, struct fingerprint *out)
{
    const json_t *const json = json_in_object(outer, "windows");
    struct json_in in;

    if (!json)
        return;
    json_in_begin_inside(&in, outer, json, "windows", -1);
    json_in_u64_maybe(&in, "reach_bytes", &out->windows.reach_bytes);
    json_in_u64_maybe(&in, "entry_bytes", &out->windows.entry_bytes);
    json_in_u64_maybe(&in, "recommended_bytes", &out->windows.recommended_bytes);
    json_in_absorb(outer, json_in_end(&in));
}

static void point_from_json(struct json_in *outer, const json_t *json, uint32_t i,
                            struct curve_point *out)
{
    struct json_in in;

    json_in_begin_inside(&in, outer, json, "curve", (int)i);
    json_in_u64(&in, "region_bytes", &out->region_bytes);
    json_in_f64_maybe(&in, "naive_gbps", &out->naive_gbps);
    json_in_f64_maybe(&in, "by_group_gbps", &out->by_group_gbps);
    json_in_f64_maybe(&in, "by_sm_gbps", &out->by_sm_gbps);
    json_in_u32(&in, "windows", UINT32_MAX, &out->windows);
    evidence_read(&in, evidence_curve_names, out->evidence, CURVE_EVIDENCE_COUNT);
    json_in_absorb(outer, json_in_end(&in));
}

static void rate_point_from_json(struct json_in *outer, const json_t *json, uint32_t i,
                                 struct rate_point *out)
{
    struct json_in in;

    json_in_begin_inside(&in, outer, json, "points", (int)i);
    json_in_u64(&in, "region_bytes", &out->region_bytes);
    json_in_f64_maybe(&in, "naive_gbps", &out->naive_gbps);
    json_in_f64_maybe(&in, "by_group_gbps", &out->by_group_gbps);
    evidence_read(&in, evidence_rate_point_names, out->evidence, RATE_POINT_EVIDENCE_COUNT);
    json_in_absorb(outer, json_in_end(&in));
}

static void rate_from_json(struct json_in *outer, const json_t *json, uint32_t i,
                           struct access_rate *out)
{
    struct json_in in;
    const json_t *points;
    const char *word;

    json_in_begin_inside(&in, outer, json, "rates", (int)i);
    word = json_in_word(&in, "access");
    if (word && !access_from_name(word, &out->access))
        json_in_fail(&in, "access", "must be read, atomic or write");
    json_in_u32(&in, "transaction_bytes", UINT32_MAX, &out->transaction_bytes);
    json_in_f64_maybe(&in, "plateau_gbps", &out->plateau_gbps);
    points = json_in_array(&in, "points", FINGERPRINT_MAX_RATE_POINTS);
    for (uint32_t k = 0; json_in_ok(&in) && k < json_array_size(points); k++) {
        rate_point_from_json(&in, json_array_get(points, k), k, &out->points[k]);
        out->point_count = k + 1;
    }
    evidence_read(&in, evidence_rate_names, out->evidence, RATE_EVIDENCE_COUNT);
    json_in_absorb(outer, json_in_end(&in));
}

static void rates_from_json(struct json_in *in, struct throughput *out)
{
    const json_t *const rates = json_in_array(in, "rates", FINGERPRINT_MAX_RATES);

    for (uint32_t i = 0; json_in_ok(in) && i < json_array_size(rates); i++) {
        rate_from_json(in, json_array_get(rates, i), i, &out->rates[i]);
        out->rate_count = i + 1;
    }
}

static void throughput_from_json(struct json_in *outer, struct throughput *out)
{
    const json_t *const json = json_in_object(outer, "throughput");
    const json_t *curve;
    struct json_in in;

    if (!json)
        return;
    json_in_begin_inside(&in, outer, json, "throughput", -1);
    json_in_f64_maybe(&in, "plateau_gbps", &out->plateau_gbps);
    json_in_f64_maybe(&in, "whole_memory_gbps", &out->whole_memory_gbps);
    curve = json_in_array(&in, "curve", FINGERPRINT_MAX_CURVE);
    for (uint32_t i = 0; json_in_ok(&in) && i < json_array_size(curve); i++) {
        point_from_json(&in, json_array_get(curve, i), i, &out->curve[i]);
        out->curve_count = i + 1;
    }
    rates_from_json(&in, out);
    evidence_read(&in, evidence_throughput_names, out->evidence, THROUGHPUT_EVIDENCE_COUNT);
    json_in_absorb(outer, json_in_end(&in));
}

static void notes_from_json(struct json_in *in, struct fingerprint_conditions *out)
{
    const json_t *const notes = json_in_array(in, "notes", FINGERPRINT_MAX_NOTES);

    for (uint32_t i = 0; i < json_array_size(notes); i++) {
        const json_t *const note = json_array_get(notes, i);
        if (!json_is_string(note) || json_string_length(note) >= sizeof(out->notes[i])) {
            json_in_fail(in, "notes", "element %u must be a text of at most %zu bytes", i,
                         sizeof(out->notes[i]) - 1);
            return;
        }
        (void)snprintf(out->notes[i], sizeof(out->notes[i]), "%s", json_string_value(note));
    }
    out->note_count = (uint32_t)json_array_size(notes);
}

static void conditions_from_json(struct json_in *outer, struct fingerprint_conditions *out)
{
    const json_t *const json = json_in_object(outer, "conditions");
    const char *verdict;
    struct json_in in;

    if (!json)
        return;
    json_in_begin_inside(&in, outer, json, "conditions", -1);
    verdict = json_in_word(&in, "verdict");
    if (verdict && !verdict_from_name(verdict, &out->verdict))
        json_in_fail(&in, "verdict", "must be clean, disturbed or unusable");
    json_in_text_or_null(&in, "arena", out->arena, sizeof(out->arena));
    json_in_u64(&in, "range_bytes", &out->range_bytes);
    json_in_u64(&in, "backing_bytes", &out->backing_bytes);
    json_in_u32_maybe(&in, "sm_clock_khz", &out->sm_clock_khz);
    json_in_u32_maybe(&in, "other_processes", &out->other_processes);
    notes_from_json(&in, out);
    json_in_absorb(outer, json_in_end(&in));
}

/* The origin stands twice, for readers' sake; a document that contradicts itself about it could
 * pass a simulated number for a measured one. */
static void identity_from_json(struct json_in *outer, struct gpu_identity *out)
{
    const json_t *const json = json_in_object(outer, "gpu");
    const char *const word = json_in_word(outer, "origin");
    enum origin origin = ORIGIN_MEASURED;
    struct json_in in;

    if (json) {
        json_in_begin_inside(&in, outer, json, "gpu", -1);
        json_in_absorb(outer, identity_json_read(&in, out));
    }
    if (!word)
        return;
    if (!origin_from_name(word, &origin))
        json_in_fail(outer, "origin", "must be measured, simulated or imported");
    else if (json && json_object_get(json, "origin") && origin != out->origin)
        json_in_fail(outer, "origin", "is not that of gpu.origin");
    else
        out->origin = origin;
}

enum status fingerprint_from_json(const json_t *json, struct fingerprint *out, struct err *err)
{
    struct json_in in;
    const char *depth;
    enum status s;

    fingerprint_init(out);
    json_in_begin(&in, json, "", JSON_IN_LENIENT, STATUS_CORRUPT, err);
    identity_from_json(&in, &out->gpu);
    depth = json_in_word(&in, "depth");
    if (depth && !depth_from_name(depth, &out->depth))
        json_in_fail(&in, "depth", "must be quick, full or matrix");
    json_in_time(&in, "taken_at", &out->taken_at);
    json_in_u32(&in, "duration_ms", UINT32_MAX, &out->duration_ms);
    json_in_u32(&in, "probe_ms", UINT32_MAX, &out->probe_ms);
    json_in_u64(&in, "device_memory_bytes", &out->device_memory_bytes);
    tlb_from_json(&in, out);
    topology_from_json(&in, &out->topology);
    windows_from_json(&in, out);
    throughput_from_json(&in, &out->throughput);
    conditions_from_json(&in, &out->conditions);
    s = json_in_end(&in);
    return s == STATUS_OK ? fingerprint_check(out, err) : s;
}
