/* latency_replay.c: see latency_replay.h. */
#include "clients/lab/validate/latency_replay.h"

#include "base/stats.h"
#include "gpu/sim/sim_mmu.h"

#include <math.h>
#include <string.h>

enum { MAX_SETS = 1 << 12 };

static const uint64_t NO_PAGE = UINT64_MAX;

/* State of one repetition of all chases. */
struct replay_state {
    const struct fingerprint *fp;
    const struct sim_desc *machine;
    struct sim_desc wide;       /* the machine, with room for the kernel's own page */
    struct sim_mmu *mmu;        /* model of `wide` */
    const struct sim_tlb *sets; /* last level; used to find the set of an address */
    uint64_t own_page;          /* page where the kernel stores times, or NO_PAGE */
    struct latency_score score;
    bool wrong_sets[MAX_SETS];
};

/* Returns the cycles of a hit. All pages of a walk map to one physical line, so the median of a
 * point without misses is the cost of a hit. */
static double hit_cycles(const struct observation *o)
{
    double least = HUGE_VAL;
    for (uint32_t p = 0; p < o->spec.point_count; p++)
        least = fmin(least, stats_median_u32(observation_chase(o, p), o->spec.samples));
    return least;
}

/* Returns the cycles that a miss of the last level adds on this SM. If they are unknown, returns
 * the cycles for all SMs. */
static double miss_cycles(const struct fingerprint *fp, uint16_t sm_id)
{
    const struct maybe_f64 own = fp->topology.sm_miss_penalty_cycles[sm_id];
    return own.known == MAYBE_KNOWN ? own.v : fp->levels[fp->level_count - 1].miss_penalty_cycles.v;
}

/* Returns whether the walk begins within the entries of the level and ends beyond them. */
static bool crosses_level(const struct observation *o, const struct sim_level *l)
{
    const struct probe_spec *s = &o->spec;
    bool fits = false;
    bool beyond = false;
    for (uint32_t p = 0; p < s->point_count; p++) {
        fits = fits || (s->points[p] <= l->entries && s->points[p] > l->entries / 2);
        beyond = beyond || s->points[p] > l->entries;
    }
    return s->stride_bytes == l->entry_bytes && fits && beyond;
}

static uint64_t page_address(const struct probe_spec *s, uint32_t point, uint64_t i)
{
    return s->base_bytes + i % s->points[point] * s->stride_bytes;
}

/* Repeats the timed loads of a point. A load counts as a miss if it takes more than slow_cycles. */
static void replay_point(struct replay_state *r, const struct observation *o, uint32_t sm,
                         uint32_t point, double slow_cycles, bool is_judged)
{
    const uint32_t *cycles = observation_chase(o, point);
    for (uint64_t i = 0; i < o->spec.samples; i++) {
        const uint64_t va = page_address(&o->spec, point, i);
        const bool walked = sim_mmu_access(r->mmu, sm, va) == r->machine->level_count;
        const bool is_wrong = walked != (cycles[i] > slow_cycles);
        if (!is_judged)
            continue;
        r->score.loads++;
        r->score.wrong += is_wrong;
        if (is_wrong)
            r->wrong_sets[sim_tlb_set(r->sets, va)] = true;
    }
}

static void replay_chase(struct replay_state *r, const struct observation *o, uint32_t sm)
{
    const struct probe_spec *s = &o->spec;
    const bool is_judged = crosses_level(o, &r->machine->levels[r->machine->level_count - 1]);
    const double slow_cycles = hit_cycles(o) + miss_cycles(r->fp, s->sms[0]) / 2;
    r->score.walks += is_judged;
    for (uint32_t p = 0; p < s->point_count; p++) {
        for (uint64_t i = 0; i < s->warm_laps * s->points[p]; i++)
            (void)sim_mmu_access(r->mmu, sm, page_address(s, p, i));
        replay_point(r, o, sm, p, slow_cycles, is_judged);
        if (r->own_page != NO_PAGE)
            (void)sim_mmu_access(r->mmu, sm, r->own_page);
    }
}

static void replay_all(struct replay_state *r, const struct observation_set *set, uint64_t own_page)
{
    r->own_page = own_page;
    r->score = (struct latency_score){0};
    sim_mmu_flush(r->mmu);
    for (size_t i = 0; i < set->count; i++) {
        const struct observation *o = &set->items[i];
        const bool is_chase = o->spec.kind == PROBE_CHASE && o->spec.memory == MEMORY_DEVICE;
        const uint32_t sm =
            is_chase ? probe_sm_position(r->machine->sm_ids, r->machine->sm_count, o->spec.sms[0])
                     : r->machine->sm_count;
        if (sm < r->machine->sm_count)
            replay_chase(r, o, sm);
        else
            sim_mmu_flush(r->mmu);
    }
}

/* Makes a new model with `count` recent misses beside the sets. */
static enum status set_recent_misses(struct replay_state *r, uint32_t count, struct err *err)
{
    sim_mmu_free(r->mmu);
    r->wide.levels[r->wide.level_count - 1].recent = count;
    r->mmu = sim_mmu_new(&r->wide);
    return r->mmu ? STATUS_OK
                  : err_set(err, STATUS_NO_MEMORY, "cannot allocate the model: out of memory");
}

/* Tries a page of each set, from `end_bytes` on. Returns the best page, or NO_PAGE if no page
 * reduces the number of wrong loads. */
static uint64_t try_own_pages(struct replay_state *r, const struct observation_set *set,
                              uint64_t end_bytes)
{
    const struct sim_level *last = &r->machine->levels[r->machine->level_count - 1];
    bool is_candidate[MAX_SETS];
    struct latency_score best;
    uint64_t best_page = NO_PAGE;

    replay_all(r, set, NO_PAGE);
    best = r->score;
    best.wrong_alone = best.wrong;
    memcpy(is_candidate, r->wrong_sets, sizeof is_candidate);
    for (uint64_t n = 0; n < last->runs[0].count; n++) {
        const uint64_t page = end_bytes + n * last->entry_bytes;
        if (!is_candidate[sim_tlb_set(r->sets, page)])
            continue;
        replay_all(r, set, page);
        if (r->score.wrong < best.wrong) {
            best.wrong = r->score.wrong;
            best_page = page;
        }
    }
    r->score = best;
    return best_page;
}

/* Rounds up to a multiple of the bytes that one entry per set covers. */
static uint64_t round_up_to_sets(const struct sim_level *l, uint64_t bytes)
{
    const uint64_t round = l->entry_bytes * l->runs[0].count;
    return (bytes + round - 1) / round * round;
}

static enum status score_replays(struct replay_state *r, const struct observation_set *set,
                                 struct latency_score *out, struct err *err)
{
    const struct sim_level *last = &r->machine->levels[r->machine->level_count - 1];
    const uint64_t end_bytes = round_up_to_sets(last, set->limits.range_bytes);

    r->wide.range_bytes = round_up_to_sets(last, end_bytes + 1);
    enum status s = set_recent_misses(r, last->recent, err);
    if (s != STATUS_OK)
        return s;
    const uint64_t page = try_own_pages(r, set, end_bytes);
    *out = r->score;
    s = set_recent_misses(r, last->recent - 1, err);
    if (s != STATUS_OK)
        return s;
    replay_all(r, set, page);
    out->wrong_fewer = r->score.wrong;
    s = set_recent_misses(r, last->recent + 1, err);
    if (s == STATUS_OK)
        replay_all(r, set, page);
    out->wrong_more = r->score.wrong;
    return s;
}

enum status latency_replay(const struct observation_set *set, const struct fingerprint *fp,
                           const struct sim_desc *machine, struct latency_score *out,
                           struct err *err)
{
    const struct sim_level *last = &machine->levels[machine->level_count - 1];
    struct sim_tlb *sets = sim_tlb_new(last, 0);
    struct replay_state r = {.fp = fp, .machine = machine, .wide = *machine, .sets = sets};
    enum status s = STATUS_OK;

    *out = (struct latency_score){0};
    if (!sets || last->runs[0].count > MAX_SETS)
        s = err_set(err, STATUS_NO_MEMORY, "cannot allocate %u sets: out of memory",
                    last->runs[0].count);
    else
        s = score_replays(&r, set, out, err);
    sim_mmu_free(r.mmu);
    sim_tlb_free(sets);
    return s;
}
