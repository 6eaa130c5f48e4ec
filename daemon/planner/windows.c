/* windows.c: assigns SM groups to windows evenly, and computes the bounds of the windows.
 *
 * The division of numbers into k sums that are as equal as possible is NP-hard. Groups are few and
 * have two or three sizes, so a heuristic is sufficient:
 *
 *   1. Longest first (Graham: Bounds on Multiprocessing Timing Anomalies, 1969): Each group, in
 *      order of falling size, goes to the window with the smallest sum. Two sums then never differ
 *      by more than the largest group, because the last group went to the smallest sum.
 *   2. Improve: Each step moves one group, or exchanges two groups, between the fullest or the
 *      emptiest window and another window. It is the step that lowers the sum of squares most. The
 *      steps end if none lowers the sum, and no step widens the gap between the windows.
 *
 * Worked example: sizes 7 7 6 6 5 5 4 4 4 into 3 windows. Longest first ends with 19 14 15. The
 * exchange of a 7 and a 5 gives 17 16 15. The exchange of a 5 and a 4 gives 16 16 16.
 *
 * The result is a local optimum. An exchange of three groups at once is not tried.
 */
#include "planner/windows.h"

#include "base/divisor.h"
#include "planner/placement.h"

#include <string.h>

/* ---- groups to windows ---- */

/* A limit for the time of an answer. No real chip needs this number of steps. */
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

/* One change: group `give` moves to window `to`, and group `get` moves from there to the window of
 * `give`. If `get` is NO_GROUP, only `give` moves. */
struct change {
    uint32_t give;
    uint32_t get;
    uint16_t to;
    int64_t gain; /* decrease of the sum of squares */
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

/* Returns the decrease of the sum of squares if `moved` moves from the window with sum a to the
 * window with sum b. */
static int64_t gain_of(int64_t a, int64_t b, int64_t moved)
{
    return a * a + b * b - (a - moved) * (a - moved) - (b + moved) * (b + moved);
}

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

bool windows_assign(const uint32_t *sizes, uint32_t count, uint32_t windows, uint16_t *window_of,
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

/* ---- bounds ---- */

/* The bounds between windows.
 *
 * A window gets bytes in proportion to its SMs, so that all SMs finish together. With 50, 48 and 34
 * SMs, 132 GiB are divided into 50, 48 and 34 GiB. Lengths are counted in whole units (the TLB
 * entry, or the requested granularity). Bound k is at unit floor(units * SMs of windows 0..k / all
 * SMs). Bytes behind the last whole unit belong to the last window.
 *
 * A proportional window that would exceed the limit is cut at the limit. The cut bytes are spread
 * over the other windows, again in proportion, until no window exceeds it.
 *
 * The limit is the reach less one entry, because a range of L bytes at any base touches at most
 * ceil(L / entry) + 1 entries. With L <= reach - entry there are enough entries for bounds and
 * bases of any alignment. Bounds that are multiples of the entry only keep two windows from sharing
 * an entry. So bounds at another granularity cause no misses.
 */
typedef unsigned __int128 wide;

/* A common multiple of entry and granularity is the unit if a window has at least this number of
 * units. A bound then moves by less than two percent of a window. */
enum { UNITS_PER_WINDOW = 64 };

uint64_t windows_unit(uint64_t entry_bytes, uint64_t granularity_bytes, uint64_t limit_bytes)
{
    uint64_t factor;
    wide common;
    wide coarse;

    if (granularity_bytes == 0 || entry_bytes % granularity_bytes == 0)
        return entry_bytes;
    factor = granularity_bytes / greatest_common_divisor(entry_bytes, granularity_bytes);
    common = (wide)entry_bytes * factor;
    if (common == granularity_bytes || common * UNITS_PER_WINDOW <= limit_bytes)
        return (uint64_t)common;
    coarse = ((wide)entry_bytes + granularity_bytes - 1) / granularity_bytes * granularity_bytes;
    return coarse > UINT64_MAX ? UINT64_MAX : (uint64_t)coarse;
}

/* One division of the bytes into whole units. */
struct cut {
    const struct windows_request *request;
    uint64_t units;                   /* number of whole units */
    uint64_t rest_bytes;              /* bytes behind the last whole unit, for the last window */
    bool full[PLACEMENT_MAX_WINDOWS]; /* windows at their cap */
};

static uint64_t cap_of(const struct cut *c, uint32_t w)
{
    const struct windows_request *r = c->request;
    uint64_t room = w + 1 == r->windows ? r->limit_bytes - c->rest_bytes : r->limit_bytes;

    return room / r->unit_bytes;
}

/* Returns the number of SMs of the windows that are not full, and writes the units that remain for
 * these windows. */
static uint64_t open_share(const struct cut *c, uint64_t *out_units)
{
    uint64_t share = 0;
    uint64_t units = c->units;

    for (uint32_t w = 0; w < c->request->windows; w++) {
        if (c->full[w])
            units -= cap_of(c, w);
        else
            share += c->request->shares[w];
    }
    *out_units = units;
    return share;
}

/* Marks the windows whose proportional part exceeds their cap. Returns whether it marked a
 * window. */
static bool fill_up(struct cut *c)
{
    uint64_t units;
    uint64_t share = open_share(c, &units);
    bool any = false;

    for (uint32_t w = 0; w < c->request->windows; w++) {
        if (!c->full[w] && (wide)units * c->request->shares[w] > (wide)cap_of(c, w) * share) {
            c->full[w] = true;
            any = true;
        }
    }
    return any;
}

static void write_lengths(const struct cut *c, uint64_t *lengths)
{
    const struct windows_request *r = c->request;
    uint64_t units;
    uint64_t share = open_share(c, &units);
    uint64_t sum = 0;
    uint64_t before = 0;

    for (uint32_t w = 0; w < r->windows; w++) {
        uint64_t length = cap_of(c, w);
        if (!c->full[w]) {
            uint64_t bound;
            sum += r->shares[w];
            bound = (uint64_t)((wide)units * sum / share);
            length = bound - before;
            before = bound;
        }
        lengths[w] = length * r->unit_bytes;
    }
    lengths[r->windows - 1] += c->rest_bytes;
}

static double imbalance_of(const struct windows_request *r, const uint64_t *lengths)
{
    uint64_t share = 0;
    double worst = 0;

    for (uint32_t w = 0; w < r->windows; w++) {
        double each = (double)lengths[w] / r->shares[w];
        share += r->shares[w];
        if (each > worst)
            worst = each;
    }
    return worst * (double)share / (double)r->bytes;
}

struct windows_result windows_cut(const struct windows_request *request, uint64_t *lengths)
{
    struct windows_result result = {.fits = false, .empty = false, .proportional = true};
    struct cut c = {.request = request,
                    .units = request->bytes / request->unit_bytes,
                    .rest_bytes = request->bytes % request->unit_bytes};
    wide room = 0;

    if (request->windows == 0 || request->windows > PLACEMENT_MAX_WINDOWS)
        return result;
    if (c.rest_bytes > request->limit_bytes)
        return result;
    for (uint32_t w = 0; w < request->windows; w++)
        room += cap_of(&c, w);
    if (room < c.units)
        return result;

    /* Each turn fills at least one more window. There is room for all units, so not all windows can
     * exceed their caps at once. The last open window takes the remaining units. */
    while (fill_up(&c))
        result.proportional = false;
    write_lengths(&c, lengths);
    result.fits = true;
    for (uint32_t w = 0; w < request->windows; w++)
        result.empty = result.empty || lengths[w] == 0;
    result.imbalance = imbalance_of(request, lengths);
    return result;
}
