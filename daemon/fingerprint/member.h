/* member.h: defines the tables of members.c, which describe the members of a fingerprint. A row is
 * the only description of a number: name, type, range, meaning, and use in the rest of the project.
 * Reading, writing, checking, merging, comparing and printing walk these tables. The JSON schema,
 * the components of api/openapi.yaml and docs/fingerprint.md are generated from them (make
 * generated).
 *
 * The end of the name is the unit (member_unit). Rows are in the order of the document. The tables
 * are constant, and the functions may be called on any thread.
 */
#pragma once

#include "base/json_fields.h"
#include "fingerprint/evidence.h"

#include <stddef.h>
#include <string.h>

enum member_type {
    MEMBER_U32 = JSON_FIELD_U32,
    MEMBER_U64 = JSON_FIELD_U64,
    MEMBER_F64 = JSON_FIELD_F64,
    MEMBER_U32_MAYBE = JSON_FIELD_U32_MAYBE, /* omitted if optional and not measured */
    MEMBER_U64_MAYBE = JSON_FIELD_U64_MAYBE,
    MEMBER_F64_MAYBE = JSON_FIELD_F64_MAYBE,
    MEMBER_TEXT = JSON_FIELD_TEXT, /* a text; null if it is optional and empty */
    MEMBER_TIME = JSON_FIELD_TIME,
    MEMBER_NAME = JSON_FIELD_NAME,
    MEMBER_OBJECT = JSON_FIELD_TYPE_COUNT, /* a struct; omitted if it is optional and no number of
                                              it was measured */
    MEMBER_LIST,  /* an array of structs; omitted if it is optional and empty */
    MEMBER_NOTES, /* an array of texts */
    /* Arrays of SM ids and of group numbers. */
    MEMBER_PARTITION,  /* struct sm_partition: the SMs of each group; omitted without groups */
    MEMBER_TWO_GROUPS, /* uint16_t[2], two groups, the lower one first; if optional, written only if
                          the number of the previous row is known */
    MEMBER_CANDIDATES, /* member `candidates` of struct disabled_sms */
    MEMBER_LOST, /* the SMs that each group lacks; computed for the document and not read back */
    MEMBER_SM_PENALTIES, /* struct maybe_f64[REACH_MAX_SMS] */
    /* Members of an element of topology.groups, which describes one group of the partition. */
    MEMBER_INDEX,     /* index of the group */
    MEMBER_GROUP_SMS, /* SM ids of the group; in the struct a uint32_t, the number of its SMs */
    MEMBER_GROUP_PENALTIES, /* penalties of the SMs of the group, in the order of the SMs; omitted
                               if all are unknown */
};

/* The use of a number in the comparison of chips (daemon/compare). */
enum member_class {
    CLASS_NONE = 0, /* not compared */
    CLASS_DESIGN,   /* fixed by the design of a model: a fleet has few different values */
    CLASS_MEASURED, /* differs from one measurement to the next */
    CLASS_SPLIT /* a measured number of classes; 1 means that no gap between classes was clear */
};

/* The relation between a number and another one of its object, if both are known. */
enum member_relation { RELATION_NONE = 0, RELATION_AT_LEAST, RELATION_AT_MOST, RELATION_ABOVE };

struct object;
struct member {
    const char *name; /* name in the document; NULL if it has no member of its own */
    const char *doc;  /* description of the member in one sentence */
    enum member_type type;
    bool optional;
    size_t offset; /* offset in the struct of the object */
    size_t size;   /* size of the member; for MEMBER_LIST, size of the whole array */
    const struct json_names *names; /* MEMBER_NAME: names of the values */
    const struct object *object;    /* MEMBER_OBJECT, MEMBER_LIST: rows of the struct */
    size_t count_offset;            /* MEMBER_LIST, MEMBER_NOTES: offset of the uint32_t count */
    uint32_t min_count, max_count;  /* limits of the count; a list may also be empty */
    /* MEMBER_LIST: returns whether a document omits an element; NULL if it omits none. */
    bool (*omits)(const void *element);
    const char *columns; /* MEMBER_LIST: the field with the evidence of the elements */
    /* The number is above 0 if `positive` is true, at least `min`, and at most `max` unless `max`
     * is 0. */
    bool positive;
    double min, max;
    enum member_relation relation;
    size_t other_offset; /* offset and name of the other number of the relation */
    const char *other;
    /* Keys distinguish the elements of a list. `ordered` means that elements are in ascending order
     * of their keys. `element` introduces an element in a sentence; each "%" in it is replaced by
     * the next key. */
    bool key;
    bool ordered;
    const char *element;
    bool is_long; /* a short report leaves this list out */
    /* A part of a fingerprint (parts.h) consists of the rows that are in it. A row that is an
     * object or a list is copied whole. The inner rows of such a row count as known numbers of the
     * part if they are also in the part. */
    uint8_t part;     /* enum fingerprint_part or enum level_part, plus 1; 0 means no part */
    bool for_planner; /* the planner reads the member, so the environment of a job contains it */
    bool uncounted;  /* copied with the part, but not counted among the known numbers of the part */
    size_t evidence; /* offset of the evidence in the struct; 0 means no evidence */
    const char *of_evidence; /* name of the evidence: the number that it belongs to */
    enum member_class class; /* use in comparisons of chips */
    bool diffed;             /* compared by fingerprint_compare (diff.h) */
    const char *label;       /* label for people; if NULL, member_label derives it from the name */
    const char *purpose;     /* reason why the number is measured, if no answer uses it */
};

struct object {
    const char *name; /* name of the component in api/openapi.yaml */
    const char *doc;
    const struct member *members;
    uint32_t count;
    size_t size; /* size of its struct */
};

/* Returns the row called `name`, or NULL if the object has no such row. */
const struct member *object_member(const struct object *o, const char *name);

/* Returns the unit of a number: "bytes", "cycles", "GB/s", or "" for a count or a ratio. */
const char *member_unit(const struct member *m);

enum { MEMBER_LABEL_BYTES = 64 };
/* Writes the label or, without a label, the name without its unit: "miss penalty". Returns `out`,
 * of MEMBER_LABEL_BYTES. */
char *member_label(const struct member *m, char *out);

/* Returns the next key after `m` (the first key if `m` is NULL), or NULL if there is none. Keys
 * that are texts are skipped, because they are not printed. */
const struct member *object_next_key(const struct object *o, const struct member *m);
/* Prints a key, or several with commas between them: "64G", "read,32". `index` is the place of the
 * element in its list. Returns `out`. */
char *object_key(const struct object *o, const void *base, uint32_t index, char *out, size_t size);
/* Prints `element` with the keys inserted: "region of 64 GiB ". Returns `out`. */
char *member_element(const struct member *list, const void *base, uint32_t index, char *out,
                     size_t size);
/* Compares two elements by their keys. Returns a number below 0, 0 or above 0. */
int object_compare_keys(const struct object *o, const void *a, const void *b);

static inline const void *member_at(const struct member *m, const void *base)
{
    return (const char *)base + m->offset;
}

/* Returns whether the member is a number, a text or a name, which is read and written as a field of
 * that type. */
static inline bool member_is_scalar(const struct member *m)
{
    return (unsigned)m->type < JSON_FIELD_TYPE_COUNT;
}

static inline struct json_field member_field(const struct member *m)
{
    const bool is_nullable = m->type == MEMBER_TEXT && m->optional;

    return (struct json_field){.name = m->name,
                               .type = is_nullable ? JSON_FIELD_TEXT_OR_NULL
                                                   : (enum json_field_type)m->type,
                               .offset = m->offset,
                               .length = (uint32_t)m->size,
                               .names = m->names};
}

/* Returns the number of elements of a MEMBER_LIST or MEMBER_NOTES of the struct at `base`. */
static inline uint32_t member_count(const struct member *m, const void *base)
{
    return *(const uint32_t *)(const void *)((const char *)base + m->count_offset);
}

static inline uint32_t *member_counter(const struct member *m, void *base)
{
    return (void *)((char *)base + m->count_offset);
}

/* The state of a number that may be absent. All three structs of base/maybe.h begin with it. */
struct member_state {
    enum known known;
    enum reason reason;
};

static inline struct member_state member_state(const struct member *m, const void *base)
{
    struct member_state s;

    memcpy(&s, member_at(m, base), sizeof s);
    return s;
}

static inline bool member_is_maybe(const struct member *m)
{
    return m->type >= MEMBER_U32_MAYBE && m->type <= MEMBER_F64_MAYBE;
}

/* Returns a number as a double. If the number may be absent, the value is valid only if the number
 * is known. */
double member_value(const struct member *m, const void *base);
/* Compares two numbers, each given by a row and a struct. Returns a number below 0, 0 or above
 * 0. */
int member_compare(const struct member *m, const void *base, const struct member *n,
                   const void *other_base);

/* Returns whether each number of an optional MEMBER_OBJECT is "not measured". With `planner_only`,
 * only the numbers that the planner reads count. */
bool member_is_unmeasured(const struct member *m, const void *base, bool planner_only);

/* Gives `reason` to each unknown number of the struct. Numbers that are known or not observable
 * keep their state. */
void object_set_reason(const struct object *o, void *base, enum reason reason);

/* Returns the next row after `m` that has evidence, or NULL after the last one. If `m` is NULL,
 * returns the first such row. Rows that share the evidence of an earlier row are skipped. */
const struct member *object_next_evidence(const struct object *o, const struct member *m);
/* Returns whether a number that has the evidence of row `m` is known. */
bool object_evidence_is_known(const struct object *o, const struct member *m, const void *base);

static inline struct evidence *member_evidence(const struct member *m, const void *base)
{
    return (void *)((char *)(uintptr_t)base + m->evidence);
}
