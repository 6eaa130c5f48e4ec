/* sched.c: see sched.h. Each warp has a score, and a warp that lost lines has a higher score. The
 * warps with the highest scores may load, until the sum of their scores reaches the cutoff. If no
 * warp lost a line, every score is the base, and the sum of all scores is the cutoff.
 *
 * Rules and constants come from the simulator that the authors of CCWS released
 * (tgrogers/ccws-2012: scheduling-point-system.cc, gpu-cache.cc,
 * QuadroFX5800-CCWS/gpgpusim.config). The score of a warp that ended is 0, and its successor begins
 * with that score. A loss that is worth less than the base leaves a score below the base. A victim
 * tag that was missed stays.
 */
#include "clients/lab/papers/engine/sched.h"

#include <stdlib.h>

struct lab_locality_state *lab_locality_new(const struct lab_sched_desc *desc, uint32_t warps)
{
    const uint32_t entries = desc->locality == LAB_OF_PAGES ? LAB_PAGE_ENTRIES : LAB_LINE_ENTRIES;
    const uint32_t ways = entries < LAB_LINE_WAYS ? entries : LAB_LINE_WAYS;
    struct lab_locality_state *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->desc = *desc;
    s->warps = warps;
    s->live = warps;
    for (uint32_t w = 0; w < warps; w++) {
        s->score[w] = LAB_BASE_SCORE;
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

/* Returns the score at `now`. A score above the base falls to the base. A score below the base
 * stays. */
static uint64_t score_at(const struct lab_locality_state *s, uint32_t warp, uint64_t now)
{
    const uint64_t base = LAB_BASE_SCORE;
    const uint64_t lost = (now - s->at[warp]) / LAB_DECAY_CYCLES;
    if (s->score[warp] <= base)
        return s->score[warp];
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

static uint64_t cutoff_score(const struct lab_locality_state *s)
{
    return (uint64_t)s->live * LAB_BASE_SCORE;
}

/* Adds points. The new score is at most `most`, but at least the base. */
static void add_points(struct lab_locality_state *s, uint32_t warp, uint64_t points, uint64_t most,
                       uint64_t now)
{
    const uint64_t base = LAB_BASE_SCORE;
    const uint64_t sum = score_at(s, warp, now) + points;
    const uint64_t bit = (uint64_t)1 << warp;
    s->score[warp] = sum <= base ? base : sum < most ? sum : most;
    s->at[warp] = now;
    s->raised = s->score[warp] > base ? s->raised | bit : s->raised & ~bit;
    s->low = s->score[warp] < base ? s->low | bit : s->low & ~bit;
}

void lab_locality_ended(struct lab_locality_state *s, uint32_t warp)
{
    s->hits -= s->hits_of[warp];
    s->instructions -= s->instructions_of[warp];
    s->hits_of[warp] = 0;
    s->instructions_of[warp] = 0;
    s->score[warp] = 0;
    s->raised &= ~((uint64_t)1 << warp);
    s->low |= (uint64_t)1 << warp;
}

void lab_locality_missed(struct lab_locality_state *s, uint32_t warp, uint32_t tag, uint32_t weight,
                         uint64_t now)
{
    if (lab_cache_find(s->victims[warp], tag) == LAB_NO_SLOT)
        return;
    s->hits++;
    s->hits_of[warp]++;
    const uint64_t issued = s->instructions > 0 ? s->instructions : 1;
    const uint64_t points = weight * (s->hits * LAB_THROTTLE * cutoff_score(s) / issued);
    add_points(s, warp, points, points, now);
}

void lab_locality_hit(struct lab_locality_state *s, uint32_t warp, uint32_t depth, uint64_t now)
{
    const uint32_t points = s->desc.depth_weights[depth < LAB_DEPTHS ? depth : LAB_DEPTHS - 1];
    if (points > 0)
        add_points(s, warp, points, UINT64_MAX, now);
}

/* Returns whether the last selection is recent and a selected warp still runs. */
static bool is_recent(const struct lab_locality_state *s, uint64_t live, uint64_t now)
{
    return s->started && (s->may_load & live) != 0 && now - s->found_at < LAB_FIND_CYCLES;
}

/* Writes the scores that differ from the base. Returns the sum of the scores of all `warps`. */
static uint64_t find_scores(struct lab_locality_state *s, uint64_t warps, uint64_t now,
                            uint64_t scores[LAB_MAX_WARPS])
{
    const uint64_t base = LAB_BASE_SCORE;
    const uint64_t others = warps & (s->raised | s->low);
    uint64_t sum = base * (uint32_t)__builtin_popcountll(warps & ~others);
    for (uint64_t left = others; left != 0; left &= left - 1) {
        const uint32_t warp = (uint32_t)__builtin_ctzll(left);
        scores[warp] = score_at(s, warp, now);
        if (scores[warp] == base)
            s->raised &= ~((uint64_t)1 << warp);
        sum += scores[warp];
    }
    return sum;
}

/* Selects warps until *sum reaches the cutoff, the highest score first. The lower warp number wins
 * ties. */
static uint64_t select_highest(const struct lab_locality_state *s, uint64_t warps,
                               const uint64_t scores[LAB_MAX_WARPS], uint64_t *sum)
{
    uint64_t chosen = 0;
    while (warps != 0 && *sum < cutoff_score(s)) {
        uint32_t best = (uint32_t)__builtin_ctzll(warps);
        for (uint64_t left = warps & (warps - 1); left != 0; left &= left - 1) {
            const uint32_t warp = (uint32_t)__builtin_ctzll(left);
            best = scores[warp] > scores[best] ? warp : best;
        }
        *sum += scores[best];
        warps &= ~((uint64_t)1 << best);
        chosen |= (uint64_t)1 << best;
    }
    return chosen;
}

/* Selects warps at the base until *sum reaches the cutoff, the lowest number first. */
static uint64_t select_lowest(const struct lab_locality_state *s, uint64_t warps, uint64_t *sum)
{
    uint64_t chosen = 0;
    for (; warps != 0 && *sum < cutoff_score(s); warps &= warps - 1) {
        chosen |= (uint64_t)1 << __builtin_ctzll(warps);
        *sum += LAB_BASE_SCORE;
    }
    return chosen;
}

uint64_t lab_locality_may_load(struct lab_locality_state *s, uint64_t live, uint64_t now)
{
    uint64_t scores[LAB_MAX_WARPS];
    if (is_recent(s, live, now))
        return s->may_load & live;
    s->live = (uint32_t)__builtin_popcountll(live);
    s->may_load = live;
    if (find_scores(s, live, now, scores) > cutoff_score(s)) {
        uint64_t sum = 0;
        s->may_load = select_highest(s, live & s->raised, scores, &sum);
        s->may_load |= select_lowest(s, live & ~s->raised & ~s->low, &sum);
        s->may_load |= select_highest(s, live & s->low, scores, &sum);
    }
    s->started = true;
    s->found_at = now;
    return s->may_load;
}
