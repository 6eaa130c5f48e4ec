/* sharing.h: finds the SMs that share one TLB level. The functions are pure.
 *
 * A pivot evicts; an SM whose own pages are evicted shares the level with it. Each SM is compared
 * with itself: the same pages, timed without thrashing just before (the control). So neither the
 * distance to a page's slice of L2 nor the distance to the next level matters.
 *
 *   ROUND  finds the whole group of one pivot: one round for each group
 *   PAIRS  one row finds it too, SM by SM, with all other SMs idle (Karnagel 2017, section 4.2):
 *          the second method, which checks the rounds
 *
 * Each repeat of a round, and each row of pairs, is a vote: the median over the slice of (after -
 * control). The median of an SM's votes is compared with half of the loss of the pivot itself,
 * whose pages were evicted for certain. Medians are used because a mean over a dozen loads puts one
 * to three of 132 SMs into a wrong group. If any SM is near the threshold, or its single pages
 * leave a doubt, the pivot needs more votes. After fifteen votes the pages alone decide. If the
 * pages leave a doubt too, the SMs that share the level are unknown.
 */
#pragma once

#include "analysis/levels/level_estimate.h"
#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

enum { SHARING_MAX_UNSETTLED = 8 };

/* The result of the rounds and pairs of one level. */
struct sharing_estimate {
    uint32_t rounds;           /* number of classified pivots, by either method */
    uint32_t lone_pivots;      /* number of pivots that evicted no other SM */
    bool whole_gpu;            /* every round evicted all SMs */
    bool conflict;             /* an SM must be in one group only */
    bool doubtful;             /* a pivot is not settled by the highest number of votes */
    struct sm_partition found; /* groups so far, numbered by their lowest SM id */
    uint32_t grouped_sms;
    uint32_t unsettled_count; /* number of pivots whose probe must be repeated for more votes */
    uint16_t unsettled[SHARING_MAX_UNSETTLED];
    uint32_t least_votes; /* fewest votes of a classified pivot */
    double margin;        /* 0..1: the least margin of any SM in any round (docs/methods.md) */
    bool by_rounds, by_pairs;
    double agreement; /* 0..1: the lowest agreement of any SM's votes in any round */
    double
        loss_cycles[REACH_MAX_SMS]; /* loss of each SM when evicted, by position; 0 if not seen */
};

enum sharing_method { SHARING_ROUNDS = 1, SHARING_PAIRS = 2, SHARING_BOTH = 3 };

/* Evaluates the observations of `methods` that test level `k` of `levels`. */
void sharing_estimate(const struct observation_set *set, const struct level_estimate *levels,
                      uint32_t level_count, uint32_t k, enum sharing_method methods,
                      struct sharing_estimate *out);

/* Makes a ROUND, or a row of PAIRS, about level k on `sms` SMs; the caller sets pivots and repeats.
 * Returns false if its pages do not fit the level.
 *
 * Consider a level of C entries on a chip of M SMs. The slices of a round are primed together and
 * must fit the level with room to spare: M * s <= 3/4 C and s >= 3. The slices must also fit
 * together with the pages that evict them from the nearer levels. These are 5/4 of the pages that
 * saturate those levels. If that is impossible (16 entries, 132 SMs), pairs test the SMs one at a
 * time: s + flush <= 3/4 C.
 *
 * An unknown nearer level may exist, too small for the sweeps or too cheap for the noise. A slice
 * that stays in it looks as if it had not been evicted. So up to 512 pages are walked if no nearer
 * level is known and there is room. */
bool sharing_test(const struct level_estimate *levels, uint32_t k, enum probe_kind kind,
                  uint64_t sms, struct probe_spec *out);

/* Returns the evidence of the groups, if any pivot was classified. */
struct evidence sharing_evidence(const struct sharing_estimate *s);

/* Fills in the groups of the partition, with their sizes, penalties and evidence. `loss_of_sm` is
 * the loss of an SM when evicted, by SM id (0 if not seen). */
void sharing_fill_groups(const double *loss_of_sm, struct evidence evidence, struct topology *out);

/* Returns the index of the level that a ROUND or PAIRS observation tests. It is the outermost level
 * that the primed pages fit and the thrashing pages do not, at a stride of one entry. Returns -1 if
 * there is none. */
int sharing_probed_level(const struct probe_spec *spec, uint32_t sm_count,
                         const struct level_estimate *levels, uint32_t level_count);

/* Writes the SM ids of the GPU in the observations. Returns 0 if there are none. */
uint32_t sharing_sm_ids(const struct observation_set *set, uint16_t *out);
