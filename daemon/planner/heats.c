/* heats.c: see heats.h. */
#include "planner/heats.h"

#include <math.h>

uint32_t heats_divide(double concentration, double cooler, double least, uint32_t most,
                      struct heat *out)
{
    struct heat rest = {1, 1};
    uint32_t count = 0;

    while (concentration > 0 && count + 1 < most && rest.items >= least) {
        const double items = rest.items * (1 - cooler);
        const struct heat hotter = {items, pow(items, 1 - concentration)};
        out[count++] = (struct heat){rest.items - items, rest.accesses - hotter.accesses};
        rest = hotter;
    }
    out[count++] = rest;
    return count;
}
