/* merge.c: see merge.h. */
#include "fingerprint/merge.h"

#include "fingerprint/parts.h"
#include "base/format_size.h"
#include "fingerprint/diff.h"
#include "fingerprint/fingerprint_check.h"
#include "fingerprint/fingerprint_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    REACH_TOLERANCE = 64, /* two reaches differ if they are more than one entry, and more than 1/64
                             of the smaller reach, apart */
    SEEN_QUARTERS = 5     /* a level is visible if at least 5/4 of its onset was walked */
};

/* The largest relative difference between two plateaus of the same memory. */
#define PLATEAU_TOLERANCE 0.1

/* Writes `reason` and returns true, for use in the return statement of a comparison. */
#define differs(reason, ...) ((void)snprintf(reason, MERGE_REASON_BYTES, __VA_ARGS__), true)

/* ---- contradictions ---- */
static bool identities_differ(const struct gpu_identity *a, const struct gpu_identity *b,
                              char *reason)
{
    if (a->origin != b->origin)
        return differs(reason, "the origin was %s and is %s", origin_name(a->origin),
                       origin_name(b->origin));
    if (a->mig != b->mig)
        return differs(reason, "MIG mode was %s and is %s", a->mig ? "on" : "off",
                       b->mig ? "on" : "off");
    if (a->mlopart != b->mlopart)
        return differs(reason, "MLOPart was %s and is %s", a->mlopart ? "on" : "off",
                       b->mlopart ? "on" : "off");
    if (a->sm_count != b->sm_count)
        return differs(reason, "the number of SMs was %u and is %u", a->sm_count, b->sm_count);
    if (a->memory_bytes != b->memory_bytes)
        return differs(reason, "the memory had %llu bytes and has %llu",
                       (unsigned long long)a->memory_bytes, (unsigned long long)b->memory_bytes);
    return false;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static bool reaches_differ(const struct tlb_level *a, const struct tlb_level *b)
{
    const uint64_t ra = a->reach_bytes.v, rb = b->reach_bytes.v;
    const uint64_t apart = ra > rb ? ra - rb : rb - ra;
    const uint64_t entry = larger(a->entry_bytes.v, b->entry_bytes.v); /* 0 if not known */

    return apart > larger(entry, (ra < rb ? ra : rb) / REACH_TOLERANCE);
}

static bool sizes_differ(const struct tlb_level *a, const struct tlb_level *b, char *reason)
{
    char was[FORMAT_SIZE_BYTES], is[FORMAT_SIZE_BYTES];

    if (IS_KNOWN(a->entry_bytes) && IS_KNOWN(b->entry_bytes) &&
        a->entry_bytes.v != b->entry_bytes.v)
        return differs(reason, "level %u: an entry translated %s and translates %s", a->level,
                       format_size(a->entry_bytes.v, was), format_size(b->entry_bytes.v, is));
    if (IS_KNOWN(a->reach_bytes) && IS_KNOWN(b->reach_bytes) && reaches_differ(a, b))
        return differs(reason, "level %u: the reach was %s and is %s", a->level,
                       format_size(a->reach_bytes.v, was), format_size(b->reach_bytes.v, is));
    return false;
}

static bool levels_differ(const struct tlb_level *a, const struct tlb_level *b, char *reason)
{
    uint32_t first = 0, second = 0;

    if (sizes_differ(a, b, reason))
        return true;
    if (a->shared_by != SHARED_UNKNOWN && b->shared_by != SHARED_UNKNOWN &&
        a->shared_by != b->shared_by)
        return differs(reason, "level %u: shared_by was %s and is %s", a->level,
                       shared_by_name(a->shared_by), shared_by_name(b->shared_by));
    if (!sm_partitions_agree(&a->sharing, &b->sharing, &first, &second))
        return differs(reason,
                       "level %u: SMs %u and %u share the level in only one of the fingerprints",
                       a->level, first, second);
    return false;
}

static bool level_is_known(const struct fingerprint *fp, uint32_t k)
{
    return IS_KNOWN(fp->levels[k].onset_bytes) || IS_KNOWN(fp->levels[k].reach_bytes);
}

/* Returns whether `fp`, which ends before level `l` of `other`, walked far enough to see it. */
static bool should_have_seen(const struct fingerprint *fp, const struct fingerprint *other,
                             const struct tlb_level *l)
{
    const uint64_t walked = fp->beyond.probed_bytes;

    return IS_KNOWN(l->onset_bytes)
               ? walked / SEEN_QUARTERS >= l->onset_bytes.v / (SEEN_QUARTERS - 1)
               : walked >= other->beyond.probed_bytes;
}

static bool level_counts_differ(const struct fingerprint *earlier, const struct fingerprint *newer,
                                char *reason)
{
    const uint32_t a = earlier->level_count, b = newer->level_count;

    /* An earlier level without known numbers cannot be contradicted. */
    if (b < a && level_is_known(earlier, b) &&
        should_have_seen(newer, earlier, &earlier->levels[b]))
        return differs(reason, "level %u was found before and is not found now", b + 1);
    if (a < b && should_have_seen(earlier, newer, &newer->levels[a]))
        return differs(reason, "level %u was not found before and is found now", a + 1);
    return false;
}

bool fingerprint_contradicts(const struct fingerprint *earlier, const struct fingerprint *newer,
                             char *reason)
{
    uint32_t first = 0, second = 0;

    reason[0] = '\0';
    if (identities_differ(&earlier->gpu, &newer->gpu, reason))
        return true;
    for (uint32_t k = 0; k < earlier->level_count && k < newer->level_count; k++)
        if (levels_differ(&earlier->levels[k], &newer->levels[k], reason))
            return true;
    if (level_counts_differ(earlier, newer, reason))
        return true;
    if (IS_KNOWN(earlier->topology.level) && IS_KNOWN(newer->topology.level) &&
        earlier->topology.level.v != newer->topology.level.v)
        return differs(reason, "windows were bounded by level %u and are by level %u",
                       earlier->topology.level.v, newer->topology.level.v);
    if (!sm_partitions_agree(&earlier->topology.partition, &newer->topology.partition, &first,
                             &second))
        return differs(reason, "SMs %u and %u are in one group in only one of the fingerprints",
                       first, second);
    return false;
}

bool fingerprint_is_conclusive(const struct fingerprint *fp, char *reason)
{
    reason[0] = '\0';
    for (uint32_t k = 0; k < fp->level_count; k++)
        if (IS_KNOWN(fp->levels[k].reach_bytes))
            return true;
    /* Only depth full records the walked range, and every depth records the probed range. */
    if (fp->level_count == 0 && (fp->conditions.range_bytes > 0 || fp->beyond.probed_bytes > 0))
        return true;
    if (fp->level_count == 0)
        return !differs(reason, "no footprint was walked");
    return !differs(reason, "%u TLB levels were seen, and the reach of none was found",
                    fp->level_count);
}

/* ---- merging ---- */

/* Returns the measurement that a part of `fp` comes from. `id` is the id of the newest measurement
 * of `fp`. */
static struct fingerprint_source source_of(const struct fingerprint *fp, uint32_t part,
                                           const char *id)
{
    struct fingerprint_source own = {.depth = fingerprint_newest_depth(fp),
                                     .taken_at = fp->taken_at};

    if (fp->kept[part].id[0])
        return fp->kept[part];
    memcpy(own.id, id, sizeof own.id);
    return own;
}

/* Writes the id of the newest measurement of `fp`. */
static enum status measurement_id(const struct fingerprint *fp, char *out, struct err *err)
{
    if (!fp->measurement_id[0])
        return fingerprint_id(fp, out, err);
    memcpy(out, fp->measurement_id, FINGERPRINT_ID_BYTES);
    return STATUS_OK;
}

/* The relation between the groups of two fingerprints. */
struct group_choice {
    bool same;         /* both have equal groups with equal numbers */
    bool from_earlier; /* the earlier groups are kept */
};

static struct group_choice choose_groups(const struct fingerprint *earlier,
                                         const struct fingerprint *newer)
{
    const struct sm_partition *const a = &earlier->topology.partition;
    const struct sm_partition *const b = &newer->topology.partition;

    return (struct group_choice){
        .same = a->group_count == b->group_count &&
                memcmp(a->group_of_sm, b->group_of_sm, sizeof a->group_of_sm) == 0,
        .from_earlier = part_known(earlier, PART_GROUPS) > part_known(newer, PART_GROUPS)};
}

/* Returns whether `beyond` of the earlier measurement is kept: if it found more levels, more
 * numbers, or walked further. */
static bool keep_beyond(const struct fingerprint *earlier, const struct fingerprint *newer,
                        uint32_t newer_levels)
{
    const uint32_t a = part_known(earlier, PART_BEYOND), b = part_known(newer, PART_BEYOND);

    if (earlier->level_count != newer_levels)
        return earlier->level_count > newer_levels;
    return a > b || (a == b && earlier->beyond.probed_bytes > newer->beyond.probed_bytes);
}

/* Returns whether the newer measurement found the same reach and a less precise saturation. The
 * saturation is the smallest probed footprint at which every load missed. Other work on the GPU
 * leaves fewer footprints clear. */
static bool is_coarser(const struct tlb_level *earlier, const struct tlb_level *newer)
{
    return IS_KNOWN(earlier->reach_bytes) && IS_KNOWN(newer->reach_bytes) &&
           earlier->reach_bytes.v == newer->reach_bytes.v && IS_KNOWN(earlier->saturation_bytes) &&
           IS_KNOWN(newer->saturation_bytes) &&
           earlier->saturation_bytes.v < newer->saturation_bytes.v;
}

static bool keep_level_part(const struct fingerprint *earlier, const struct fingerprint *newer,
                            uint32_t part, bool more)
{
    const uint32_t k = part / LEVEL_PART_COUNT;

    if (k >= newer->level_count)
        return false;
    return more || (part % LEVEL_PART_COUNT == LEVEL_PART_SIZE && k < earlier->level_count &&
                    is_coarser(&earlier->levels[k], &newer->levels[k]));
}

static bool are_apart(const struct memory_facts *a, const struct memory_facts *b)
{
    return IS_KNOWN(a->reach_bytes) && IS_KNOWN(b->onset_bytes) &&
           a->reach_bytes.v >= b->onset_bytes.v;
}

/* Returns whether `a` and `b` describe the same memory, as far as their numbers show. The plateau
 * and the reach also depend on the host and the driver, and may change although the chip does not.
 * In this case only the newer measurement counts. */
static bool same_memory(const struct memory_facts *a, const struct memory_facts *b)
{
    const double p = a->plateau_gbps.v, q = b->plateau_gbps.v;

    if (a->kind != b->kind || strcmp(a->peer_uuid, b->peer_uuid) != 0)
        return false;
    if (IS_KNOWN(a->plateau_gbps) && IS_KNOWN(b->plateau_gbps) &&
        (p < q ? q - p : p - q) > PLATEAU_TOLERANCE * (p < q ? q : p))
        return false;
    return !are_apart(a, b) && !are_apart(b, a);
}

/* Returns whether a part of `earlier` is kept. `newer_levels` is the number of levels that `newer`
 * itself found. */
static bool keep_part(const struct fingerprint *earlier, const struct fingerprint *newer,
                      const struct group_choice *groups, uint32_t newer_levels, uint32_t part)
{
    const bool more = part_known(earlier, (enum fingerprint_part)part) >
                      part_known(newer, (enum fingerprint_part)part);

    if (part >= PART_MEMORY)
        return more && same_memory(&earlier->memory[part - PART_MEMORY],
                                   &newer->memory[part - PART_MEMORY]);
    if (part < PART_BEYOND)
        return keep_level_part(earlier, newer, part, more);
    switch (part) {
    case PART_BEYOND:
        return keep_beyond(earlier, newer, newer_levels);
    case PART_GROUPS:
        return groups->from_earlier;
    case PART_GROUP_PENALTIES:
    case PART_GROUP_SPEEDS:
    case PART_GROUP_PAIRS: /* these parts are indexed by group, so they follow PART_GROUPS */
        return groups->same ? more : groups->from_earlier;
    default:
        return more;
    }
}

/* Adds to `newer` the levels that it did not find, with all numbers unknown. */
static void add_levels(const struct fingerprint *earlier, struct fingerprint *newer)
{
    for (uint32_t k = newer->level_count; k < earlier->level_count && level_is_known(earlier, k);
         k++) {
        newer->levels[k].level = earlier->levels[k].level;
        newer->level_count = k + 1;
    }
}

/* Adds to `newer` the kinds of memory that it did not try, with all numbers unknown. A measurement
 * tries all kinds or no kind. */
static void add_memory(const struct fingerprint *earlier, struct fingerprint *newer)
{
    for (uint32_t i = newer->memory_count; i < earlier->memory_count; i++) {
        memcpy(newer->memory[i].peer_uuid, earlier->memory[i].peer_uuid,
               sizeof newer->memory[i].peer_uuid);
        newer->memory[i].kind = earlier->memory[i].kind;
        newer->memory[i].peer_memory_bytes = earlier->memory[i].peer_memory_bytes;
        newer->memory_count = i + 1;
    }
}

static void merge_parts(const struct fingerprint *earlier, const char *id,
                        struct fingerprint *newer)
{
    const struct group_choice groups = choose_groups(earlier, newer);
    const uint32_t levels = newer->level_count;
    bool keep[PART_COUNT];

    add_levels(earlier, newer);
    if (newer->memory_count == 0)
        add_memory(earlier, newer);
    for (uint32_t part = 0; part < PART_COUNT; part++)
        keep[part] = keep_part(earlier, newer, &groups, levels, part);
    for (uint32_t part = 0; part < PART_COUNT; part++) {
        if (!keep[part])
            continue;
        part_copy(earlier, (enum fingerprint_part)part, newer);
        if (part_known(earlier, (enum fingerprint_part)part) > 0)
            newer->kept[part] = source_of(earlier, part, id);
    }
    newer->l2.sides_match_domains = l2_match_domains(&newer->l2);
}

static bool keeps_anything(const struct fingerprint *fp)
{
    for (uint32_t part = 0; part < PART_COUNT; part++)
        if (fp->kept[part].id[0])
            return true;
    return false;
}

enum status fingerprint_merge(const struct fingerprint *earlier, struct fingerprint *newer,
                              struct err *err)
{
    char earlier_id[FINGERPRINT_ID_BYTES], own_id[FINGERPRINT_ID_BYTES];
    struct fingerprint *merged = malloc(sizeof *merged);
    struct err why = {0};
    enum status s;

    if (!merged)
        return err_set(err, STATUS_NO_MEMORY, "cannot merge two fingerprints: out of memory");
    s = measurement_id(earlier, earlier_id, err);
    if (s == STATUS_OK)
        s = fingerprint_id(newer, own_id, err);
    if (s != STATUS_OK)
        goto out;
    *merged = *newer;
    merge_parts(earlier, earlier_id, merged);
    if (keeps_anything(merged)) {
        memcpy(merged->measurement_id, own_id, sizeof merged->measurement_id);
        fingerprint_set_depth(merged, newer->depth);
    }
    if (fingerprint_check(merged, &why) != STATUS_OK) {
        s = err_set(err, STATUS_CONFLICT,
                    "the new fingerprint contradicts the earlier fingerprint: %s", why.text);
        goto out;
    }
    *newer = *merged;
out:
    free(merged);
    return s;
}

enum status fingerprint_drop(const struct fingerprint *earlier, const char *reason,
                             struct fingerprint *newer, struct err *err)
{
    struct fingerprint_source dropped = {.depth = fingerprint_newest_depth(earlier),
                                         .taken_at = earlier->taken_at};
    const enum status s = measurement_id(earlier, dropped.id, err);

    if (s != STATUS_OK)
        return s;
    newer->dropped = dropped;
    (void)snprintf(newer->dropped_reason, sizeof newer->dropped_reason, "%s", reason);
    return STATUS_OK;
}
