/* fingerprint_read.c: reads what fingerprint_json.c wrote, or what a newer release wrote: fields it
 * does not know are skipped, fields that are missing stay unknown. What is there must be right,
 * and the whole must pass fingerprint_check.
 *
 * The "id" is not compared: a newer release hashes fields that are dropped here.
 */
#include "fingerprint/fingerprint_json.h"

#include "base/identity_json.h"
#include "base/json_reader.h"
#include "fingerprint/evidence_columns.h"
#include "fingerprint/evidence_json.h"
#include "fingerprint/kept_json.h"
#include "fingerprint/topology_read.h"

#include <stdio.h>

static void partition_from_json(struct json_reader *in, struct sm_partition *out)
{
    const json_t *const groups = json_reader_array(in, "groups", REACH_MAX_GROUPS);

    for (uint32_t g = 0; g < json_array_size(groups); g++)
        topology_read_sms(in, json_array_get(groups, g), g, out);
    out->group_count = (uint32_t)json_array_size(groups);
}

static void runs_from_json(struct json_reader *in, struct tlb_level *out)
{
    const json_t *const runs = json_reader_array(in, "set_sizes", FINGERPRINT_MAX_SET_RUNS);

    for (uint32_t i = 0; json_reader_ok(in) && i < json_array_size(runs); i++) {
        struct json_reader run;
        json_reader_begin_inside(&run, in, json_array_get(runs, i), "set_sizes", (int)i);
        json_reader_u32(&run, "ways", UINT32_MAX, &out->runs[i].ways);
        json_reader_u32(&run, "sets", UINT32_MAX, &out->runs[i].sets);
        json_reader_absorb(in, json_reader_end(&run));
        out->run_count = i + 1;
    }
}

static void fill_from_json(struct json_reader *in, struct tlb_level *out)
{
    const char *const word = json_reader_word(in, "fill");

    if (word && !fill_from_name(word, &out->fill))
        json_reader_fail(in, "fill", "must be unknown, whole or parts");
    json_reader_u32_maybe(in, "entry_pages", &out->entry_pages);
    json_reader_u64_maybe(in, "tag_bytes", &out->tag_bytes);
}

static void level_from_json(const struct json_reader *outer, const json_t *json, uint32_t i,
                            struct tlb_level *l, enum status *status)
{
    struct json_reader in;
    const char *word;

    json_reader_begin_inside(&in, outer, json, "levels", (int)i);
    json_reader_u32(&in, "level", UINT32_MAX, &l->level);
    json_reader_u32_maybe(&in, "entries", &l->entries);
    json_reader_u64_maybe(&in, "entry_bytes", &l->entry_bytes);
    json_reader_u64_maybe(&in, "page_bytes", &l->page_bytes);
    json_reader_u64_maybe(&in, "reach_bytes", &l->reach_bytes);
    json_reader_u64_maybe(&in, "onset_bytes", &l->onset_bytes);
    json_reader_u64_maybe(&in, "saturation_bytes", &l->saturation_bytes);
    json_reader_u32_maybe(&in, "sets", &l->sets);
    json_reader_u32_maybe(&in, "ways", &l->ways);
    runs_from_json(&in, l);
    json_reader_u32_maybe(&in, "victim_entries", &l->victim_entries);
    fill_from_json(&in, l);
    word = json_reader_word(&in, "replacement");
    if (word && !replacement_from_name(word, &l->replacement))
        json_reader_fail(&in, "replacement", "must be unknown, lru or not-lru");
    json_reader_f64_maybe(&in, "miss_penalty_cycles", &l->miss_penalty_cycles);
    word = json_reader_word(&in, "shared_by");
    if (word && !shared_by_from_name(word, &l->shared_by))
        json_reader_fail(&in, "shared_by", "must be unknown, sm, group or gpu");
    partition_from_json(&in, &l->sharing);
    json_reader_f64_maybe(&in, "confidence", &l->confidence);
    evidence_read(&in, evidence_level_names, l->evidence, LEVEL_EVIDENCE_COUNT);
    *status = json_reader_end(&in);
}

static void beyond_from_json(struct json_reader *outer, struct fingerprint *out)
{
    const json_t *const json = json_reader_object(outer, "beyond");
    struct json_reader in;

    if (!json)
        return;
    json_reader_begin_inside(&in, outer, json, "beyond", -1);
    json_reader_u64(&in, "probed_bytes", &out->beyond.probed_bytes);
    json_reader_u64_maybe(&in, "reach_bytes", &out->beyond.reach_bytes);
    json_reader_f64_maybe(&in, "walk_cycles", &out->beyond.walk_cycles);
    json_reader_absorb(outer, json_reader_end(&in));
}

static void pages_from_json(struct json_reader *outer, struct fingerprint *out)
{
    const json_t *const json = json_reader_object(outer, "page_bytes");
    struct json_reader in;

    if (!json)
        return;
    json_reader_begin_inside(&in, outer, json, "page_bytes", -1);
    for (uint32_t a = 0; a < ALLOCATION_COUNT; a++)
        json_reader_u64_maybe(&in, allocation_name((enum allocation)a), &out->page_bytes[a]);
    json_reader_absorb(outer, json_reader_end(&in));
}

static void tlb_from_json(struct json_reader *outer, struct fingerprint *out)
{
    const json_t *const json = json_reader_object(outer, "tlb");
    const json_t *levels;
    struct json_reader in;

    if (!json)
        return;
    json_reader_begin_inside(&in, outer, json, "tlb", -1);
    levels = json_reader_array(&in, "levels", FINGERPRINT_MAX_LEVELS);
    for (uint32_t i = 0; json_reader_ok(&in) && i < json_array_size(levels); i++) {
        enum status s = STATUS_OK;
        level_from_json(&in, json_array_get(levels, i), i, &out->levels[i], &s);
        json_reader_absorb(&in, s);
        out->level_count = i + 1;
    }
    beyond_from_json(&in, out);
    pages_from_json(&in, out);
    json_reader_absorb(outer, json_reader_end(&in));
}

static void windows_from_json(struct json_reader *outer, struct fingerprint *out)
{
    const json_t *const json = json_reader_object(outer, "windows");
    struct json_reader in;

    if (!json)
        return;
    json_reader_begin_inside(&in, outer, json, "windows", -1);
    json_reader_u64_maybe(&in, "reach_bytes", &out->windows.reach_bytes);
    json_reader_u64_maybe(&in, "entry_bytes", &out->windows.entry_bytes);
    json_reader_u64_maybe(&in, "recommended_bytes", &out->windows.recommended_bytes);
    json_reader_absorb(outer, json_reader_end(&in));
}

static void point_from_json(struct json_reader *outer, const json_t *json, uint32_t i,
                            struct curve_point *out)
{
    struct json_reader in;

    json_reader_begin_inside(&in, outer, json, "curve", (int)i);
    json_reader_u64(&in, "region_bytes", &out->region_bytes);
    json_reader_f64_maybe(&in, "naive_gbps", &out->naive_gbps);
    json_reader_f64_maybe(&in, "by_group_gbps", &out->by_group_gbps);
    json_reader_f64_maybe(&in, "by_sm_gbps", &out->by_sm_gbps);
    json_reader_u32(&in, "windows", UINT32_MAX, &out->windows);
    evidence_read(&in, evidence_curve_names, out->evidence, CURVE_EVIDENCE_COUNT);
    json_reader_absorb(outer, json_reader_end(&in));
}

static void rate_point_from_json(struct json_reader *outer, const json_t *json, uint32_t i,
                                 struct rate_point *out)
{
    struct json_reader in;

    json_reader_begin_inside(&in, outer, json, "points", (int)i);
    json_reader_u64(&in, "region_bytes", &out->region_bytes);
    json_reader_f64_maybe(&in, "naive_gbps", &out->naive_gbps);
    json_reader_f64_maybe(&in, "by_group_gbps", &out->by_group_gbps);
    evidence_read(&in, evidence_rate_point_names, out->evidence, RATE_POINT_EVIDENCE_COUNT);
    json_reader_absorb(outer, json_reader_end(&in));
}

static void rate_from_json(struct json_reader *outer, const json_t *json, uint32_t i,
                           struct access_rate *out)
{
    struct json_reader in;
    const json_t *points;
    const char *word;

    json_reader_begin_inside(&in, outer, json, "rates", (int)i);
    word = json_reader_word(&in, "access");
    if (word && !access_from_name(word, &out->access))
        json_reader_fail(&in, "access", "must be read, atomic or write");
    json_reader_u32(&in, "transaction_bytes", UINT32_MAX, &out->transaction_bytes);
    json_reader_f64_maybe(&in, "plateau_gbps", &out->plateau_gbps);
    points = json_reader_array(&in, "points", FINGERPRINT_MAX_RATE_POINTS);
    for (uint32_t k = 0; json_reader_ok(&in) && k < json_array_size(points); k++) {
        rate_point_from_json(&in, json_array_get(points, k), k, &out->points[k]);
        out->point_count = k + 1;
    }
    evidence_columns_read(&in, &evidence_columns_points, out->points[0].evidence, out->point_count);
    evidence_read(&in, evidence_rate_names, out->evidence, RATE_EVIDENCE_COUNT);
    json_reader_absorb(outer, json_reader_end(&in));
}

static void rates_from_json(struct json_reader *in, struct throughput *out)
{
    const json_t *const rates = json_reader_array(in, "rates", FINGERPRINT_MAX_RATES);

    for (uint32_t i = 0; json_reader_ok(in) && i < json_array_size(rates); i++) {
        rate_from_json(in, json_array_get(rates, i), i, &out->rates[i]);
        out->rate_count = i + 1;
    }
}

static void throughput_from_json(struct json_reader *outer, struct throughput *out)
{
    const json_t *const json = json_reader_object(outer, "throughput");
    const json_t *curve;
    struct json_reader in;

    if (!json)
        return;
    json_reader_begin_inside(&in, outer, json, "throughput", -1);
    json_reader_f64_maybe(&in, "plateau_gbps", &out->plateau_gbps);
    json_reader_f64_maybe(&in, "whole_memory_gbps", &out->whole_memory_gbps);
    curve = json_reader_array(&in, "curve", FINGERPRINT_MAX_CURVE);
    for (uint32_t i = 0; json_reader_ok(&in) && i < json_array_size(curve); i++) {
        point_from_json(&in, json_array_get(curve, i), i, &out->curve[i]);
        out->curve_count = i + 1;
    }
    evidence_columns_read(&in, &evidence_columns_curve, out->curve[0].evidence, out->curve_count);
    rates_from_json(&in, out);
    evidence_read(&in, evidence_throughput_names, out->evidence, THROUGHPUT_EVIDENCE_COUNT);
    json_reader_absorb(outer, json_reader_end(&in));
}

static void notes_from_json(struct json_reader *in, struct fingerprint_conditions *out)
{
    const json_t *const notes = json_reader_array(in, "notes", FINGERPRINT_MAX_NOTES);

    for (uint32_t i = 0; i < json_array_size(notes); i++) {
        const json_t *const note = json_array_get(notes, i);
        if (!json_is_string(note) || json_string_length(note) >= sizeof(out->notes[i])) {
            json_reader_fail(in, "notes", "element %u must be a text of at most %zu bytes", i,
                             sizeof(out->notes[i]) - 1);
            return;
        }
        (void)snprintf(out->notes[i], sizeof(out->notes[i]), "%s", json_string_value(note));
    }
    out->note_count = (uint32_t)json_array_size(notes);
}

static void conditions_from_json(struct json_reader *outer, struct fingerprint_conditions *out)
{
    const json_t *const json = json_reader_object(outer, "conditions");
    const char *verdict;
    struct json_reader in;

    if (!json)
        return;
    json_reader_begin_inside(&in, outer, json, "conditions", -1);
    verdict = json_reader_word(&in, "verdict");
    if (verdict && !verdict_from_name(verdict, &out->verdict))
        json_reader_fail(&in, "verdict", "must be clean, disturbed or unusable");
    json_reader_text_or_null(&in, "arena", out->arena, sizeof(out->arena));
    json_reader_u64(&in, "range_bytes", &out->range_bytes);
    json_reader_u64(&in, "backing_bytes", &out->backing_bytes);
    json_reader_u32_maybe(&in, "sm_clock_khz", &out->sm_clock_khz);
    json_reader_u32_maybe(&in, "other_processes", &out->other_processes);
    notes_from_json(&in, out);
    json_reader_absorb(outer, json_reader_end(&in));
}

/* The origin stands twice, for readers' sake; a document that contradicts itself about it could
 * pass a simulated number for a measured one. */
static void identity_from_json(struct json_reader *outer, struct gpu_identity *out)
{
    const json_t *const json = json_reader_object(outer, "gpu");
    const char *const word = json_reader_word(outer, "origin");
    enum origin origin = ORIGIN_MEASURED;
    struct json_reader in;

    if (json) {
        json_reader_begin_inside(&in, outer, json, "gpu", -1);
        json_reader_absorb(outer, identity_json_read(&in, out));
    }
    if (!word)
        return;
    if (!origin_from_name(word, &origin))
        json_reader_fail(outer, "origin", "must be measured, simulated or imported");
    else if (json && json_object_get(json, "origin") && origin != out->origin)
        json_reader_fail(outer, "origin", "is not that of gpu.origin");
    else
        out->origin = origin;
}

enum status fingerprint_from_json(const json_t *json, struct fingerprint *out, struct err *err)
{
    struct json_reader in;
    const char *depth;
    enum status s;

    fingerprint_init(out);
    json_reader_begin(&in, json, "", JSON_READER_LENIENT, STATUS_CORRUPT, err);
    identity_from_json(&in, &out->gpu);
    depth = json_reader_word(&in, "depth");
    if (depth && !depth_from_name(depth, &out->depth))
        json_reader_fail(&in, "depth", "must be quick, full or matrix");
    json_reader_time(&in, "taken_at", &out->taken_at);
    json_reader_u32(&in, "duration_ms", UINT32_MAX, &out->duration_ms);
    json_reader_u32(&in, "probe_ms", UINT32_MAX, &out->probe_ms);
    json_reader_u64(&in, "device_memory_bytes", &out->device_memory_bytes);
    tlb_from_json(&in, out);
    topology_read(&in, &out->topology);
    windows_from_json(&in, out);
    throughput_from_json(&in, &out->throughput);
    conditions_from_json(&in, &out->conditions);
    kept_read(&in, out);
    s = json_reader_end(&in);
    return s == STATUS_OK ? fingerprint_check(out, err) : s;
}
