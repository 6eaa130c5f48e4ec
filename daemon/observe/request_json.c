/* request_json.c: what is asked, of whom, and how far one may go: specs, identities, limits.
 *
 * A spec's JSON has the fields that its kind uses and no others, so that a reader sees what was
 * asked and a zero is never taken for a wish:
 *
 *   chase   stride_bytes base_bytes points samples warm_laps sms
 *   round   stride_bytes base_bytes slice_pages flush_pages thrash_pages warm_laps repeats sms
 *   pairs   stride_bytes base_bytes slice_pages flush_pages thrash_pages warm_laps sms
 *   read    base_bytes points repeats duration_us seed window_count window_of_sm
 *   means   stride_bytes points
 *   mean-pairs  stride_bytes thrash_pages
 *
 * Counts are the lengths of the arrays. An idle SM is null in window_of_sm. A read that is not the
 * curve's also has access and transaction_bytes.
 */
#include "observe/observe.h"

#include "base/identity_json.h"
#include "base/json_reader.h"
#include "base/json_builder.h"

static json_t *points_to_json(const struct probe_spec *spec)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < spec->point_count; i++) {
        json_t *const v =
            spec->points[i] > INT64_MAX ? NULL : json_integer((json_int_t)spec->points[i]);
        if (!json_builder_append(&array, v))
            break;
    }
    return array;
}

static json_t *ids_to_json(const uint16_t *ids, uint32_t count)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < count; i++) {
        if (!json_builder_append(&array,
                                 ids[i] == PROBE_SM_IDLE ? json_null() : json_integer(ids[i])))
            break;
    }
    return array;
}

static void pages_to_json(struct json_builder *o, const struct probe_spec *spec)
{
    json_builder_u64(o, "stride_bytes", spec->stride_bytes);
    json_builder_u64(o, "base_bytes", spec->base_bytes);
    json_builder_u64(o, "warm_laps", spec->warm_laps);
    json_builder_value(o, "sms", ids_to_json(spec->sms, spec->sm_count));
}

static void slices_to_json(struct json_builder *o, const struct probe_spec *spec)
{
    json_builder_u64(o, "slice_pages", spec->slice_pages);
    json_builder_u64(o, "flush_pages", spec->flush_pages);
    json_builder_u64(o, "thrash_pages", spec->thrash_pages);
}

static void read_to_json(struct json_builder *o, const struct probe_spec *spec)
{
    json_builder_u64(o, "base_bytes", spec->base_bytes);
    json_builder_value(o, "points", points_to_json(spec));
    json_builder_u64(o, "repeats", spec->repeats);
    json_builder_u64(o, "duration_us", spec->duration_us);
    json_builder_u64(o, "seed", spec->seed);
    json_builder_u64(o, "window_count", spec->window_count);
    json_builder_value(o, "window_of_sm", ids_to_json(spec->window_of_sm, spec->window_sms));
    if (probe_is_line_read(spec))
        return;
    json_builder_text(o, "access", access_name(spec->access));
    json_builder_u64(o, "transaction_bytes", probe_access_bytes(spec));
}

/* A spec that nobody has checked yet must not lead out of its own arrays. */
static bool counts_fit(const struct probe_spec *spec)
{
    return spec->kind < PROBE_KIND_COUNT && spec->point_count <= PROBE_MAX_POINTS &&
           spec->sm_count <= REACH_MAX_SMS && spec->window_sms <= REACH_MAX_SMS &&
           (unsigned)spec->access < ACCESS_COUNT;
}

json_t *probe_spec_to_json(const struct probe_spec *spec)
{
    struct json_builder o;

    if (!counts_fit(spec))
        return NULL;
    json_builder_begin(&o);
    json_builder_text(&o, "kind", probe_kind_name(spec->kind));
    switch (spec->kind) {
    case PROBE_CHASE:
        pages_to_json(&o, spec);
        json_builder_value(&o, "points", points_to_json(spec));
        json_builder_u64(&o, "samples", spec->samples);
        break;
    case PROBE_ROUND:
        pages_to_json(&o, spec);
        slices_to_json(&o, spec);
        json_builder_u64(&o, "repeats", spec->repeats);
        break;
    case PROBE_PAIRS:
        pages_to_json(&o, spec);
        slices_to_json(&o, spec);
        break;
    case PROBE_READ:
        read_to_json(&o, spec);
        break;
    case PROBE_MEANS:
        json_builder_u64(&o, "stride_bytes", spec->stride_bytes);
        json_builder_value(&o, "points", points_to_json(spec));
        break;
    case PROBE_MEAN_PAIRS:
        json_builder_u64(&o, "stride_bytes", spec->stride_bytes);
        json_builder_u64(&o, "thrash_pages", spec->thrash_pages);
        break;
    case PROBE_KIND_COUNT:
        break;
    }
    return json_builder_end(&o);
}

static void points_from_json(struct json_reader *in, struct probe_spec *out)
{
    const json_t *const array = json_reader_array(in, "points", PROBE_MAX_POINTS);

    out->point_count = (uint32_t)json_array_size(array);
    for (uint32_t i = 0; i < out->point_count; i++) {
        const json_t *const v = json_array_get(array, i);
        if (!json_is_integer(v) || json_integer_value(v) < 0)
            json_reader_fail(in, "points", "element %u must be an integer, 0 or more", i);
        else
            out->points[i] = (uint64_t)json_integer_value(v);
    }
}

static void pages_from_json(struct json_reader *in, struct probe_spec *out)
{
    json_reader_u64(in, "stride_bytes", &out->stride_bytes);
    json_reader_u64(in, "base_bytes", &out->base_bytes);
    json_reader_u32(in, "warm_laps", UINT32_MAX, &out->warm_laps);
    out->sm_count =
        json_reader_u16_array(in, "sms", REACH_MAX_SMS, REACH_MAX_SMS - 1, UINT32_MAX, out->sms);
}

static void slices_from_json(struct json_reader *in, struct probe_spec *out)
{
    json_reader_u32(in, "slice_pages", UINT32_MAX, &out->slice_pages);
    json_reader_u32(in, "flush_pages", UINT32_MAX, &out->flush_pages);
    json_reader_u32(in, "thrash_pages", UINT32_MAX, &out->thrash_pages);
}

/* Both or none. */
static void access_from_json(struct json_reader *in, struct probe_spec *out)
{
    const char *word;

    if (!json_object_get(in->object, "access") && !json_object_get(in->object, "transaction_bytes"))
        return;
    word = json_reader_word(in, "access");
    if (word && !access_from_name(word, &out->access))
        json_reader_fail(in, "access", "must be read, atomic or write");
    json_reader_u32(in, "transaction_bytes", UINT32_MAX, &out->transaction_bytes);
}

static void read_from_json(struct json_reader *in, struct probe_spec *out)
{
    json_reader_u64(in, "base_bytes", &out->base_bytes);
    points_from_json(in, out);
    json_reader_u32(in, "repeats", UINT32_MAX, &out->repeats);
    json_reader_u32(in, "duration_us", UINT32_MAX, &out->duration_us);
    json_reader_u32(in, "seed", UINT32_MAX, &out->seed);
    json_reader_u32(in, "window_count", UINT32_MAX, &out->window_count);
    out->window_sms = json_reader_u16_array(
        in, "window_of_sm", REACH_MAX_SMS, PROBE_MAX_WINDOWS - 1, PROBE_SM_IDLE, out->window_of_sm);
    access_from_json(in, out);
}

static void means_from_json(struct json_reader *in, struct probe_spec *out)
{
    json_reader_u64(in, "stride_bytes", &out->stride_bytes);
    if (out->kind == PROBE_MEANS)
        points_from_json(in, out);
    else
        json_reader_u32(in, "thrash_pages", UINT32_MAX, &out->thrash_pages);
}

static void kind_from_json(struct json_reader *in, struct probe_spec *out)
{
    const char *const kind = json_reader_word(in, "kind");

    if (!kind)
        return;
    if (!probe_kind_from_name(kind, &out->kind)) {
        json_reader_fail(in, "kind", "must be chase, round, pairs, read, means or mean-pairs");
        return;
    }
    if (out->kind == PROBE_READ) {
        read_from_json(in, out);
        return;
    }
    if (out->kind == PROBE_MEANS || out->kind == PROBE_MEAN_PAIRS) {
        means_from_json(in, out);
        return;
    }
    pages_from_json(in, out);
    if (out->kind == PROBE_CHASE) {
        points_from_json(in, out);
        json_reader_u32(in, "samples", UINT32_MAX, &out->samples);
        return;
    }
    slices_from_json(in, out);
    if (out->kind == PROBE_ROUND)
        json_reader_u32(in, "repeats", UINT32_MAX, &out->repeats);
}

enum status probe_spec_from_json(const json_t *json, struct probe_spec *out, struct err *err)
{
    struct json_reader in;
    struct err why = {0};
    enum status s;

    *out = (struct probe_spec){0};
    json_reader_begin(&in, json, "probe", JSON_READER_STRICT, STATUS_PROTOCOL, err);
    kind_from_json(&in, out);
    s = json_reader_end(&in);
    if (s == STATUS_OK && probe_check(out, NULL, &why) != STATUS_OK)
        s = err_set(err, STATUS_PROTOCOL, "%s", why.text); /* starts with "probe: " */
    return s;
}

json_t *gpu_identity_to_json(const struct gpu_identity *id)
{
    return identity_json_new(id);
}

enum status gpu_identity_from_json(const json_t *json, struct gpu_identity *out, struct err *err)
{
    struct json_reader in;

    json_reader_begin(&in, json, "gpu", JSON_READER_STRICT, STATUS_PROTOCOL, err);
    return identity_json_read(&in, out);
}

json_t *gpu_limits_to_json(const struct gpu_limits *limits)
{
    struct json_builder o;

    json_builder_begin(&o);
    json_builder_text(&o, "arena", arena_kind_name(limits->arena));
    json_builder_u64(&o, "range_bytes", limits->range_bytes);
    json_builder_u64(&o, "backing_bytes", limits->backing_bytes);
    json_builder_u64(&o, "granule_bytes", limits->granule_bytes);
    json_builder_u64(&o, "device_memory_bytes", limits->device_memory_bytes);
    json_builder_u64(&o, "free_bytes", limits->free_bytes);
    json_builder_u64(&o, "sm_count", limits->sm_count);
    return json_builder_end(&o);
}

enum status gpu_limits_from_json(const json_t *json, struct gpu_limits *out, struct err *err)
{
    struct json_reader in;
    const char *arena;

    *out = (struct gpu_limits){0};
    json_reader_begin(&in, json, "limits", JSON_READER_STRICT, STATUS_PROTOCOL, err);
    arena = json_reader_word(&in, "arena");
    if (arena && !arena_kind_from_name(arena, &out->arena))
        json_reader_fail(&in, "arena", "must be alias, plain or simulated");
    json_reader_u64(&in, "range_bytes", &out->range_bytes);
    json_reader_u64(&in, "backing_bytes", &out->backing_bytes);
    json_reader_u64(&in, "granule_bytes", &out->granule_bytes);
    json_reader_u64(&in, "device_memory_bytes", &out->device_memory_bytes);
    json_reader_u64(&in, "free_bytes", &out->free_bytes);
    json_reader_u32(&in, "sm_count", REACH_MAX_SMS, &out->sm_count);
    return json_reader_end(&in);
}
