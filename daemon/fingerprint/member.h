/* member.h: how the tables of members.c describe the members of a fingerprint. A row is the one
 * description of a number: its name and type, its range, its meaning, and what the rest of the
 * project does with it. Reading, writing, checking, merging, comparing and printing walk these
 * tables. The JSON schema, the components of api/openapi.yaml and docs/fingerprint.md are generated
 * from them (make generated).
 *
 * The unit is the end of the name: member_unit. Rows are in the order of the document. Constant
 * data; any thread.
 */
#ifndef REACH_FINGERPRINT_MEMBER_H
#define REACH_FINGERPRINT_MEMBER_H

#include "base/json_fields.h"
#include "fingerprint/evidence.h"

#include <stddef.h>
#include <string.h>

enum member_type {
    MEMBER_U32 = JSON_FIELD_U32,
    MEMBER_U64 = JSON_FIELD_U64,
    MEMBER_F64 = JSON_FIELD_F64,
    MEMBER_U32_MAYBE = JSON_FIELD_U32_MAYBE, /* and the next two. Optional: omitted if it was not
                                                measured */
    MEMBER_U64_MAYBE = JSON_FIELD_U64_MAYBE,
    MEMBER_F64_MAYBE = JSON_FIELD_F64_MAYBE,
    MEMBER_TEXT = JSON_FIELD_TEXT, /* optional: null if empty */
    MEMBER_TIME = JSON_FIELD_TIME,
    MEMBER_NAME = JSON_FIELD_NAME,
    MEMBER_OBJECT = JSON_FIELD_TYPE_COUNT, /* a struct; optional: of numbers that may be absent,
                                              omitted if none of them was measured */
    MEMBER_LIST,                           /* an array of structs; optional: omitted if empty */
    MEMBER_NOTES,                          /* an array of texts */
    /* Arrays of SM ids and of group numbers. */
    MEMBER_PARTITION,    /* struct sm_partition: the SMs of each group; omitted without groups */
    MEMBER_TWO_GROUPS,   /* uint16_t[2], the lower one first; optional: only if the number of the
                            row before is known */
    MEMBER_CANDIDATES,   /* of struct disabled_sms */
    MEMBER_LOST,         /* the SMs that each group lacks: derived, written only */
    MEMBER_SM_PENALTIES, /* struct maybe_f64[REACH_MAX_SMS] */
    /* Of an element of topology.groups, which is about one group of the partition. */
    MEMBER_INDEX,           /* its index */
    MEMBER_GROUP_SMS,       /* uint32_t in memory: their number */
    MEMBER_GROUP_PENALTIES, /* of its SMs, in their order; omitted if none is known */
};

/* How chips are compared by a number (daemon/compare). */
enum member_class {
    CLASS_NONE = 0, /* not at all */
    CLASS_DESIGN,   /* a model has it by its design: a fleet has few different values */
    CLASS_MEASURED, /* differs from one measurement to the next */
    CLASS_SPLIT     /* the same for a number of classes: 1 means that no gap was clear */
};

/* What holds between a number and another one of its object, if both are known. */
enum member_relation { RELATION_NONE = 0, RELATION_AT_LEAST, RELATION_AT_MOST, RELATION_ABOVE };

struct object;
struct member {
    const char *name; /* NULL if the rows of groups write and read it */
    const char *doc;  /* what it is, in one sentence */
    enum member_type type;
    bool optional;
    size_t offset;                  /* in the struct of the object */
    size_t size;                    /* of the member; MEMBER_LIST: of the whole array */
    const struct json_names *names; /* MEMBER_NAME */
    const struct object *object;    /* MEMBER_OBJECT: it; MEMBER_LIST: each element */
    size_t count_offset;            /* MEMBER_LIST, MEMBER_NOTES: of the uint32_t count */
    uint32_t min_count, max_count;  /* likewise; a list may also be empty */
    const char *columns; /* MEMBER_LIST: the field beside it with the evidence of the elements */
    /* Range: above 0 if `positive`; at least `min`; at most `max` unless that is 0. */
    bool positive;
    double min, max;
    enum member_relation relation;
    size_t other_offset; /* of the number that the relation is to, and its name */
    const char *other;
    /* Elements of a list are told apart by their keys. `ordered`: in ascending order by them. In
     * `element`, which introduces one in a sentence, "%" is the next key. */
    bool key;
    bool ordered;
    const char *element;
    bool is_long; /* a list that a short report leaves out */
    /* A part of a fingerprint (parts.h) is the rows that are in it. A row that is an object or a
     * list is copied whole; the rows below it that are in the part too are what is known of it. */
    uint8_t part;            /* enum fingerprint_part or enum level_part, plus 1; 0: in none */
    bool for_planner;        /* the planner reads it, so it is in the environment of a job */
    bool uncounted;          /* copied, but nothing that a measurement can know more or less of */
    size_t evidence;         /* offset of its evidence in the struct; 0: it has none */
    const char *of_evidence; /* the number that this evidence is named after */
    enum member_class class; /* in comparisons of chips */
    bool diffed;             /* compared by fingerprint_compare (diff.h) */
    const char *label;       /* for people; NULL: as member_label derives it from the name */
    const char *purpose;     /* of a number that no answer uses: why it is measured */
};

struct object {
    const char *name; /* of its component in api/openapi.yaml */
    const char *doc;
    const struct member *members;
    uint32_t count;
    size_t size; /* of its struct */
};

/* The row called `name`; NULL if the object has none. */
const struct member *object_member(const struct object *o, const char *name);

/* "bytes", "cycles", "GB/s"; "" for a count or a ratio. */
const char *member_unit(const struct member *m);

enum { MEMBER_LABEL_BYTES = 64 };
/* The label, or else the name without its unit: "miss penalty". Returns `out`, of
 * MEMBER_LABEL_BYTES. */
char *member_label(const struct member *m, char *out);

/* A printed key, or several with commas between them: "64G", "read,32". `index` is the place of the
 * element in its list. Returns `out`. */
char *object_key(const struct object *o, const void *base, uint32_t index, char *out, size_t size);
/* `element` with the keys in their places: "region of 64 GiB ". Returns `out`. */
char *member_element(const struct member *list, const void *base, uint32_t index, char *out,
                     size_t size);
/* Below 0, 0 or above 0: the order of two elements by their keys. */
int object_compare_keys(const struct object *o, const void *a, const void *b);

static inline const void *member_at(const struct member *m, const void *base)
{
    return (const char *)base + m->offset;
}

/* A number, a text or a name, which is read and written as a field of that type. */
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

/* Elements of a MEMBER_LIST or MEMBER_NOTES of the struct at `base`. */
static inline uint32_t member_count(const struct member *m, const void *base)
{
    return *(const uint32_t *)(const void *)((const char *)base + m->count_offset);
}

static inline uint32_t *member_counter(const struct member *m, void *base)
{
    return (void *)((char *)base + m->count_offset);
}

/* Whether a number that may be absent is there: all three structs of base/maybe.h begin like this.
 */
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

/* A number, as a double; of one that may be absent its value if it is known. */
double member_value(const struct member *m, const void *base);
/* Below 0, 0 or above 0: the order of two numbers, each of a row and a struct. */
int member_compare(const struct member *m, const void *base, const struct member *n,
                   const void *other_base);

/* MEMBER_OBJECT, optional: is each of its numbers "not measured"? */
bool member_is_unmeasured(const struct member *m, const void *base);

/* The next row after `m` (NULL: the first) that has evidence of its own; NULL if there is none.
 * Rows that share the evidence of one before them are left out. */
const struct member *object_next_evidence(const struct object *o, const struct member *m);
/* Is a number known that has the evidence of row `m`? */
bool object_evidence_is_known(const struct object *o, const struct member *m, const void *base);

static inline struct evidence *member_evidence(const struct member *m, const void *base)
{
    return (void *)((char *)(uintptr_t)base + m->evidence);
}

#endif
