/* observe_json.c: reads and writes specs, identities, limits and observations as JSON.
 *
 *     {"probe": {..}, "sm_ids": [0, 1, ..], "shape": [points, samples], "values": [..],
 *      "conditions": {..}, "verdict": "clean"}
 *
 * A spec's JSON has only the fields that its kind uses. So a reader sees the request, and a zero is
 * never mistaken for a value. Counts are the lengths of the arrays. An idle SM is null in
 * window_of_sm. A read that does not belong to the curve also has access and transaction_bytes. A
 * read over scattered memory also has run_bytes and scattered_bytes.
 *
 * The values are one flat array, whose last axis is fastest, beside the lengths of its axes. Nested
 * arrays would cost a node per row, and every reader can fold a flat array. A ROUND of 132 SMs, 8
 * pages and 7 repeats is 14 784 values, about 55 KB of text.
 */
#include "observe/observe.h"

#include "types/identity_json.h"
#include "base/json_fields.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(PROBE_SM_IDLE == UINT16_MAX, "an idle SM is what JSON_FIELD_U16_OR_NULL calls null");

/* clang-format off */
#define AT(type, field)      offsetof(struct type, field)
#define NUMBER(field, type, in)                                                                    \
    {#field, JSON_FIELD_##type, AT(probe_spec, field), .variants = (in)}
#define LIMIT(field)         {#field, JSON_FIELD_U64, .offset = AT(gpu_limits, field)}
#define CONDITION(field, type)                                                                     \
    {#field, JSON_FIELD_##type, .offset = AT(probe_conditions, field)}
#define LATER(field, type)                                                                         \
    {#field, JSON_FIELD_##type, .offset = AT(probe_conditions, field), .optional = true}
/* A number that recordings of older releases lack. */
#define ADDED(type, field)                                                                         \
    {#field, JSON_FIELD_U32_MAYBE, .offset = AT(type, field), .optional = true,                    \
     .absent = REASON_NOT_MEASURED}
/* clang-format on */
#define COUNT(fields) (sizeof(fields) / sizeof((fields)[0]))

static const struct json_names paths = {probe_path_name, PATH_COUNT};

/* The variants of these fields are the parts of a spec (probe_parts). */
static const struct json_field spec_fields[] = {
    NUMBER(stride_bytes, U64, SPEC_PAGES | SPEC_STRIDE),
    NUMBER(base_bytes, U64, SPEC_BASE),
    NUMBER(warm_laps, U32, SPEC_LAPS),
    {"sms", JSON_FIELD_U16_LIST, AT(probe_spec, sms), .length = REACH_MAX_SMS,
     .max = REACH_MAX_SMS - 1, .count_offset = AT(probe_spec, sm_count), .variants = SPEC_ANY_SMS},
    NUMBER(slice_pages, U32, SPEC_SLICE),
    NUMBER(flush_pages, U32, SPEC_SLICE),
    NUMBER(thrash_pages, U32, SPEC_THRASH),
    {"points", JSON_FIELD_U64_LIST, AT(probe_spec, points), .length = PROBE_MAX_POINTS,
     .count_offset = AT(probe_spec, point_count), .variants = SPEC_POINTS},
    NUMBER(samples, U32, SPEC_SAMPLES),
    {"path", JSON_FIELD_NAME, AT(probe_spec, path), .names = &paths, .variants = SPEC_CACHE},
    {"warm_path", JSON_FIELD_NAME, AT(probe_spec, warm_path), .names = &paths,
     .variants = SPEC_CACHE},
    NUMBER(scattered, U32, SPEC_CACHE),
    NUMBER(sweep_footprint, U32, SPEC_CACHE),
    NUMBER(sweep_bytes, U64, SPEC_CACHE),
    NUMBER(touch_bytes, U64, SPEC_CACHE),
    NUMBER(evict_bytes, U64, SPEC_CACHE),
    NUMBER(shared_bytes, U64, SPEC_CACHE),
    NUMBER(repeats, U32, SPEC_REPEATS),
    NUMBER(region_bytes, U64, SPEC_REGION),
    NUMBER(transaction_bytes, U32, SPEC_TRANSACTION),
    NUMBER(warps, U32, SPEC_SHARED),
    NUMBER(in_flight, U32, SPEC_SHARED),
    NUMBER(cluster_sms, U32, SPEC_CLUSTER),
    NUMBER(duration_us, U32, SPEC_DURATION),
    NUMBER(seed, U32, SPEC_DURATION),
    NUMBER(window_count, U32, SPEC_WINDOWS),
    {"window_of_sm", JSON_FIELD_U16_OR_NULL, AT(probe_spec, window_of_sm), .length = REACH_MAX_SMS,
     .max = PROBE_MAX_WINDOWS - 1, .count_offset = AT(probe_spec, window_sms),
     .variants = SPEC_WINDOWS},
};

/* Fields of a READ; both or none are present. */
static const struct json_field run_fields[] = {NUMBER(run_bytes, U64, 0),
                                               NUMBER(scattered_bytes, U64, 0)};

static const struct json_names kinds = {probe_kind_name, PROBE_KIND_COUNT};
static const struct json_names set_reads = {set_read_name, SET_READ_COUNT};
static const struct json_names accesses = {access_name, ACCESS_COUNT};
static const struct json_names memories = {memory_kind_name, MEMORY_KIND_COUNT};
static const struct json_names arenas = {arena_kind_name, ARENA_SIMULATED + 1};
static const struct json_names verdicts = {verdict_name, VERDICT_UNUSABLE + 1};

/* An unchecked spec must not lead beyond its own arrays. */
static bool counts_fit(const struct probe_spec *spec)
{
    return spec->kind < PROBE_KIND_COUNT && spec->point_count <= PROBE_MAX_POINTS &&
           spec->sm_count <= REACH_MAX_SMS && spec->window_sms <= REACH_MAX_SMS &&
           (unsigned)spec->access < ACCESS_COUNT && (unsigned)spec->set_read < SET_READ_COUNT &&
           (unsigned)spec->path < PATH_COUNT && (unsigned)spec->warm_path < PATH_COUNT &&
           (unsigned)spec->memory < MEMORY_KIND_COUNT;
}

void probe_spec_write(struct json_writer *t, const char *name, const struct probe_spec *spec)
{
    if (!counts_fit(spec)) {
        t->failed = true;
        return;
    }
    json_writer_open(t, name, '{');
    json_writer_text(t, "kind", probe_kind_name(spec->kind));
    json_fields_write(t, spec_fields, COUNT(spec_fields), probe_parts(spec->kind), spec);
    if (spec->kind == PROBE_WORKING_SET_READ)
        json_writer_text(t, "spread", set_read_name(spec->set_read));
    if (spec->kind == PROBE_READ && !probe_is_line_read(spec)) {
        json_writer_text(t, "access", access_name(spec->access));
        json_writer_u64(t, "transaction_bytes", probe_access_bytes(spec));
    }
    if (spec->output)
        json_writer_bool(t, "output", true);
    if (spec->kind == PROBE_READ && spec->run_bytes > 0)
        json_fields_write(t, run_fields, COUNT(run_fields), 0, spec);
    if (spec->memory != MEMORY_DEVICE)
        json_writer_text(t, "memory", memory_kind_name(spec->memory));
    if (spec->memory == MEMORY_PEER)
        json_writer_u64(t, "peer", spec->peer);
    if (spec->node > 0)
        json_writer_u64(t, "node", spec->node - 1);
    json_writer_close(t, '}');
}

/* Both fields or none are present. */
static void access_from_json(struct json_reader *in, struct probe_spec *out)
{
    if (!json_object_get(in->object, "access") && !json_object_get(in->object, "transaction_bytes"))
        return;
    json_reader_name(in, "access", &accesses, &out->access);
    json_reader_u32(in, "transaction_bytes", UINT32_MAX, &out->transaction_bytes);
    if (json_object_get(in->object, "output")) {
        bool output = false;
        json_reader_bool(in, "output", &output);
        out->output = output;
    }
}

static void memory_from_json(struct json_reader *in, struct probe_spec *out)
{
    if (json_object_get(in->object, "memory"))
        json_reader_name(in, "memory", &memories, &out->memory);
    if (out->memory == MEMORY_PEER)
        json_reader_u32(in, "peer", REACH_MAX_GPUS, &out->peer);
    if (json_object_get(in->object, "node")) {
        json_reader_u32(in, "node", PROBE_MAX_NODES - 1, &out->node);
        out->node += 1;
    }
}

enum status probe_spec_from_json(const json_t *json, struct probe_spec *out, struct err *err)
{
    struct json_reader in;
    struct err why = {0};
    enum status s;

    *out = (struct probe_spec){0};
    json_reader_begin(&in, json, "probe", JSON_READER_STRICT, STATUS_PROTOCOL, err);
    json_reader_name(&in, "kind", &kinds, &out->kind);
    json_fields_read(&in, spec_fields, COUNT(spec_fields), probe_parts(out->kind), out);
    if (out->kind == PROBE_WORKING_SET_READ)
        json_reader_name(&in, "spread", &set_reads, &out->set_read);
    if (out->kind == PROBE_READ)
        access_from_json(&in, out);
    if (out->kind == PROBE_READ &&
        (json_object_get(json, "run_bytes") || json_object_get(json, "scattered_bytes")))
        json_fields_read(&in, run_fields, COUNT(run_fields), 0, out);
    memory_from_json(&in, out);
    s = json_reader_end(&in);
    if (s == STATUS_OK && probe_check(out, NULL, &why) != STATUS_OK)
        s = err_set(err, STATUS_PROTOCOL, "%s", why.text); /* the text starts with "probe: " */
    return s;
}

enum status gpu_identity_from_json(const json_t *json, struct gpu_identity *out, struct err *err)
{
    struct json_reader in;

    json_reader_begin(&in, json, "gpu", JSON_READER_STRICT, STATUS_PROTOCOL, err);
    return identity_json_read(&in, out);
}

static const struct json_field limit_fields[] = {
    {"arena", JSON_FIELD_NAME, AT(gpu_limits, arena), .names = &arenas},
    LIMIT(range_bytes),
    LIMIT(backing_bytes),
    LIMIT(granule_bytes),
    LIMIT(device_memory_bytes),
    LIMIT(free_bytes),
    {"sm_count", JSON_FIELD_U32, AT(gpu_limits, sm_count), .max = REACH_MAX_SMS},
    {"host_memory_bytes", JSON_FIELD_U64, AT(gpu_limits, host_memory_bytes), .optional = true},
    {"host_total_bytes", JSON_FIELD_U64, AT(gpu_limits, host_total_bytes), .optional = true},
    {"memory_ms", JSON_FIELD_U32, AT(gpu_limits, memory_ms), .optional = true},
    {"peer_count", JSON_FIELD_U32, AT(gpu_limits, peer_count), .max = REACH_MAX_GPUS,
     .optional = true},
    {"host_nodes", JSON_FIELD_U64, AT(gpu_limits, host_nodes), .optional = true},
    {"shared_sm_bytes", JSON_FIELD_U64, AT(gpu_limits, shared_sm_bytes), .optional = true},
    {"shared_block_bytes", JSON_FIELD_U64, AT(gpu_limits, shared_block_bytes), .optional = true},
    {"cluster_sms", JSON_FIELD_U32, AT(gpu_limits, cluster_sms), .max = PROBE_MAX_CLUSTER,
     .optional = true},
    ADDED(gpu_limits, pcie_generation),
    ADDED(gpu_limits, pcie_lanes_supported),
    ADDED(gpu_limits, pcie_lanes),
    ADDED(gpu_limits, locality_domains),
    ADDED(gpu_limits, locality_domain_sms),
};

void gpu_limits_write(struct json_writer *t, const char *name, const struct gpu_limits *limits)
{
    json_writer_open(t, name, '{');
    json_fields_write(t, limit_fields, COUNT(limit_fields), 0, limits);
    json_writer_close(t, '}');
}

enum status gpu_limits_from_json(const json_t *json, struct gpu_limits *out, struct err *err)
{
    struct json_reader in;

    *out = (struct gpu_limits){.sm_count = 0};
    json_reader_begin(&in, json, "limits", JSON_READER_STRICT, STATUS_PROTOCOL, err);
    json_fields_read(&in, limit_fields, COUNT(limit_fields), 0, out);
    return json_reader_end(&in);
}

/* ---- observations ---- */

static const struct json_field sm_ids = {"sm_ids",
                                         JSON_FIELD_U16_LIST,
                                         AT(probe_result, sm_ids),
                                         .length = REACH_MAX_SMS,
                                         .max = REACH_MAX_SMS - 1,
                                         .count_offset = AT(probe_result, sm_count)};

/* Variants of the conditions. */
enum { DEVICE_MEMORY = 1, OTHER_MEMORY = 2 };

/* Some recorded documents lack the optional fields. */
static const struct json_field condition_fields[] = {
    CONDITION(started_at, TIME),
    CONDITION(duration_ns, U64),
    {"arena", JSON_FIELD_NAME, AT(probe_conditions, arena), .names = &arenas},
    CONDITION(range_bytes, U64),
    CONDITION(backing_bytes, U64),
    CONDITION(device_memory_bytes, U64),
    CONDITION(sm_clock_khz, U32_MAYBE),
    CONDITION(memory_clock_khz, U32_MAYBE),
    CONDITION(temperature_celsius, U32_MAYBE),
    CONDITION(other_processes, U32_MAYBE),
    CONDITION(throttle_reasons, U64_MAYBE),
    LATER(sm_clock_before_khz, U32_MAYBE),
    LATER(busy_percent_before, U32_MAYBE),
    LATER(concurrent_processes, U32_MAYBE),
    LATER(interruptions, U32_MAYBE),
    LATER(uncorrected_errors, U64_MAYBE),
    LATER(xid, U64_MAYBE),
    ADDED(probe_conditions, pcie_generation),
    {"memory_bytes", JSON_FIELD_U64_MAYBE, AT(probe_conditions, memory_bytes),
     .variants = OTHER_MEMORY},
    {"peer_uuid", JSON_FIELD_TEXT_OR_NULL, AT(probe_conditions, peer_uuid),
     .length = sizeof((struct probe_conditions *)0)->peer_uuid, .variants = OTHER_MEMORY},
    {"peer_memory_bytes", JSON_FIELD_U64_MAYBE, AT(probe_conditions, peer_memory_bytes),
     .optional = true, .variants = OTHER_MEMORY},
};

static unsigned conditions_of(const struct probe_spec *spec)
{
    return spec->memory == MEMORY_DEVICE ? DEVICE_MEMORY : OTHER_MEMORY;
}

void observation_write(struct json_writer *t, const char *name, const struct observation *o)
{
    uint32_t axes[PROBE_MAX_AXES];

    if (o->result.sm_count > REACH_MAX_SMS) {
        t->failed = true;
        return;
    }
    json_writer_open(t, name, '{');
    probe_spec_write(t, "probe", &o->spec);
    json_fields_write(t, &sm_ids, 1, 0, &o->result);
    json_writer_u32s(t, "shape", axes, probe_shape(&o->spec, o->result.sm_count, axes));
    json_writer_u32s(t, "values", o->result.values, o->result.value_count);
    json_writer_open(t, "conditions", '{');
    json_fields_write(t, condition_fields, COUNT(condition_fields), conditions_of(&o->spec),
                      &o->result.conditions);
    json_writer_close(t, '}');
    json_writer_text(t, "verdict", verdict_name(o->assessment.verdict));
    json_writer_text_or_null(t, "verdict_reason", o->assessment.message);
    json_writer_close(t, '}');
}

/* Reads the SMs that took part. A publication of means need not report the SM that walked. */
static void sm_ids_from_json(struct json_reader *in, enum probe_kind kind, struct probe_result *out)
{
    json_fields_read(in, &sm_ids, 1, 0, out);
    if (json_reader_ok(in) && out->sm_count == 0 && kind != PROBE_MEANS)
        json_reader_fail(in, "sm_ids", "must name the SMs that took part");
    for (uint32_t i = 1; i < out->sm_count; i++) {
        if (out->sm_ids[i] <= out->sm_ids[i - 1])
            json_reader_fail(in, "sm_ids", "must ascend");
    }
}

static void shape_from_json(struct json_reader *in, const struct observation *o)
{
    uint32_t axes[PROBE_MAX_AXES];
    const json_t *const array = json_reader_array(in, "shape", PROBE_MAX_AXES);
    const uint32_t count = probe_shape(&o->spec, o->result.sm_count, axes);

    if (array && json_array_size(array) != count)
        json_reader_fail(in, "shape", "must have %u axes", count);
    for (uint32_t i = 0; array && i < count; i++) {
        const json_t *const v = json_array_get(array, i);
        if (!json_is_integer(v) || json_integer_value(v) != (json_int_t)axes[i])
            json_reader_fail(in, "shape", "axis %u must be %u for this probe", i, axes[i]);
    }
}

/* Reads the values from the list, or from `taken` if they were taken out of it. */
static void values_from_json(struct json_reader *in, struct observation_values *taken,
                             struct observation *o)
{
    const json_t *const array = json_reader_array(in, "values", SIZE_MAX);
    const bool was_taken = taken->numbers && json_array_size(array) == 0;
    const size_t count = was_taken ? taken->count : json_array_size(array);
    size_t wanted;

    if (!array)
        return;
    wanted =
        probe_is_absent(&o->spec, &o->result) ? 0 : probe_value_count(&o->spec, o->result.sm_count);
    if (count != wanted) {
        json_reader_fail(in, "values", "has %zu elements, the probe gives %zu", count, wanted);
        return;
    }
    if (count == 0)
        return;
    if (was_taken) {
        o->result.values = taken->numbers;
        o->result.value_count = count;
        *taken = (struct observation_values){.numbers = NULL};
        return;
    }
    o->result.values = calloc(count, sizeof(*o->result.values));
    if (!o->result.values) {
        json_reader_absorb(in, err_no_memory(in->err, "%zu values", count));
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

/* Some recorded observations have no verdict, and count as clean. */
static void assessment_from_json(struct json_reader *in, struct assessment *out)
{
    if (!json_object_get(in->object, "verdict") && !json_object_get(in->object, "verdict_reason"))
        return;
    json_reader_name(in, "verdict", &verdicts, &out->verdict);
    json_reader_text_or_null(in, "verdict_reason", out->message, sizeof(out->message));
}

static void conditions_from_json(struct json_reader *outer, const struct probe_spec *spec,
                                 struct probe_conditions *c)
{
    const json_t *const json = json_reader_object(outer, "conditions");
    struct json_reader in;

    if (!json)
        return;
    json_reader_begin_inside(&in, outer, json, "conditions", -1);
    json_fields_read(&in, condition_fields, COUNT(condition_fields), conditions_of(spec), c);
    json_reader_absorb(outer, json_reader_end(&in));
}

enum status observation_from_json(const json_t *json, struct observation *out, struct err *err)
{
    return observation_from_parts(json, &(struct observation_values){.numbers = NULL}, out, err);
}

enum status observation_from_parts(const json_t *json, struct observation_values *take,
                                   struct observation *out, struct err *err)
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
    if (json_reader_ok(&in))
        conditions_from_json(&in, &out->spec, &out->result.conditions);
    if (json_reader_ok(&in)) { /* the number of values is known only after the spec and the SMs */
        shape_from_json(&in, out);
        values_from_json(&in, take, out);
    }
    free(take->numbers);
    *take = (struct observation_values){.numbers = NULL};
    assessment_from_json(&in, &out->assessment);
    s = json_reader_end(&in);
    if (s != STATUS_OK)
        observation_free(out);
    return s;
}
