/* members.h: the fingerprint as tables of its members: the name of each in the document, its type,
 * where it is in memory, and what the rest of this layer does with it. Writing, reading, checking,
 * merging and comparing each walk these tables, so a new number takes one row.
 *
 * Rows are in the order of the document. Constant data; any thread.
 */
#ifndef REACH_FINGERPRINT_MEMBERS_H
#define REACH_FINGERPRINT_MEMBERS_H

#include "base/json_fields.h"
#include "fingerprint/fingerprint.h"

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

struct object;
struct member {
    const char *name; /* NULL: the groups' rows write and read it */
    enum member_type type;
    bool optional;
    size_t offset;                  /* in the struct of the object */
    size_t size;                    /* of the member; MEMBER_LIST: of the whole array */
    const struct json_names *names; /* MEMBER_NAME */
    const struct object *object;    /* MEMBER_OBJECT: it; MEMBER_LIST: each element */
    size_t count_offset;            /* MEMBER_LIST, MEMBER_NOTES: of the uint32_t count */
    uint32_t max_count;             /* likewise */
    const char *columns; /* MEMBER_LIST: the field beside it with the evidence of the elements */
    double max;          /* MEMBER_F64_MAYBE: the largest value that can be; 0: any */
    /* A part of a fingerprint (merge.h) is the rows that are in it. A row that is an object or a
     * list is copied whole; the rows below it that are in the part too are what is known of it. */
    uint8_t part;      /* enum fingerprint_part or enum level_part, plus 1; 0: in none */
    bool for_planner;  /* the planner reads it, so it is in the environment of a job */
    bool uncounted;    /* copied, but nothing that a measurement can know more or less of */
    uint8_t evidence;  /* index of its evidence plus 1; 0: none */
    const char *label; /* what a comparison calls it (diff.h); NULL: it is not compared */
};

struct object {
    const struct member *members;
    uint32_t count;
    size_t size; /* of its struct */
    size_t evidence_offset;
    uint32_t evidence_count; /* 0: its numbers have no evidence */
    const char *const *evidence_names;
};

extern const struct object fingerprint_object, level_object, topology_object, curve_point_object,
    rate_object, rate_point_object, throughput_object, contiguity_object, l2_object, cache_object,
    latency_object, shared_object, clusters_object, parallelism_object, memory_object,
    memory_point_object, windows_object, source_object, working_set_object;

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

/* MEMBER_OBJECT, optional: is each of its numbers "not measured"? */
bool member_is_unmeasured(const struct member *m, const void *base);

/* Bit k: the number that evidence k of the object is of is known. */
uint32_t object_known_evidence(const struct object *o, const void *base);

static inline const struct evidence *object_evidence(const struct object *o, const void *base)
{
    return (const void *)((const char *)base + o->evidence_offset);
}

#endif
