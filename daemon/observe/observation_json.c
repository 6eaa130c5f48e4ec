/* observation_json.c: an observation as one JSON document.
 *
 *     {"probe": {..}, "sm_ids": [0, 1, ..], "shape": [points, samples], "values": [..],
 *      "conditions": {..}, "verdict": "clean"}
 *
 * The values are one flat array, last axis fastest, beside the lengths of its axes: nested arrays
 * would cost a node a row, and every reader can fold a flat one. A ROUND of 132 SMs, 8 pages and 7
 * repeats is 14 784 values, about 55 KB of text.
 */
#include "observe/observe.h"

#include "base/json_reader.h"
#include "base/json_builder.h"

#include <stdlib.h>

enum { MAX_AXES = 4, HALVES = 2 };

/* Lengths of the axes; returns their number. Their product is probe_value_count. */
static uint32_t shape_of(const struct probe_spec *spec, uint32_t sm_count, uint32_t *axes)
{
    switch (spec->kind) {
    case PROBE_CHASE:
        axes[0] = spec->point_count;
        axes[1] = spec->samples;
        return 2;
    case PROBE_ROUND:
    case PROBE_PAIRS:
        axes[0] = spec->kind == PROBE_ROUND ? spec->repeats : spec->sm_count;
        axes[1] = HALVES;
        axes[2] = sm_count;
        axes[3] = spec->slice_pages;
        return 4;
    case PROBE_READ:
        axes[0] = spec->point_count;
        axes[1] = spec->repeats;
        axes[2] = 1 + sm_count;
        return 3;
    case PROBE_MEANS:
        axes[0] = spec->point_count;
        return 1;
    case PROBE_MEAN_PAIRS:
        axes[0] = sm_count;
        axes[1] = sm_count;
        return 2;
    case PROBE_KIND_COUNT:
        break;
    }
    return 0;
}

static json_t *shape_to_json(const struct observation *o)
{
    uint32_t axes[MAX_AXES];
    const uint32_t count = shape_of(&o->spec, o->result.sm_count, axes);
    json_t *array = json_array();

    for (uint32_t i = 0; i < count; i++) {
        if (!json_builder_append(&array, json_integer(axes[i])))
            break;
    }
    return array;
}

static json_t *values_to_json(const struct probe_result *result)
{
    json_t *array = json_array();

    for (size_t i = 0; i < result->value_count; i++) {
        if (!json_builder_append(&array, json_integer(result->values[i])))
            break;
    }
    return array;
}

static json_t *sm_ids_to_json(const struct probe_result *result)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < result->sm_count; i++) {
        if (!json_builder_append(&array, json_integer(result->sm_ids[i])))
            break;
    }
    return array;
}

static json_t *conditions_to_json(const struct probe_conditions *c)
{
    struct json_builder o;

    json_builder_begin(&o);
    json_builder_time(&o, "started_at", c->started_at);
    json_builder_u64(&o, "duration_ns", c->duration_ns);
    json_builder_text(&o, "arena", arena_kind_name(c->arena));
    json_builder_u64(&o, "range_bytes", c->range_bytes);
    json_builder_u64(&o, "backing_bytes", c->backing_bytes);
    json_builder_u64(&o, "device_memory_bytes", c->device_memory_bytes);
    json_builder_u32_maybe(&o, "sm_clock_khz", c->sm_clock_khz);
    json_builder_u32_maybe(&o, "memory_clock_khz", c->memory_clock_khz);
    json_builder_u32_maybe(&o, "temperature_celsius", c->temperature_celsius);
    json_builder_u32_maybe(&o, "other_processes", c->other_processes);
    json_builder_u64_maybe(&o, "throttle_reasons", c->throttle_reasons);
    json_builder_u32_maybe(&o, "sm_clock_before_khz", c->sm_clock_before_khz);
    json_builder_u32_maybe(&o, "busy_percent_before", c->busy_percent_before);
    json_builder_u64_maybe(&o, "uncorrected_errors", c->uncorrected_errors);
    json_builder_u64_maybe(&o, "xid", c->xid);
    return json_builder_end(&o);
}

json_t *observation_to_json(const struct observation *o)
{
    struct json_builder out;

    if (o->result.sm_count > REACH_MAX_SMS)
        return NULL;
    json_builder_begin(&out);
    json_builder_value(&out, "probe", probe_spec_to_json(&o->spec));
    json_builder_value(&out, "sm_ids", sm_ids_to_json(&o->result));
    json_builder_value(&out, "shape", shape_to_json(o));
    json_builder_value(&out, "values", values_to_json(&o->result));
    json_builder_value(&out, "conditions", conditions_to_json(&o->result.conditions));
    json_builder_text(&out, "verdict", verdict_name(o->assessment.verdict));
    json_builder_text_or_null(&out, "verdict_reason", o->assessment.message);
    return json_builder_end(&out);
}

/* Who has published means of a walk need not have told which SM walked. */
static void sm_ids_from_json(struct json_reader *in, enum probe_kind kind, struct probe_result *out)
{
    out->sm_count = json_reader_u16_array(in, "sm_ids", REACH_MAX_SMS, REACH_MAX_SMS - 1,
                                          UINT32_MAX, out->sm_ids);
    if (json_reader_ok(in) && out->sm_count == 0 && kind != PROBE_MEANS)
        json_reader_fail(in, "sm_ids", "must name the SMs that took part");
    for (uint32_t i = 1; i < out->sm_count; i++) {
        if (out->sm_ids[i] <= out->sm_ids[i - 1])
            json_reader_fail(in, "sm_ids", "must ascend");
    }
}

static void shape_from_json(struct json_reader *in, const struct observation *o)
{
    uint32_t axes[MAX_AXES];
    const json_t *const array = json_reader_array(in, "shape", MAX_AXES);
    const uint32_t count = shape_of(&o->spec, o->result.sm_count, axes);

    if (array && json_array_size(array) != count)
        json_reader_fail(in, "shape", "must have %u axes", count);
    for (uint32_t i = 0; array && i < count; i++) {
        const json_t *const v = json_array_get(array, i);
        if (!json_is_integer(v) || json_integer_value(v) != (json_int_t)axes[i])
            json_reader_fail(in, "shape", "axis %u must be %u, as the probe says", i, axes[i]);
    }
}

static void values_from_json(struct json_reader *in, struct observation *o)
{
    const json_t *const array = json_reader_array(in, "values", SIZE_MAX);
    const size_t count = json_array_size(array);
    size_t wanted;

    if (!array)
        return;
    wanted = probe_value_count(&o->spec, o->result.sm_count);
    if (count != wanted) {
        json_reader_fail(in, "values", "has %zu elements where the probe gives %zu", count, wanted);
        return;
    }
    o->result.values = calloc(count, sizeof(*o->result.values));
    if (!o->result.values) {
        json_reader_absorb(in,
                           err_set(in->err, STATUS_NO_MEMORY, "no memory for %zu values", count));
        return;
    }
    o->result.value_count = count;
    for (size_t i = 0; i < count; i++) {
        const json_t *const v = json_array_get(array, i);
        const json_int_t n = json_integer_value(v);
        if (!json_is_integer(v) || n < 0 || n > UINT32_MAX) {
            json_reader_fail(in, "values", "element %zu must be an integer from 0 to %u", i,
                             UINT32_MAX);
            return;
        }
        o->result.values[i] = (uint32_t)n;
    }
}

/* What observations of the first release do not have. */
static void later_conditions_from_json(struct json_reader *in, struct probe_conditions *c)
{
    const struct {
        const char *name;
        struct maybe_u32 *u32; /* one of the two */
        struct maybe_u64 *u64;
    } fields[] = {{"sm_clock_before_khz", &c->sm_clock_before_khz, NULL},
                  {"busy_percent_before", &c->busy_percent_before, NULL},
                  {"uncorrected_errors", NULL, &c->uncorrected_errors},
                  {"xid", NULL, &c->xid}};

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        const bool there = json_object_get(in->object, fields[i].name) != NULL;
        if (there && fields[i].u32)
            json_reader_u32_maybe(in, fields[i].name, fields[i].u32);
        else if (there)
            json_reader_u64_maybe(in, fields[i].name, fields[i].u64);
        else if (fields[i].u32)
            *fields[i].u32 = UNKNOWN_U32(REASON_NOT_REPORTED);
        else
            *fields[i].u64 = UNKNOWN_U64(REASON_NOT_REPORTED);
    }
}

/* Observations of the first release were not judged: nobody has complained about them. */
static void judgement_from_json(struct json_reader *in, struct assessment *out)
{
    const char *word;

    if (!json_object_get(in->object, "verdict") && !json_object_get(in->object, "verdict_reason"))
        return;
    word = json_reader_word(in, "verdict");
    if (word && !verdict_from_name(word, &out->verdict))
        json_reader_fail(in, "verdict", "must be clean, disturbed or unusable");
    json_reader_text_or_null(in, "verdict_reason", out->message, sizeof(out->message));
}

static void conditions_from_json(struct json_reader *outer, struct probe_conditions *c)
{
    const json_t *const json = json_reader_object(outer, "conditions");
    struct json_reader in;
    const char *arena;

    if (!json)
        return;
    json_reader_begin_inside(&in, outer, json, "conditions", -1);
    json_reader_time(&in, "started_at", &c->started_at);
    json_reader_u64(&in, "duration_ns", &c->duration_ns);
    arena = json_reader_word(&in, "arena");
    if (arena && !arena_kind_from_name(arena, &c->arena))
        json_reader_fail(&in, "arena", "must be alias, plain or simulated");
    json_reader_u64(&in, "range_bytes", &c->range_bytes);
    json_reader_u64(&in, "backing_bytes", &c->backing_bytes);
    json_reader_u64(&in, "device_memory_bytes", &c->device_memory_bytes);
    json_reader_u32_maybe(&in, "sm_clock_khz", &c->sm_clock_khz);
    json_reader_u32_maybe(&in, "memory_clock_khz", &c->memory_clock_khz);
    json_reader_u32_maybe(&in, "temperature_celsius", &c->temperature_celsius);
    json_reader_u32_maybe(&in, "other_processes", &c->other_processes);
    json_reader_u64_maybe(&in, "throttle_reasons", &c->throttle_reasons);
    later_conditions_from_json(&in, c);
    json_reader_absorb(outer, json_reader_end(&in));
}

enum status observation_from_json(const json_t *json, struct observation *out, struct err *err)
{
    struct json_reader in;
    const json_t *spec;
    enum status s;

    *out = (struct observation){0};
    json_reader_begin(&in, json, "", JSON_READER_STRICT, STATUS_PROTOCOL, err);
    spec = json_reader_object(&in, "probe");
    if (spec)
        json_reader_absorb(&in, probe_spec_from_json(spec, &out->spec, err));
    sm_ids_from_json(&in, out->spec.kind, &out->result);
    if (json_reader_ok(&in)) { /* only now do spec and SMs say how many values there are */
        shape_from_json(&in, out);
        values_from_json(&in, out);
    }
    conditions_from_json(&in, &out->result.conditions);
    judgement_from_json(&in, &out->assessment);
    s = json_reader_end(&in);
    if (s != STATUS_OK)
        observation_free(out);
    return s;
}
