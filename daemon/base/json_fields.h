/* json_fields.h: the fields of a struct as a table, which one encoder and one decoder walk.
 *
 *     static const struct json_field fields[] = {
 *         {"sm_count", JSON_FIELD_U32, .offset = offsetof(struct gpu, sm_count), .max = 512},
 *     };
 *
 * Names are written in the order of the table.
 */
#pragma once

#include "base/json_reader.h"
#include "base/json_writer.h"

enum json_field_type {
    JSON_FIELD_U32 = 0,      /* uint32_t, at most `max`; a `max` of 0 means no limit */
    JSON_FIELD_U64,          /* uint64_t */
    JSON_FIELD_F64,          /* double */
    JSON_FIELD_U32_MAYBE,    /* struct maybe_u32 */
    JSON_FIELD_U64_MAYBE,    /* struct maybe_u64 */
    JSON_FIELD_F64_MAYBE,    /* struct maybe_f64 */
    JSON_FIELD_BOOL,         /* bool */
    JSON_FIELD_TIME,         /* int64_t, seconds since 1970 */
    JSON_FIELD_TEXT,         /* char[length] */
    JSON_FIELD_TEXT_OR_NULL, /* char[length]; "" is null */
    JSON_FIELD_U64_REPORTED, /* uint64_t; 0 is null, with the reason "not-reported" */
    JSON_FIELD_U64_LIST,     /* uint64_t[length] */
    JSON_FIELD_U16_LIST,     /* uint16_t[length], each at most `max` */
    JSON_FIELD_U16_OR_NULL,  /* uint16_t[length]; UINT16_MAX is null */
    JSON_FIELD_NAME,         /* an enumerator, written by its name */
    JSON_FIELD_TYPE_COUNT
};

/* The names of an enumeration whose values are 0 to count - 1. */
struct json_names {
    const char *(*name)(unsigned value);
    unsigned count;
};

struct json_field {
    const char *name;
    enum json_field_type type;
    size_t offset;
    uint32_t length;
    uint32_t max;
    size_t count_offset; /* for lists: offset of the uint32_t with the number of elements */
    unsigned variants;   /* bits of the variants that have the field; 0 means all */
    const struct json_names *names; /* JSON_FIELD_NAME */
    bool optional; /* the field may be missing; then a maybe is unknown, and any other value is left
                      unchanged */
    enum reason absent; /* the reason of a maybe that is missing; REASON_NONE means not reported */
};

/* Writes the fields of `from` that a struct with these variants has. `variant` is a set of bits or
 * 0. */
void json_fields_write(struct json_writer *t, const struct json_field *fields, size_t count,
                       unsigned variant, const void *from);
/* Reads the same fields into `to`. */
void json_fields_read(struct json_reader *in, const struct json_field *fields, size_t count,
                      unsigned variant, void *to);

/* Returns the enumerator called `name`, or names->count if there is no such enumerator. */
unsigned json_names_find(const struct json_names *names, const char *name);
/* Reads the name of an enumerator, and writes the enumerator to `out`. */
void json_reader_name(struct json_reader *in, const char *field, const struct json_names *names,
                      void *out);
