/* analysis.c: calls the analyses and writes their results into a fingerprint. See analysis.h. */
#include "analysis/analysis.h"

#include "analysis/sharing/confirm.h"
#include "analysis/classes.h"
#include "analysis/structure/sectored.h"
#include "analysis/structure/sets.h"
#include "analysis/caches/cache_carveouts.h"
#include "analysis/caches/hierarchy.h"
#include "analysis/caches/sides.h"
#include "analysis/caches/working_sets.h"
#include "analysis/onchip/banks.h"
#include "analysis/onchip/clusters.h"
#include "analysis/throughput/contiguity.h"
#include "analysis/throughput/group_reads.h"
#include "analysis/throughput/parallel.h"
#include "analysis/sharing/floorplan.h"
#include "analysis/levels/levels.h"
#include "analysis/memory/memory.h"
#include "analysis/imported/imported.h"
#include "analysis/throughput/throughput.h"
#include "analysis/sharing/sharing.h"
#include "analysis/sharing/window_level.h"
#include "base/stats.h"
#include "base/format_size.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The standard error of a median of n values is MEDIAN_ERROR times their median deviation, divided
 * by sqrt(n). For normal noise, 1.4826 turns a median deviation into a standard deviation. The
 * error of a median is 1.2533 times the error of a mean. Cycles are whole numbers, so LEAST_ERROR
 * is half a cycle. */
#define MEDIAN_ERROR (1.4826 * 1.2533)
#define LEAST_ERROR  0.5

/* Fills in the length of an entry and the size of the level. The entries, the reach and the onset
 * are known together or not at all. */
static void fill_reach(const struct level_estimate *e, struct tlb_level *out)
{
    const enum reason reason = REASON_TOO_LITTLE_DATA;
    out->entry_bytes = e->entry_known ? KNOWN_U64(e->entry_bytes) : UNKNOWN_U64(reason);
    if (!e->counted) {
        const enum reason why = e->non_lru ? REASON_DISAGREEMENT : reason;
        out->entries = UNKNOWN_U32(why);
        out->reach_bytes = UNKNOWN_U64(why);
        out->onset_bytes = UNKNOWN_U64(why);
    } else {
        out->entries = KNOWN_U32((uint32_t)e->lo_pages);
        out->reach_bytes = KNOWN_U64(e->lo_pages * e->entry_bytes);
        out->onset_bytes = KNOWN_U64(e->hi_pages * e->entry_bytes);
    }
    out->saturation_bytes = e->counted && e->sat_hi_pages
                                ? KNOWN_U64(e->sat_hi_pages * e->entry_bytes)
                                : UNKNOWN_U64(reason);
}

/* Fills in the evidence of the known numbers. */
static void fill_evidence(const struct level_estimate *level,
                          const struct sharing_estimate *sharing, struct tlb_level *out)
{
    struct level_evidence *const e = &out->evidence;

    if (IS_KNOWN(out->entry_bytes))
        e->entry_bytes = level->entry_evidence;
    if (IS_KNOWN(out->reach_bytes))
        e->reach_bytes = level->reach_evidence;
    if (IS_KNOWN(out->saturation_bytes))
        e->saturation_bytes = level->saturation_evidence;
    if (IS_KNOWN(out->miss_penalty_cycles))
        e->miss_penalty_cycles = levels_penalty_evidence(level);
    if (out->shared_by != SHARED_UNKNOWN)
        e->shared_by = sharing_evidence(sharing);
}

static void fill_levels(const struct observation_set *set, const struct structure *s,
                        struct fingerprint *fp)
{
    struct probe_spec again;
    fp->level_count = s->level_count;
    for (uint32_t k = 0; k < s->level_count; k++) {
        struct tlb_level *level = &fp->levels[k];
        level->level = k + 1;
        level->page_bytes = set->limits.granule_bytes && set->limits.arena != ARENA_PLAIN
                                ? KNOWN_U64(set->limits.granule_bytes)
                                : UNKNOWN_U64(REASON_NOT_REPORTED);
        fill_reach(&s->levels[k], level);
        if (IS_KNOWN(level->saturation_bytes) &&
            confirm_saturation(set, &s->levels[k], 0, &again) != CONFIRMATION_DONE)
            level->saturation_bytes = UNKNOWN_U64(REASON_DISAGREEMENT);
        level->miss_penalty_cycles = levels_penalty(&s->levels[k]);
        if (confirm_penalty(set, &s->levels[k], 0, &again) != CONFIRMATION_DONE)
            level->miss_penalty_cycles = UNKNOWN_F64(REASON_DISAGREEMENT);
        level->shared_by = s->shared_by[k];
        if (level->shared_by == SHARED_GROUP)
            level->sharing = s->sharing[k].found;
        if (s->levels[k].entry_known)
            level->confidence = KNOWN_F64(s->levels[k].separation);
        fill_evidence(&s->levels[k], &s->sharing[k], level);
    }
}

/* Makes each SM a separate group, for a window level that no two SMs share. */
static void one_group_each(const uint16_t *sm_ids, uint32_t sm_count, struct sm_partition *out)
{
    out->group_count = sm_count < REACH_MAX_GROUPS ? sm_count : 0;
    for (uint32_t i = 0; i < out->group_count; i++)
        out->group_of_sm[sm_ids[i]] = (uint16_t)i;
}

static void fill_topology(const struct observation_set *set, const struct structure *s,
                          struct fingerprint *fp)
{
    uint16_t sm_ids[REACH_MAX_SMS];
    const uint32_t sm_count = sharing_sm_ids(set, sm_ids);
    const int k = s->window_level;
    double losses[REACH_MAX_SMS] = {0};

    fp->windows.reach_bytes = structure_reach_bytes(s);
    fp->windows.recommended_bytes = structure_recommended_bytes(s);
    if (k < 0)
        return;
    fp->windows.entry_bytes = fp->levels[k].entry_bytes;
    fp->topology.level = KNOWN_U32((uint32_t)k + 1);
    if (s->shared_by[k] == SHARED_GROUP)
        fp->topology.partition = s->sharing[k].found;
    else
        one_group_each(sm_ids, sm_count, &fp->topology.partition);
    fp->topology.confidence = KNOWN_F64(s->sharing[k].agreement);
    for (uint32_t i = 0; i < sm_count; i++)
        losses[sm_ids[i]] = s->sharing[k].loss_cycles[i];
    sharing_fill_groups(losses, sharing_evidence(&s->sharing[k]), &fp->topology);
    floorplan_derive(sm_count, &fp->topology);
}

/* Adds notes about excluded probes and about disturbances that did no harm. */
static void note_disturbance(const struct observation_set *set, struct fingerprint *fp)
{
    const struct observation_list *excluded = &set->excluded;
    const struct maybe_u32 *others = &fp->conditions.other_processes;

    if (excluded->count > 0)
        fingerprint_add_note(fp, "%zu of %zu probes were disturbed and made again; the last: %.80s",
                             excluded->count, excluded->count + set->count,
                             excluded->items[excluded->count - 1].assessment.message);
    if (set->interrupted > 0)
        fingerprint_add_note(fp,
                             "other processes had the GPU in between %zu times: what they "
                             "interrupted was probed again",
                             set->interrupted);
    if (IS_KNOWN(*others) && others->v > 0)
        fingerprint_add_note(
            fp, "%u other processes had this GPU open: not a disturbance by itself", others->v);
}

static void fill_conditions(const struct observation_set *set, struct fingerprint *fp)
{
    struct fingerprint_conditions *c = &fp->conditions;
    char size[FORMAT_SIZE_BYTES];

    for (size_t i = 0; i < set->count; i++) {
        const struct probe_conditions *p = &set->items[i].result.conditions;
        c->sm_clock_khz = p->sm_clock_khz;
        maybe_u32_raise(&c->pcie_generation_used, p->pcie_generation);
        if (IS_KNOWN(p->other_processes) &&
            (!IS_KNOWN(c->other_processes) || p->other_processes.v > c->other_processes.v))
            c->other_processes = p->other_processes;
    }
    note_disturbance(set, fp);
    if (set->limits.arena == ARENA_PLAIN)
        fingerprint_add_note(
            fp,
            "the virtual memory API is missing: a plain allocation of %s was probed, and what "
            "lies beyond it was not seen",
            format_size(set->limits.range_bytes, size));
    if (!throughput_is_from_memory(set))
        fingerprint_add_note(
            fp,
            "%s of device memory lie behind the range, too little against the L2 cache: "
            "throughput was not measured",
            format_size(set->limits.backing_bytes, size));
}

/* ---- results of depth full ---- */

static void read_sets(const struct sets_estimate *sets, struct tlb_level *out)
{
    out->sets = sets->sets;
    out->ways = sets->ways;
    out->victim_entries = sets->victim_entries;
    out->replacement = sets->replacement;
    out->run_count = sets->run_count;
    memcpy(out->runs, sets->runs, sizeof out->runs);
}

/* Fills in the sizes of pages. A page size is known if the driver reports it. The driver does not
 * report the page size of a plain allocation. Managed memory is not probed on hardware, because a
 * careless request can take the whole GPU down. */
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

/* Reports the largest footprint of any sweep. It showed no further step, so the misses of the last
 * level are served by a level with a longer reach or by page walks. The sweep cannot distinguish
 * the two. */
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

/* Fills in the evidence of the known numbers. */
static void fill_sets_evidence(const struct sets_estimate *sets,
                               const struct sectored_estimate *fill, struct tlb_level *out)
{
    struct level_evidence *const e = &out->evidence;

    if (IS_KNOWN(out->sets))
        e->sets = sets->evidence;
    if (out->replacement != REPLACEMENT_UNKNOWN)
        e->replacement = sets->replacement_evidence;
    if (out->fill != FILL_UNKNOWN)
        e->fill = fill->fill_evidence;
    if (IS_KNOWN(out->entry_pages) || IS_KNOWN(out->tag_bytes))
        e->entry_pages = fill->pages_evidence;
}

/* Fills in sets, ways, replacement, fill, and the memory beyond the last level. */
static void fill_detail(const struct observation_set *set, const struct structure *s,
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
        fill_sets_evidence(&sets[k], &fill, &out->levels[k]);
    }
    read_pages(set, out);
    read_beyond(set, out);
}

/* Divides the groups into classes by the cost of their misses. Groups near memory have cheaper
 * misses. */
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
    t->evidence.penalty_classes = evidence_make(EVIDENCE_CLASSES, t->evidence.groups.repeats,
                                                classes_margin(penalties, n, noise, class));
    for (uint32_t g = 0; g < n; g++)
        t->groups[g].penalty_class = KNOWN_U32(class[g]);
}

/* Fills in the penalties of single SMs, their classes, and the reads of single groups and of pairs.
 * The groups and their penalties must be filled in. */
static void fill_group_detail(const struct observation_set *set, const struct structure *s,
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

/* Returns whether any level's sharing contradicts itself, or whether the rounds contradict the pair
 * matrix. */
static bool contradicts(const struct observation_set *set, const struct structure *s)
{
    for (uint32_t k = 0; k < s->level_count; k++) {
        struct sharing_estimate pairs;
        if ((s->sharing[k].conflict && !s->levels[k].non_lru) ||
            confirm_level(set, &s->levels[k]) == CONFIRMATION_REFUTED)
            return true;
        if (s->shared_by[k] != SHARED_GROUP)
            continue;
        sharing_estimate(set, s->levels, s->level_count, k, SHARING_PAIRS, &pairs);
        if (pairs.grouped_sms == set->limits.sm_count &&
            memcmp(&pairs.found, &s->sharing[k].found, sizeof pairs.found) != 0)
            return true;
    }
    return false;
}

/* Returns whether a level was found without its size or sharing while other processes may be the
 * cause. On an H200 beside a loop of matrix products, 3 of 20 runs found no reach, although no
 * probe was disturbed (docs/disturbance.md). */
static bool left_open(const struct observation_set *set, const struct structure *s)
{
    bool open = false;
    for (uint32_t k = 0; k < s->level_count; k++)
        open = open || !s->levels[k].counted || s->shared_by[k] == SHARED_UNKNOWN;
    return open && observation_set_is_shared(set);
}

/* Adds a note if levels were found but the reach of none of them. */
static void note_reaches(struct fingerprint *fp)
{
    uint32_t known = 0;
    uint32_t by_chance = 0;

    for (uint32_t k = 0; k < fp->level_count; k++) {
        known += IS_KNOWN(fp->levels[k].reach_bytes);
        by_chance += fp->levels[k].reach_bytes.reason == REASON_DISAGREEMENT;
    }
    if (known > 0 || fp->level_count == 0)
        return;
    if (by_chance == fp->level_count)
        fingerprint_add_note(fp,
                             "the reach of none of %u TLB levels was found: in each of them a page "
                             "hits in one lap and misses in the next",
                             fp->level_count);
    else
        fingerprint_add_note(fp, "the reach of none of %u TLB levels was found", fp->level_count);
}

static enum status derive(const struct observation_set *set, enum depth depth,
                          struct fingerprint *out, struct err *err)
{
    struct structure s;

    structure_estimate(set, &s);
    fill_levels(set, &s, out);
    if (depth >= DEPTH_FULL)
        fill_detail(set, &s, out);
    fill_topology(set, &s, out);
    fill_conditions(set, out);
    throughput_derive(set, out);
    rates_derive(set, out);
    memory_derive(set, out);
    if (depth >= DEPTH_FULL) {
        contiguity_derive(set, structure_reach_bytes(&s), out);
        sides_derive(set, out);
        working_sets_derive(set, out);
        hierarchy_derive(set, out);
        banks_derive(set, out);
        cache_carveouts_check(out);
        clusters_derive(set, out);
        parallel_derive(set, &s, out);
        fill_group_detail(set, &s, out);
    }
    if (s.level_count == 0)
        fingerprint_add_note(out,
                             "no footprint within the range was seen to miss in any TLB level");
    note_reaches(out);
    if (contradicts(set, &s)) {
        out->conditions.verdict = VERDICT_DISTURBED;
        return err_set(err, STATUS_DISTURBED,
                       "repeated probes do not confirm an onset, or the SMs that share a level");
    }
    if (left_open(set, &s)) {
        out->conditions.verdict = VERDICT_DISTURBED;
        return err_set(
            err, STATUS_DISTURBED,
            "the size or sharing of a TLB level was not found, with %zu disturbed probes "
            "and other processes on the GPU",
            set->disturbed);
    }
    return STATUS_OK;
}

enum status analysis_derive(const struct observation_set *set, enum depth depth,
                            struct fingerprint *out, struct err *err)
{
    enum status s;

    fingerprint_init(out);
    out->gpu = set->gpu;
    out->depth = depth;
    snprintf(out->conditions.arena, sizeof out->conditions.arena, "%s",
             arena_kind_name(set->limits.arena));
    out->conditions.range_bytes = set->limits.range_bytes;
    out->conditions.backing_bytes = set->limits.backing_bytes;
    if (set->limits.host_total_bytes > 0)
        out->conditions.host_memory_bytes = KNOWN_U64(set->limits.host_total_bytes);
    out->conditions.pcie_generation = set->limits.pcie_generation;
    out->conditions.pcie_lanes = set->limits.pcie_lanes;
    out->conditions.pcie_lanes_supported = set->limits.pcie_lanes_supported;
    out->device_memory_bytes = set->limits.device_memory_bytes;
    if (set->count > 0)
        out->taken_at = set->items[set->count - 1].result.conditions.started_at;
    s = imported_is_in(set) ? imported_derive(set, out, err) : derive(set, depth, out, err);
    out->l2.locality_domains = set->limits.locality_domains;
    out->l2.locality_domain_sms = set->limits.locality_domain_sms;
    out->l2.sides_match_domains = l2_match_domains(&out->l2);
    fingerprint_round(out);
    return s;
}
