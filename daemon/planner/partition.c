/* partition.c: SM groups into windows, evenly.
 *
 * To split numbers into k sums that are as equal as possible is NP-hard, but groups are few and of
 * two or three sizes. So:
 *
 *   1. Longest first (Graham: Bounds on Multiprocessing Timing Anomalies, 1969): groups by falling
 *      size, each into the window with the smallest sum. Two sums then never differ by more than
 *      the largest group, since the group that made the difference went to the smallest sum.
 *   2. Improve: as long as moving one group, or exchanging two, between the fullest or the emptiest
 *      window and another one lowers the sum of squares, do the best of these. The sum of squares
 *      falls with each step, so this ends, and it never widens the gap.
 *
 * Worked example: sizes 7 7 6 6 5 5 4 4 4 into 3 windows. Longest first ends with 19 14 15;
 * exchanging a 7 with a 5 gives 17 16 15, then a 5 with a 4 gives 16 16 16.
 *
 * Limits: a local optimum. Three groups that have to change places at once stay where they are.
 */
#include "planner/partition.h"

#include "base/identity.h"

#include <stdbool.h>
#include <string.h>

/* More steps than any real chip needs; a bound on the time of an answer, not on its quality. */
enum { IMPROVE_STEPS = 512 };

static const uint32_t NO_GROUP = UINT32_MAX;

struct assignment {
    const uint32_t *sizes;
    uint32_t count;
    uint32_t windows;
    uint16_t *window_of;
    uint32_t *totals;
    uint32_t members[REACH_MAX_GROUPS]; /* groups in each window */
};

/* One exchange: `give` moves to the window of `get`, and `get` back; NO_GROUP: only `give` moves.
 */
struct change {
    uint32_t give;
    uint32_t get;
    uint16_t to;
    int64_t gain; /* how much the sum of squares falls */
};

static void sort_falling(const uint32_t *sizes, uint32_t count, uint16_t *order)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;
        while (at > 0 && sizes[order[at - 1]] < sizes[i]) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = (uint16_t)i;
    }
}

static void assign_longest_first(struct assignment *d)
{
    uint16_t order[REACH_MAX_GROUPS];

    sort_falling(d->sizes, d->count, order);
    for (uint32_t i = 0; i < d->count; i++) {
        uint32_t best = 0;
        for (uint32_t w = 1; w < d->windows; w++) {
            if (d->totals[w] < d->totals[best])
                best = w;
        }
        d->window_of[order[i]] = (uint16_t)best;
        d->totals[best] += d->sizes[order[i]];
        d->members[best]++;
    }
}

/* Sum of squares before less after, when `moved` leaves the window with sum a for that with b. */
static int64_t gain_of(int64_t a, int64_t b, int64_t moved)
{
    return a * a + b * b - (a - moved) * (a - moved) - (b + moved) * (b + moved);
}

/* The best change between window `w` and any other. */
static void consider_window(const struct assignment *d, uint16_t w, struct change *best)
{
    for (uint32_t g = 0; g < d->count; g++) {
        if (d->window_of[g] != w)
            continue;
        for (uint32_t h = 0; h < d->count; h++) {
            uint16_t to = d->window_of[h];
            int64_t gain;
            if (to == w)
                continue;
            gain = gain_of(d->totals[w], d->totals[to], (int64_t)d->sizes[g] - d->sizes[h]);
            if (gain > best->gain)
                *best = (struct change){.give = g, .get = h, .to = to, .gain = gain};
            gain = gain_of(d->totals[w], d->totals[to], d->sizes[g]);
            if (gain > best->gain && d->members[w] > 1)
                *best = (struct change){.give = g, .get = NO_GROUP, .to = to, .gain = gain};
            gain = gain_of(d->totals[to], d->totals[w], d->sizes[h]);
            if (gain > best->gain && d->members[to] > 1)
                *best = (struct change){.give = h, .get = NO_GROUP, .to = w, .gain = gain};
        }
    }
}

static void apply(struct assignment *d, const struct change *c)
{
    uint16_t from = d->window_of[c->give];

    d->window_of[c->give] = c->to;
    d->totals[from] -= d->sizes[c->give];
    d->totals[c->to] += d->sizes[c->give];
    if (c->get == NO_GROUP) {
        d->members[from]--;
        d->members[c->to]++;
        return;
    }
    d->window_of[c->get] = from;
    d->totals[c->to] -= d->sizes[c->get];
    d->totals[from] += d->sizes[c->get];
}

static bool improve(struct assignment *d)
{
    struct change best = {.give = NO_GROUP, .get = NO_GROUP, .to = 0, .gain = 0};
    uint16_t fullest = 0;
    uint16_t emptiest = 0;

    for (uint32_t w = 1; w < d->windows; w++) {
        if (d->totals[w] > d->totals[fullest])
            fullest = (uint16_t)w;
        if (d->totals[w] < d->totals[emptiest])
            emptiest = (uint16_t)w;
    }
    if (d->totals[fullest] - d->totals[emptiest] < 2)
        return false; /* whole SMs cannot be divided more evenly */
    consider_window(d, fullest, &best);
    consider_window(d, emptiest, &best);
    if (best.gain <= 0)
        return false;
    apply(d, &best);
    return true;
}

/* Numbers the windows by their lowest group, so that equal plans compare equal. */
static void number_by_lowest(struct assignment *d)
{
    uint32_t old_totals[REACH_MAX_GROUPS];
    uint16_t new_of[REACH_MAX_GROUPS];
    bool named[REACH_MAX_GROUPS] = {false};
    uint16_t next = 0;

    memcpy(old_totals, d->totals, d->windows * sizeof(*old_totals));
    for (uint32_t g = 0; g < d->count; g++) {
        uint16_t old = d->window_of[g];
        if (!named[old]) {
            named[old] = true;
            new_of[old] = next;
            d->totals[next++] = old_totals[old];
        }
        d->window_of[g] = new_of[old];
    }
}

bool partition_balance(const uint32_t *sizes, uint32_t count, uint32_t windows, uint16_t *window_of,
                       uint32_t *totals)
{
    struct assignment d = {.sizes = sizes,
                           .count = count,
                           .windows = windows,
                           .window_of = window_of,
                           .totals = totals};

    if (windows == 0 || windows > count || count > REACH_MAX_GROUPS)
        return false;
    memset(totals, 0, windows * sizeof(*totals));
    assign_longest_first(&d);
    for (uint32_t step = 0; step < IMPROVE_STEPS; step++) {
        if (!improve(&d))
            break;
    }
    number_by_lowest(&d);
    return true;
}
