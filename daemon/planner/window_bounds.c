/* window_bounds.c: where one window ends and the next begins.
 *
 * A window gets bytes in proportion to its SMs, so that all SMs finish together: with 50, 48 and
 * 34 SMs, 132 GiB fall into 50, 48 and 34 GiB. Lengths are counted in whole units (the TLB entry,
 * or the requested granularity), bound k at floor(units * SMs so far / all SMs); what is left over
 * behind the last whole unit belongs to the last window.
 *
 * A proportional window that would exceed the limit is cut at the limit, and what it loses is
 * spread over the others, again in proportion, until none exceeds it.
 *
 * Why the limit is reach less one entry: a range of L bytes at any base touches at most
 * ceil(L / entry) + 1 entries. With L <= reach - entry these are at most as many as there are, for
 * bounds and bases of any alignment. Bounds at entries only keep two windows from sharing one, so
 * an odd granularity may break that alignment without harm.
 */
#include "planner/window_bounds.h"

#include "planner/placement.h"

#include <string.h>

typedef unsigned __int128 wide;

/* A common multiple of entry and granularity is taken while this many of it make a window: it then
 * moves a bound by less than two percent of a window. */
enum { UNITS_PER_WINDOW = 64 };

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

uint64_t window_bounds_unit(uint64_t entry_bytes, uint64_t granularity_bytes, uint64_t limit_bytes)
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

/* One cut in whole units. */
struct cut {
    const struct window_bounds_request *request;
    uint64_t units;                   /* whole units in all */
    uint64_t rest_bytes;              /* behind the last whole unit; of the last window */
    bool full[PLACEMENT_MAX_WINDOWS]; /* at its cap */
};

static uint64_t cap_of(const struct cut *c, uint32_t w)
{
    const struct window_bounds_request *r = c->request;
    uint64_t room = w + 1 == r->windows ? r->limit_bytes - c->rest_bytes : r->limit_bytes;

    return room / r->unit_bytes;
}

/* SMs of the windows that are not full, and the units that are left for them. */
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

/* Marks the windows whose proportional part is beyond their cap. True: some were. */
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
    const struct window_bounds_request *r = c->request;
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

static double imbalance_of(const struct window_bounds_request *r, const uint64_t *lengths)
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

struct window_bounds_result window_bounds_cut(const struct window_bounds_request *request,
                                              uint64_t *lengths)
{
    struct window_bounds_result result = {.fits = false, .empty = false, .proportional = true};
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

    /* Each turn fills at least one more window. There is room for all units, so they cannot all be
     * beyond their caps at once, and a last open window takes what is left. */
    while (fill_up(&c))
        result.proportional = false;
    write_lengths(&c, lengths);
    result.fits = true;
    for (uint32_t w = 0; w < request->windows; w++)
        result.empty = result.empty || lengths[w] == 0;
    result.imbalance = imbalance_of(request, lengths);
    return result;
}
