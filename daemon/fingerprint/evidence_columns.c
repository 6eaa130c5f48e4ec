/* evidence_columns.c: see evidence_columns.h. `margin` alone says which elements have evidence; the
 * other two parts are held against it. */
#include "fingerprint/evidence_columns.h"

#include "fingerprint/fingerprint.h"

const struct evidence_columns evidence_columns_groups = {
    .field = "group_evidence",
    .names = evidence_group_names,
    .number_count = GROUP_EVIDENCE_COUNT,
    .stride_bytes = sizeof(struct sm_group),
};
const struct evidence_columns evidence_columns_curve = {
    .field = "curve_evidence",
    .names = evidence_curve_names,
    .number_count = CURVE_EVIDENCE_COUNT,
    .stride_bytes = sizeof(struct curve_point),
};
const struct evidence_columns evidence_columns_points = {
    .field = "point_evidence",
    .names = evidence_rate_point_names,
    .number_count = RATE_POINT_EVIDENCE_COUNT,
    .stride_bytes = sizeof(struct rate_point),
};

enum evidence_field { METHOD = 0, REPEATS, MARGIN, COLUMN_COUNT };
static const char *const part_names[COLUMN_COUNT] = {"method", "repeats", "margin"};

/* ---- writing ---- */

/* One number's evidence, of each element. */
struct column {
    const unsigned char *first;
    size_t stride_bytes;
    uint32_t count;
};

static const struct evidence *element(const struct column *c, uint32_t i)
{
    return (const void *)(c->first + i * c->stride_bytes);
}

/* The first element that has any; NULL: none has. */
static const struct evidence *first_of(const struct column *c)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (element(c, i)->method != EVIDENCE_NONE)
            return element(c, i);
    return NULL;
}

static bool same(const struct evidence *a, const struct evidence *b, enum evidence_field part)
{
    if (part == METHOD)
        return a->method == b->method;
    if (part == REPEATS)
        return a->repeats == b->repeats;
    return a->margin <= b->margin && a->margin >= b->margin; /* what is not a number is in no way */
}

static bool is_common(const struct column *c, const struct evidence *e, enum evidence_field part)
{
    for (uint32_t i = 0; i < c->count; i++) {
        const bool has = element(c, i)->method != EVIDENCE_NONE;
        if (has ? !same(element(c, i), e, part) : part == MARGIN)
            return false;
    }
    return true;
}

static json_t *value_to_json(const struct evidence *e, enum evidence_field part)
{
    if (e->method == EVIDENCE_NONE)
        return json_null();
    if (part == METHOD)
        return json_string(evidence_method_name(e->method));
    return part == REPEATS ? json_integer(e->repeats) : json_real(e->margin);
}

static json_t *part_to_json(const struct column *c, const struct evidence *first,
                            enum evidence_field part)
{
    json_t *array;

    if (is_common(c, first, part))
        return value_to_json(first, part);
    array = json_array();
    for (uint32_t i = 0; i < c->count; i++)
        if (!json_builder_append(&array, value_to_json(element(c, i), part)))
            break;
    return array;
}

static json_t *column_to_json(const struct column *c, const struct evidence *first)
{
    struct json_builder o;

    json_builder_begin(&o);
    for (int part = METHOD; part < COLUMN_COUNT; part++)
        json_builder_value(&o, part_names[part], part_to_json(c, first, (enum evidence_field)part));
    return json_builder_end(&o);
}

void evidence_columns_write(struct json_builder *o, const struct evidence_columns *c,
                            const struct evidence *first, uint32_t count)
{
    struct json_builder inner;

    json_builder_begin(&inner);
    for (uint32_t k = 0; k < c->number_count; k++) {
        const struct column column = {
            .first = (const void *)(first + k), .stride_bytes = c->stride_bytes, .count = count};
        const struct evidence *const some = first_of(&column);
        if (some)
            json_builder_value(&inner, c->names[k], column_to_json(&column, some));
    }
    json_builder_value(o, c->field, json_builder_end(&inner));
}

/* ---- reading ---- */

/* One value, or a list as long as the one beside it. */
static const json_t *take_part(struct json_reader *in, enum evidence_field part, uint32_t count)
{
    const json_t *const value = json_object_get(in->object, part_names[part]);

    if (!value)
        json_reader_fail(in, part_names[part], "missing");
    else if (json_is_array(value) && json_array_size(value) != count)
        json_reader_fail(in, part_names[part], "has %zu entries for a list of %u",
                         json_array_size(value), count);
    return value;
}

/* What the part says of element i. */
static const json_t *entry(const json_t *part, uint32_t i)
{
    return json_is_array(part) ? json_array_get(part, i) : part;
}

static void method_from_json(struct json_reader *in, const json_t *json, uint32_t i,
                             struct evidence *out)
{
    if (!json_is_string(json))
        json_reader_fail(in, part_names[METHOD],
                         "must be a text for element %u, which has a margin", i);
    else if (!evidence_method_from_name(json_string_value(json), &out->method) ||
             out->method == EVIDENCE_NONE)
        json_reader_fail(in, part_names[METHOD], "is none that this release knows");
}

static void repeats_from_json(struct json_reader *in, const json_t *json, uint32_t i,
                              struct evidence *out)
{
    const json_int_t v = json_integer_value(json);

    if (v < 1 || v > UINT32_MAX)
        json_reader_fail(in, part_names[REPEATS],
                         "must be an integer from 1 to %u for element %u, which has a margin",
                         UINT32_MAX, i);
    else
        out->repeats = (uint32_t)v;
}

/* Nulls stand at the same places in all lists. */
static void none_from_json(struct json_reader *in, const json_t *const *parts, uint32_t i)
{
    for (int part = METHOD; part < MARGIN; part++)
        if (json_is_array(parts[part]) && !json_is_null(entry(parts[part], i)))
            json_reader_fail(in, part_names[part], "must be null for element %u, whose margin is",
                             i);
}

/* True where the element has evidence. */
static bool element_from_json(struct json_reader *in, const json_t *const *parts, uint32_t i,
                              struct evidence *out)
{
    const json_t *const margin = entry(parts[MARGIN], i);

    if (out->method != EVIDENCE_NONE)
        json_reader_fail(in, part_names[METHOD], "is told inside element %u too", i);
    if (json_is_null(margin)) {
        none_from_json(in, parts, i);
        return false;
    }
    if (!json_is_number(margin))
        json_reader_fail(in, part_names[MARGIN],
                         "must be a number, or a list of numbers and nulls");
    method_from_json(in, entry(parts[METHOD], i), i, out);
    repeats_from_json(in, entry(parts[REPEATS], i), i, out);
    out->margin = json_number_value(margin);
    return true;
}

static void column_from_json(struct json_reader *in, size_t stride_bytes, struct evidence *first,
                             uint32_t count)
{
    const json_t *parts[COLUMN_COUNT];
    unsigned char *const bytes = (void *)first;
    bool any = false;

    for (int part = METHOD; part < COLUMN_COUNT; part++)
        parts[part] = take_part(in, (enum evidence_field)part, count);
    for (uint32_t i = 0; json_reader_ok(in) && i < count; i++)
        any |= element_from_json(in, parts, i, (void *)(bytes + i * stride_bytes));
    if (!any)
        json_reader_fail(in, part_names[MARGIN], "must be known for one element at least");
}

void evidence_columns_read(struct json_reader *in, const struct evidence_columns *c,
                           struct evidence *first, uint32_t count)
{
    const json_t *const json = json_reader_object(in, c->field);
    struct json_reader inner;

    if (!json)
        return;
    json_reader_begin_inside(&inner, in, json, c->field, -1);
    for (uint32_t k = 0; k < c->number_count; k++) {
        const json_t *const column = json_reader_object(&inner, c->names[k]);
        struct json_reader of;
        if (!column)
            continue;
        json_reader_begin_inside(&of, &inner, column, c->names[k], -1);
        column_from_json(&of, c->stride_bytes, first + k, count);
        json_reader_absorb(&inner, json_reader_end(&of));
    }
    json_reader_absorb(in, json_reader_end(&inner));
}
