/* detail.c: see detail.h. */
#include "analysis/detail.h"

#include "analysis/classes.h"
#include "analysis/structure/sectored.h"
#include "analysis/throughput/group_reads.h"
#include "analysis/structure/sets.h"
#include "analysis/sharing/sharing.h"
#include "base/stats.h"

#include <math.h>
#include <string.h>

/* The error of a median of n from their median deviation: 1.4826 for the deviation, 1.2533 for the
 * median of normal noise. Cycles are whole numbers, so half of one is the least there is. */
#define MEDIAN_ERROR (1.4826 * 1.2533)
#define LEAST_ERROR  0.5

static void read_sets(const struct sets_estimate *sets, struct tlb_level *out)
{
    out->sets = sets->sets;
    out->ways = sets->ways;
    out->victim_entries = sets->victim_entries;
    out->replacement = sets->replacement;
    out->run_count = sets->run_count;
    memcpy(out->runs, sets->runs, sizeof out->runs);
}

/* Whose size the driver tells is known. A plain allocation's is not told, and managed memory is
 * not probed on hardware: asked for carelessly it can take the whole GPU down. */
static void read_pages(const struct observation_set *set, struct fingerprint *out)
{
    const struct maybe_u64 granule = KNOWN_U64(set->limits.granule_bytes);

    out->page_bytes[ALLOCATION_VIRTUAL] = UNKNOWN_U64(REASON_NOT_MEASURED);
    out->page_bytes[ALLOCATION_PLAIN] = NOT_OBSERVABLE_U64(REASON_NOT_REPORTED);
    out->page_bytes[ALLOCATION_MANAGED] = UNKNOWN_U64(REASON_NOT_MEASURED);
    if (set->limits.granule_bytes == 0)
        return;
    if (set->limits.arena != ARENA_PLAIN)
        out->page_bytes[ALLOCATION_VIRTUAL] = granule;
    if (set->limits.arena == ARENA_SIMULATED)
        out->page_bytes[ALLOCATION_PLAIN] = out->page_bytes[ALLOCATION_MANAGED] = granule;
}

/* The largest footprint of any sweep showed no step more. So what answers the last level's misses
 * is one level with a longer reach, or page walks: from here the two look the same. */
static void read_beyond(const struct observation_set *set, struct fingerprint *out)
{
    for (const struct observation *o = NULL; (o = observation_next(set, o, PROBE_CHASE));)
        for (uint32_t p = 0; o->spec.point_count >= LEVELS_SWEEP_POINTS && p < o->spec.point_count;
             p++)
            if (o->spec.points[p] * o->spec.stride_bytes > out->beyond.probed_bytes)
                out->beyond.probed_bytes = o->spec.points[p] * o->spec.stride_bytes;
    out->beyond.reach_bytes = NOT_OBSERVABLE_U64(REASON_BEYOND_MEMORY);
    out->beyond.walk_cycles = NOT_OBSERVABLE_F64(REASON_BEYOND_MEMORY);
}

/* Only what is known has evidence. */
static void fill_evidence(const struct sets_estimate *sets, const struct sectored_estimate *fill,
                          struct tlb_level *out)
{
    struct evidence *const e = out->evidence;

    if (IS_KNOWN(out->sets))
        e[LEVEL_EVIDENCE_SETS] = sets->evidence;
    if (out->replacement != REPLACEMENT_UNKNOWN)
        e[LEVEL_EVIDENCE_REPLACEMENT] = sets->replacement_evidence;
    if (out->fill != FILL_UNKNOWN)
        e[LEVEL_EVIDENCE_FILL] = fill->fill_evidence;
    if (IS_KNOWN(out->entry_pages) || IS_KNOWN(out->tag_bytes))
        e[LEVEL_EVIDENCE_ENTRY_PAGES] = fill->pages_evidence;
}

void detail_derive(const struct observation_set *set, const struct structure *s,
                   struct fingerprint *out)
{
    struct sets_estimate sets[LEVELS_MAX];
    struct sectored_estimate fill;

    sets_estimate_all(set, s, sets);
    for (uint32_t k = 0; k < s->level_count; k++) {
        read_sets(&sets[k], &out->levels[k]);
        sectored_estimate(set, s, k, &fill);
        out->levels[k].fill = fill.fill;
        out->levels[k].tag_bytes = fill.tag_bytes;
        if (set->limits.arena != ARENA_PLAIN)
            out->levels[k].entry_pages = fill.entry_pages;
        else
            out->levels[k].entry_pages = UNKNOWN_U32(REASON_NOT_REPORTED);
        fill_evidence(&sets[k], &fill, &out->levels[k]);
    }
    read_pages(set, out);
    read_beyond(set, out);
}

/* Near and far: groups whose misses cost clearly less than those of others. */
static void class_penalties(struct topology *t)
{
    double penalties[REACH_MAX_GROUPS];
    double errors[REACH_MAX_GROUPS];
    uint32_t class[REACH_MAX_GROUPS];
    const uint32_t n = t->partition.group_count;

    for (uint32_t g = 0; g < n; g++) {
        double own[REACH_MAX_SMS];
        uint32_t members = 0;
        if (!IS_KNOWN(t->groups[g].miss_penalty_cycles))
            return;
        penalties[g] = t->groups[g].miss_penalty_cycles.v;
        for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++)
            if (t->partition.group_of_sm[sm] == g && IS_KNOWN(t->sm_miss_penalty_cycles[sm]))
                own[members++] = t->sm_miss_penalty_cycles[sm].v;
        if (members == 0)
            return;
        errors[g] = MEDIAN_ERROR * stats_mad_f64(own, members) / sqrt(members);
    }
    if (n == 0)
        return;
    const double error = stats_median_f64(errors, n);
    const double noise = error > LEAST_ERROR ? error : LEAST_ERROR;
    t->penalty_classes = KNOWN_U32(classes_split(penalties, n, noise, class));
    t->evidence[TOPOLOGY_EVIDENCE_PENALTY_CLASSES] =
        evidence_make(EVIDENCE_CLASSES, t->evidence[TOPOLOGY_EVIDENCE_GROUPS].repeats,
                      classes_margin(penalties, n, noise, class));
    for (uint32_t g = 0; g < n; g++)
        t->groups[g].penalty_class = KNOWN_U32(class[g]);
}

void detail_derive_groups(const struct observation_set *set, const struct structure *s,
                          struct fingerprint *out)
{
    struct topology *t = &out->topology;
    uint16_t sm_ids[REACH_MAX_SMS];
    const uint32_t sms = sharing_sm_ids(set, sm_ids);

    if (s->window_level < 0 || s->shared_by[s->window_level] != SHARED_GROUP)
        return;
    for (uint32_t i = 0; i < sms; i++)
        if (s->sharing[s->window_level].loss_cycles[i] > 0)
            t->sm_miss_penalty_cycles[sm_ids[i]] =
                KNOWN_F64(s->sharing[s->window_level].loss_cycles[i]);
    class_penalties(t);
    group_reads_derive(set, s, t);
}
