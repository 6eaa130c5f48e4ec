/* sched.c: a score for each warp. Who lost locality scores higher; sorted by score, the warps up to
 * that whose sum reaches the cutoff may load. Without losses every score is the base, and the sum
 * of all is the cutoff. Rules and constants are those of the simulator that the authors of CCWS
 * released (tgrogers/ccws-2012, scheduling-point-system.cc and QuadroFX5800-CCWS/gpgpusim.config).
 */
#include "clients/lab/sched.h"

#include <stdlib.h>

/* Nothing here was chosen by looking at a result. That simulator's cores have cycles of 325 MHz in
 * which a warp issues an instruction; one of these is four of the engine's (pichai_machines.c).
 */
const struct lab_sched_constants lab_sched_constants = {
    .base_score = 100,
    .throttle = 8,
    .line_entries = 16,
    .line_ways = 8,
    .page_entries = 8,
    .decay_cycles = 4,
    .settle_cycles = 64,
    .refresh_cycles = 400,
};

struct lab_locality_state *lab_locality_new(const struct lab_sched_desc *desc, uint32_t warps)
{
    const struct lab_sched_constants *c = &lab_sched_constants;
    const uint32_t usual = desc->locality == LAB_OF_PAGES ? c->page_entries : c->line_entries;
    const uint32_t entries = desc->entries > 0 ? desc->entries : usual;
    const uint32_t ways = entries < c->line_ways ? entries : c->line_ways;
    struct lab_locality_state *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->desc = *desc;
    s->warps = warps;
    s->live = warps;
    for (uint32_t w = 0; w < warps; w++) {
        s->score[w] = c->base_score;
        s->victims[w] = lab_cache_new(entries / ways, ways);
        if (!s->victims[w]) {
            lab_locality_free(s);
            return NULL;
        }
    }
    return s;
}

void lab_locality_free(struct lab_locality_state *take)
{
    if (!take)
        return;
    for (uint32_t w = 0; w < take->warps; w++)
        lab_cache_free(take->victims[w]);
    free(take);
}

static uint64_t score_at(const struct lab_locality_state *s, uint32_t warp, uint64_t now)
{
    const uint64_t base = lab_sched_constants.base_score;
    const uint64_t lost = (now - s->at[warp]) / lab_sched_constants.decay_cycles;
    return s->score[warp] > base + lost ? s->score[warp] - lost : base;
}

void lab_locality_evicted(struct lab_locality_state *s, uint32_t warp, uint32_t tag)
{
    struct lab_cache *victims = s->victims[warp];
    const uint32_t slot = lab_cache_find(victims, tag);
    uint32_t evicted;
    if (slot == LAB_NO_SLOT) /* first in, first out */
        (void)lab_cache_fill(victims, tag, &evicted);
}

static uint64_t cutoff(const struct lab_locality_state *s)
{
    return (uint64_t)s->live * lab_sched_constants.base_score;
}

static void set_score(struct lab_locality_state *s, uint32_t warp, uint64_t score, uint64_t now)
{
    const uint64_t base = lab_sched_constants.base_score;
    s->score[warp] = score > base ? score : base;
    s->at[warp] = now;
    s->raised |= (uint64_t)1 << warp;
    s->changed = true;
}

void lab_locality_ended(struct lab_locality_state *s, uint32_t warp)
{
    s->hits -= s->hits_of[warp];
    s->instructions -= s->instructions_of[warp];
    s->hits_of[warp] = 0;
    s->instructions_of[warp] = 0;
    s->score[warp] = lab_sched_constants.base_score;
    s->raised &= ~((uint64_t)1 << warp);
    s->changed = true;
}

void lab_locality_missed(struct lab_locality_state *s, uint32_t warp, uint32_t tag, uint32_t weight,
                         uint64_t now)
{
    const uint32_t slot = lab_cache_find(s->victims[warp], tag);
    if (slot == LAB_NO_SLOT)
        return;
    lab_cache_drop(s->victims[warp], tag);
    s->hits++;
    s->hits_of[warp]++;
    const uint64_t issued = s->instructions > 0 ? s->instructions : 1;
    set_score(s, warp, weight * (s->hits * lab_sched_constants.throttle * cutoff(s) / issued), now);
}

void lab_locality_hit(struct lab_locality_state *s, uint32_t warp, uint32_t depth, uint64_t now)
{
    const uint32_t points = s->desc.depth_weights[depth < LAB_DEPTHS ? depth : LAB_DEPTHS - 1];
    if (points > 0)
        set_score(s, warp, score_at(s, warp, now) + points, now);
}

/* Is what was found last still good? Not if all of those that might load have ended. */
static bool is_recent(const struct lab_locality_state *s, uint64_t live, uint64_t now)
{
    const uint64_t good =
        s->changed ? lab_sched_constants.settle_cycles : lab_sched_constants.refresh_cycles;
    return s->started && (s->may_load & live) != 0 && now - s->found_at < good;
}

/* Live warps above the base as they are now, and their scores; returns the sum. */
static uint64_t find_raised(struct lab_locality_state *s, uint64_t live, uint64_t now,
                            uint64_t scores[LAB_MAX_WARPS])
{
    uint64_t sum = 0;
    for (uint64_t left = s->raised & live; left != 0; left &= left - 1) {
        const uint32_t warp = (uint32_t)__builtin_ctzll(left);
        scores[warp] = score_at(s, warp, now);
        if (scores[warp] == lab_sched_constants.base_score)
            s->raised &= ~((uint64_t)1 << warp);
        else
            sum += scores[warp];
    }
    return sum;
}

/* Of those in `raised`, one after the other, whoever scores most, of two the lower, until the sum
 * reaches the cutoff. */
static uint64_t highest(const struct lab_locality_state *s, uint64_t raised,
                        const uint64_t scores[LAB_MAX_WARPS])
{
    uint64_t chosen = 0;
    for (uint64_t sum = 0; raised != 0 && sum < cutoff(s);) {
        uint32_t best = (uint32_t)__builtin_ctzll(raised);
        for (uint64_t left = raised & (raised - 1); left != 0; left &= left - 1) {
            const uint32_t warp = (uint32_t)__builtin_ctzll(left);
            best = scores[warp] > scores[best] ? warp : best;
        }
        sum += scores[best];
        raised &= ~((uint64_t)1 << best);
        chosen |= (uint64_t)1 << best;
    }
    return chosen;
}

/* Without the last `count` of them. */
static uint64_t drop_last(uint64_t warps, uint64_t count)
{
    for (; count > 0; count--)
        warps &= ~((uint64_t)1 << (LAB_MAX_WARPS - 1 - __builtin_clzll(warps)));
    return warps;
}

/* What the raised ones have above the base costs others their turn: those at the base first, the
 * last of them first. */
uint64_t lab_locality_may_load(struct lab_locality_state *s, uint64_t live, uint64_t now)
{
    const uint64_t base = lab_sched_constants.base_score;
    uint64_t scores[LAB_MAX_WARPS];
    if (is_recent(s, live, now))
        return s->may_load & live;
    const uint64_t sum = find_raised(s, live, now, scores);
    const uint64_t raised = s->raised & live;
    const uint64_t lost = sum / base - (uint32_t)__builtin_popcountll(raised);
    const uint64_t others = live & ~raised;
    s->live = (uint32_t)__builtin_popcountll(live);
    s->may_load = lost < (uint32_t)__builtin_popcountll(others) ? raised | drop_last(others, lost)
                                                                : highest(s, raised, scores);
    s->started = true;
    s->found_at = now;
    s->changed = false;
    return s->may_load;
}
