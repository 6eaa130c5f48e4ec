/* json_fields.c: see json_fields.h. */
#include "base/json_fields.h"

#include <stdio.h>
#include <string.h>

static bool has_field(const struct json_field *f, unsigned variant)
{
    return f->variants == 0 || (f->variants & variant) != 0;
}

static void write_list(struct json_writer *t, const struct json_field *f, const void *from)
{
    const void *const items = (const char *)from + f->offset;
    const uint32_t count = *(const uint32_t *)((const char *)from + f->count_offset);

    json_writer_open(t, f->name, '[');
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t v = f->type == JSON_FIELD_U64_LIST ? ((const uint64_t *)items)[i]
                                                          : ((const uint16_t *)items)[i];
        if (f->type == JSON_FIELD_U16_OR_NULL && v == UINT16_MAX)
            json_writer_null(t, NULL);
        else
            json_writer_u64(t, NULL, v);
    }
    json_writer_close(t, ']');
}

static void write_name(struct json_writer *t, const struct json_field *f, unsigned value)
{
    if (value < f->names->count)
        json_writer_text(t, f->name, f->names->name(value));
    else
        t->failed = true;
}

static void write_field(struct json_writer *t, const struct json_field *f, const void *from)
{
    const void *const at = (const char *)from + f->offset;

    switch (f->type) {
    case JSON_FIELD_U64:
        json_writer_u64(t, f->name, *(const uint64_t *)at);
        break;
    case JSON_FIELD_U32:
        json_writer_u64(t, f->name, *(const uint32_t *)at);
        break;
    case JSON_FIELD_F64:
        json_writer_real(t, f->name, *(const double *)at);
        break;
    case JSON_FIELD_BOOL:
        json_writer_bool(t, f->name, *(const bool *)at);
        break;
    case JSON_FIELD_TIME:
        json_writer_time(t, f->name, *(const int64_t *)at);
        break;
    case JSON_FIELD_TEXT:
        json_writer_text(t, f->name, at);
        break;
    case JSON_FIELD_TEXT_OR_NULL:
        json_writer_text_or_null(t, f->name, at);
        break;
    case JSON_FIELD_U32_MAYBE:
        json_writer_u32_maybe(t, f->name, *(const struct maybe_u32 *)at);
        break;
    case JSON_FIELD_U64_MAYBE:
        json_writer_u64_maybe(t, f->name, *(const struct maybe_u64 *)at);
        break;
    case JSON_FIELD_F64_MAYBE:
        json_writer_f64_maybe(t, f->name, *(const struct maybe_f64 *)at);
        break;
    case JSON_FIELD_U64_REPORTED:
        json_writer_u64_maybe(t, f->name,
                              *(const uint64_t *)at ? KNOWN_U64(*(const uint64_t *)at)
                                                    : UNKNOWN_U64(REASON_NOT_REPORTED));
        break;
    case JSON_FIELD_U64_LIST:
    case JSON_FIELD_U16_LIST:
    case JSON_FIELD_U16_OR_NULL:
        write_list(t, f, from);
        break;
    case JSON_FIELD_NAME:
        write_name(t, f, *(const unsigned *)at);
        break;
    case JSON_FIELD_TYPE_COUNT:
        break;
    }
}

void json_fields_write(struct json_writer *t, const struct json_field *fields, size_t count,
                       unsigned variant, const void *from)
{
    for (size_t i = 0; i < count; i++) {
        if (has_field(&fields[i], variant))
            write_field(t, &fields[i], from);
    }
}

unsigned json_names_find(const struct json_names *names, const char *name)
{
    unsigned value = 0;

    while (value < names->count && strcmp(name, names->name(value)) != 0)
        value++;
    return value;
}

/* Fails with a message such as "must be unknown, lru or not-lru". */
static void fail_name(struct json_reader *in, const char *field, const struct json_names *names)
{
    char all[96] = "";
    size_t n = 0;

    for (unsigned i = 0; i < names->count && n < sizeof all; i++)
        n += (size_t)snprintf(all + n, sizeof all - n, "%s%s",
                              i == 0                 ? ""
                              : i + 1 < names->count ? ", "
                                                     : " or ",
                              names->name(i));
    json_reader_fail(in, field, "must be %s", all);
}

void json_reader_name(struct json_reader *in, const char *field, const struct json_names *names,
                      void *out)
{
    const char *const word = json_reader_word(in, field);
    const unsigned value = word ? json_names_find(names, word) : names->count;

    if (value < names->count)
        *(unsigned *)out = value;
    else if (word)
        fail_name(in, field, names);
}

static uint32_t read_list(struct json_reader *in, const struct json_field *f, void *at)
{
    const bool null = f->type == JSON_FIELD_U16_OR_NULL;
    const json_t *array;
    uint64_t *const out = at;

    if (f->type != JSON_FIELD_U64_LIST)
        return json_reader_u16_array(in, f->name, f->length, f->max, null ? UINT16_MAX : UINT32_MAX,
                                     at);
    array = json_reader_array(in, f->name, f->length);
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *const v = json_array_get(array, i);

        if (!json_is_integer(v) || json_integer_value(v) < 0)
            json_reader_fail(in, f->name, "element %zu must be an integer, 0 or more", i);
        else
            out[i] = (uint64_t)json_integer_value(v);
    }
    return (uint32_t)json_array_size(array);
}

static void read_field(struct json_reader *in, const struct json_field *f, void *to)
{
    void *const at = (char *)to + f->offset;
    struct maybe_u64 reported = {.known = MAYBE_UNKNOWN};
    struct maybe_f64 real = {.known = MAYBE_UNKNOWN};

    switch (f->type) {
    case JSON_FIELD_U64:
        json_reader_u64(in, f->name, at);
        break;
    case JSON_FIELD_U32:
        json_reader_u32(in, f->name, f->max ? f->max : UINT32_MAX, at);
        break;
    case JSON_FIELD_F64:
        real.v = *(const double *)at;
        json_reader_f64_maybe(in, f->name, &real);
        *(double *)at = real.v;
        break;
    case JSON_FIELD_BOOL:
        json_reader_bool(in, f->name, at);
        break;
    case JSON_FIELD_TIME:
        json_reader_time(in, f->name, at);
        break;
    case JSON_FIELD_TEXT:
        json_reader_text(in, f->name, at, f->length);
        break;
    case JSON_FIELD_TEXT_OR_NULL:
        json_reader_text_or_null(in, f->name, at, f->length);
        break;
    case JSON_FIELD_U32_MAYBE:
        json_reader_u32_maybe(in, f->name, at);
        break;
    case JSON_FIELD_U64_MAYBE:
        json_reader_u64_maybe(in, f->name, at);
        break;
    case JSON_FIELD_F64_MAYBE:
        json_reader_f64_maybe(in, f->name, at);
        break;
    case JSON_FIELD_U64_REPORTED:
        json_reader_u64_maybe(in, f->name, &reported);
        *(uint64_t *)at = reported.v;
        break;
    case JSON_FIELD_U64_LIST:
    case JSON_FIELD_U16_LIST:
    case JSON_FIELD_U16_OR_NULL:
        *(uint32_t *)((char *)to + f->count_offset) = read_list(in, f, at);
        break;
    case JSON_FIELD_NAME:
        json_reader_name(in, f->name, f->names, at);
        break;
    case JSON_FIELD_TYPE_COUNT:
        break;
    }
}

void json_fields_read(struct json_reader *in, const struct json_field *fields, size_t count,
                      unsigned variant, void *to)
{
    for (size_t i = 0; i < count; i++) {
        const struct json_field *const f = &fields[i];
        void *const at = (char *)to + f->offset;

        if (!has_field(f, variant))
            continue;
        if (!f->optional || json_object_get(in->object, f->name))
            read_field(in, f, to);
        else if (f->type == JSON_FIELD_U32_MAYBE)
            *(struct maybe_u32 *)at = UNKNOWN_U32(f->absent ? f->absent : REASON_NOT_REPORTED);
        else if (f->type == JSON_FIELD_U64_MAYBE)
            *(struct maybe_u64 *)at = UNKNOWN_U64(f->absent ? f->absent : REASON_NOT_REPORTED);
    }
}
