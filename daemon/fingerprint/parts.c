/* parts.c: counts and copies the parts of a fingerprint, by the tables of members.h. Evidence is
 * copied with its numbers. */
#include "fingerprint/parts.h"

#include "fingerprint/members.h"

#include <stdio.h>

static const char *const level_part_names[LEVEL_PART_COUNT] = {
    [LEVEL_PART_SIZE] = "size",      [LEVEL_PART_PENALTY] = "miss_penalty_cycles",
    [LEVEL_PART_SHARING] = "groups", [LEVEL_PART_SETS] = "sets",
    [LEVEL_PART_FILL] = "fill",
};

/* Names of the parts from PART_BEYOND on. */
static const char *const part_names[PART_MEMORY - PART_BEYOND] = {
    [0] = "tlb.beyond",
    [PART_PAGE_BYTES - PART_BEYOND] = "tlb.page_bytes",
    [PART_GROUPS - PART_BEYOND] = "topology.groups",
    [PART_GROUP_PENALTIES - PART_BEYOND] = "topology.miss_penalty_cycles",
    [PART_GROUP_SPEEDS - PART_BEYOND] = "topology.gbps",
    [PART_GROUP_PAIRS - PART_BEYOND] = "topology.pairs",
    [PART_CURVE - PART_BEYOND] = "throughput.curve",
    [PART_RATES - PART_BEYOND] = "throughput.rates",
    [PART_CONTIGUITY - PART_BEYOND] = "contiguity",
    [PART_L2_SIDES - PART_BEYOND] = "l2.sides",
    [PART_WORKING_SETS - PART_BEYOND] = "working_sets",
    [PART_CACHES - PART_BEYOND] = "caches",
    [PART_LATENCY - PART_BEYOND] = "latency",
    [PART_SHARED - PART_BEYOND] = "shared",
    [PART_CLUSTERS - PART_BEYOND] = "clusters",
    [PART_PARALLELISM - PART_BEYOND] = "parallelism",
};

const char *fingerprint_part_name(enum fingerprint_part part, char *out)
{
    if (part >= PART_MEMORY + MEMORY_PEER - 1)
        (void)snprintf(out, PART_NAME_BYTES, "memory.peer[%d]",
                       (int)part - (PART_MEMORY + MEMORY_PEER - 1));
    else if (part >= PART_MEMORY)
        (void)snprintf(out, PART_NAME_BYTES, "memory.%s",
                       memory_kind_name((enum memory_kind)(part - PART_MEMORY + 1)));
    else if (part < PART_BEYOND)
        (void)snprintf(out, PART_NAME_BYTES, "tlb.levels[%d].%.20s", (int)part / LEVEL_PART_COUNT,
                       level_part_names[(int)part % LEVEL_PART_COUNT]);
    else
        (void)snprintf(out, PART_NAME_BYTES, "%s", part_names[part - PART_BEYOND]);
    return out;
}

static uint32_t known_members(const struct object *o, const void *base, unsigned in);

/* Counts the SMs of a partition in the topology, and the groups of a partition in a level. */
static uint32_t known_of_partition(const struct sm_partition *p, unsigned in)
{
    uint32_t members = 0;

    if (in != PART_GROUPS + 1 || p->group_count == 0)
        return p->group_count;
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++)
        members += p->group_of_sm[sm] != FINGERPRINT_NO_GROUP;
    return members;
}

static uint32_t known_of_list(const struct member *m, const void *base, unsigned in)
{
    const char *const first = member_at(m, base);
    uint32_t n = 0;

    for (uint32_t i = 0; i < member_count(m, base) && i < m->max_count; i++)
        n += known_members(m->object, first + i * m->object->size, in);
    return n;
}

/* Counts the known numbers of one member. `in` is the part plus 1, as in struct member. */
static uint32_t known_of(const struct member *m, const void *base, unsigned in)
{
    const bool counted = m->part == in && !m->uncounted;
    const void *const v = member_at(m, base);
    uint32_t n = 0;

    if (m->type == MEMBER_OBJECT)
        return known_members(m->object, v, in);
    if (m->type == MEMBER_LIST)
        return known_of_list(m, base, in);
    if (!counted)
        return 0;
    switch (m->type) {
    case MEMBER_U32:
    case MEMBER_NAME: /* 0 means unknown */
        return *(const unsigned *)v != 0;
    case MEMBER_PARTITION:
        return known_of_partition(v, in);
    case MEMBER_SM_PENALTIES:
        for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++)
            n += IS_KNOWN(((const struct maybe_f64 *)v)[sm]);
        return n;
    default:
        return member_state(m, base).known == MAYBE_KNOWN;
    }
}

static uint32_t known_members(const struct object *o, const void *base, unsigned in)
{
    uint32_t n = 0;

    for (const struct member *m = o->members; m < o->members + o->count; m++)
        n += known_of(m, base, in);
    return n;
}

uint32_t part_known(const struct fingerprint *fp, enum fingerprint_part part)
{
    const uint32_t k = (uint32_t)part / LEVEL_PART_COUNT;

    if (part == PART_GROUP_PAIRS)
        return fp->topology.pairs.measured;
    if (part >= PART_MEMORY)
        return part - PART_MEMORY < fp->memory_count
                   ? known_members(&memory_object, &fp->memory[part - PART_MEMORY], 1)
                   : 0;
    if (part >= PART_BEYOND)
        return known_members(&fingerprint_object, fp, part + 1);
    return k < fp->level_count
               ? known_members(&level_object, &fp->levels[k], part % LEVEL_PART_COUNT + 1)
               : 0;
}

static void copy_members(const struct object *o, const void *from, void *to, unsigned in);

static void copy_list(const struct member *m, const void *from, void *to, unsigned in)
{
    for (size_t at = m->offset; at < m->offset + m->size; at += m->object->size)
        copy_members(m->object, (const char *)from + at, (char *)to + at, in);
}

static void copy_member(const struct member *m, const void *from, void *to)
{
    memcpy((char *)to + m->offset, member_at(m, from), m->size);
    if (m->type == MEMBER_LIST)
        *member_counter(m, to) = member_count(m, from);
    if (m->evidence > 0)
        *member_evidence(m, to) = *member_evidence(m, from);
}

static void copy_members(const struct object *o, const void *from, void *to, unsigned in)
{
    for (const struct member *m = o->members; m < o->members + o->count; m++) {
        if (m->part == in)
            copy_member(m, from, to);
        else if (m->type == MEMBER_OBJECT)
            copy_members(m->object, member_at(m, from), (char *)to + m->offset, in);
        else if (m->type == MEMBER_LIST)
            copy_list(m, from, to, in);
    }
}

void part_copy(const struct fingerprint *from, enum fingerprint_part part, struct fingerprint *to)
{
    const uint32_t k = (uint32_t)part / LEVEL_PART_COUNT;

    if (part >= PART_MEMORY)
        to->memory[part - PART_MEMORY] = from->memory[part - PART_MEMORY];
    else if (part >= PART_BEYOND)
        copy_members(&fingerprint_object, from, to, part + 1);
    else
        copy_members(&level_object, &from->levels[k], &to->levels[k], part % LEVEL_PART_COUNT + 1);
}
