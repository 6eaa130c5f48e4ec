/* evidence_json.c: see evidence_json.h. In a column, `margin` alone determines which elements have
 * evidence. `method` and `repeats` must have nulls for the same elements. */
#include "fingerprint/evidence_json.h"

enum evidence_field { METHOD = 0, REPEATS, MARGIN, FIELD_COUNT };
static const char *const field_names[FIELD_COUNT] = {"method", "repeats", "margin"};

struct column {
    char *first;
    size_t stride_bytes;
    uint32_t count;
};

/* Returns the evidence of number `m` of `count` adjacent objects. */
static struct column column_of(const struct object *o, const void *first, uint32_t count,
                               const struct member *m)
{
    return (struct column){
        .first = (char *)(uintptr_t)first + m->evidence, .stride_bytes = o->size, .count = count};
}

static struct evidence *element(const struct column *c, uint32_t i)
{
    return (void *)(c->first + i * c->stride_bytes);
}

/* ---- writing ---- */

/* Returns the first evidence of the column, or NULL if no element has evidence. */
static const struct evidence *first_of(const struct column *c)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (element(c, i)->method != EVIDENCE_NONE)
            return element(c, i);
    return NULL;
}

static bool same(const struct evidence *a, const struct evidence *b, enum evidence_field field)
{
    if (field == METHOD)
        return a->method == b->method;
    if (field == REPEATS)
        return a->repeats == b->repeats;
    return a->margin <= b->margin && a->margin >= b->margin; /* NaN: never */
}

static bool is_common(const struct column *c, const struct evidence *e, enum evidence_field field)
{
    for (uint32_t i = 0; i < c->count; i++) {
        const bool has = element(c, i)->method != EVIDENCE_NONE;
        if (has ? !same(element(c, i), e, field) : field == MARGIN)
            return false;
    }
    return true;
}

static void write_value(struct json_writer *t, const char *name, const struct evidence *e,
                        enum evidence_field field)
{
    if (e->method == EVIDENCE_NONE)
        json_writer_null(t, name);
    else if (field == METHOD)
        json_writer_text(t, name, evidence_method_name(e->method));
    else if (field == REPEATS)
        json_writer_u64(t, name, e->repeats);
    else
        json_writer_real(t, name, e->margin);
}

/* Writes one field of a column. `e` is the first evidence of the column. */
static void write_field(struct json_writer *t, const struct column *c, const struct evidence *e,
                        enum evidence_field field)
{
    if (is_common(c, e, field)) {
        write_value(t, field_names[field], e, field);
        return;
    }
    json_writer_open(t, field_names[field], '[');
    for (uint32_t i = 0; i < c->count; i++)
        write_value(t, NULL, element(c, i), field);
    json_writer_close(t, ']');
}

static void write_column(struct json_writer *t, const char *name, const struct column *c)
{
    const struct evidence *const e = first_of(c);

    if (!e)
        return;
    json_writer_open(t, name, '{');
    for (enum evidence_field field = METHOD; field < FIELD_COUNT; field++)
        write_field(t, c, e, field);
    json_writer_close(t, '}');
}

void evidence_write(struct json_writer *t, const char *name, const struct object *o,
                    const void *first, uint32_t count)
{
    json_writer_open(t, name, '{');
    for (const struct member *m = NULL; (m = object_next_evidence(o, m));) {
        const struct column c = column_of(o, first, count, m);
        write_column(t, m->of_evidence, &c);
    }
    json_writer_close(t, '}');
}

/* ---- reading ---- */

/* Returns the value of a field: one value for all elements, or an array with the length of the
 * list. */
static const json_t *need_field(struct json_reader *in, enum evidence_field field, uint32_t count)
{
    const json_t *const value = json_object_get(in->object, field_names[field]);

    if (!value)
        json_reader_fail(in, field_names[field], "missing");
    else if (json_is_array(value) && json_array_size(value) != count)
        json_reader_fail(in, field_names[field], "has %zu entries for a list of %u",
                         json_array_size(value), count);
    return value;
}

static const json_t *entry(const json_t *field, uint32_t i)
{
    return json_is_array(field) ? json_array_get(field, i) : field;
}

static void method_from_json(struct json_reader *in, const json_t *json, uint32_t i,
                             struct evidence *out)
{
    if (!json_is_string(json))
        json_reader_fail(in, field_names[METHOD],
                         "must be a string for element %u, which has a margin", i);
    else if (!evidence_method_from_name(json_string_value(json), &out->method) ||
             out->method == EVIDENCE_NONE)
        json_reader_fail(in, field_names[METHOD], "is unknown to this release");
}

static void repeats_from_json(struct json_reader *in, const json_t *json, uint32_t i,
                              struct evidence *out)
{
    const json_int_t v = json_integer_value(json);

    if (v < 1 || v > UINT32_MAX)
        json_reader_fail(in, field_names[REPEATS],
                         "must be an integer from 1 to %u for element %u, which has a margin",
                         UINT32_MAX, i);
    else
        out->repeats = (uint32_t)v;
}

/* Reads the evidence of element i. Returns false if the element has no evidence; the arrays then
 * must have null at index i. */
static bool element_from_json(struct json_reader *in, const json_t *const *fields, uint32_t i,
                              struct evidence *out)
{
    const json_t *const margin = entry(fields[MARGIN], i);

    if (out->method != EVIDENCE_NONE)
        json_reader_fail(in, field_names[METHOD], "is in element %u of the list too", i);
    for (int field = METHOD; json_is_null(margin) && field < MARGIN; field++)
        if (json_is_array(fields[field]) && !json_is_null(entry(fields[field], i)))
            json_reader_fail(in, field_names[field], "must be null for element %u, whose margin is",
                             i);
    if (json_is_null(margin))
        return false;
    if (!json_is_number(margin))
        json_reader_fail(in, field_names[MARGIN],
                         "must be a number, or an array of numbers and nulls");
    method_from_json(in, entry(fields[METHOD], i), i, out);
    repeats_from_json(in, entry(fields[REPEATS], i), i, out);
    out->margin = json_number_value(margin);
    return true;
}

static void column_from_json(struct json_reader *outer, const char *name, const struct column *c)
{
    const json_t *const json = json_reader_object(outer, name);
    const json_t *fields[FIELD_COUNT];
    struct json_reader in;
    bool any = false;

    if (!json)
        return;
    json_reader_begin_inside(&in, outer, json, name, -1);
    for (int field = METHOD; field < FIELD_COUNT; field++)
        fields[field] = need_field(&in, (enum evidence_field)field, c->count);
    for (uint32_t i = 0; json_reader_ok(&in) && i < c->count; i++)
        any |= element_from_json(&in, fields, i, element(c, i));
    if (!any)
        json_reader_fail(&in, field_names[MARGIN], "must be known for at least one element");
    json_reader_absorb(outer, json_reader_end(&in));
}

void evidence_read(struct json_reader *in, const char *name, const struct object *o, void *first,
                   uint32_t count)
{
    const json_t *const json = json_reader_object(in, name);
    struct json_reader inner;

    if (!json)
        return;
    json_reader_begin_inside(&inner, in, json, name, -1);
    for (const struct member *m = NULL; (m = object_next_evidence(o, m));) {
        const struct column c = column_of(o, first, count, m);
        column_from_json(&inner, m->of_evidence, &c);
    }
    json_reader_absorb(in, json_reader_end(&inner));
}
