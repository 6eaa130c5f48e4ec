/* heats.h: divides pages or lines that are accessed unequally often into parts of about equally
 * accessed ones. The function is pure, allocates nothing, and may be called on any thread. */
#pragma once

#include <stdint.h>

enum { HEATS_MAX = 48 };

/* Items that are accessed about equally often, as shares of all items and of all accesses. */
struct heat {
    double items;
    double accesses;
};

/* Divides items, of which the most accessed share x receives the share x^(1 - concentration) of the
 * accesses, and returns the number of parts, at most `most` (1..HEATS_MAX). Each part has the share
 * `cooler` of the items that are not in the parts before it; the last part has the hottest items. A
 * part is divided further only if it has the share `least` of all items. */
uint32_t heats_divide(double concentration, double cooler, double least, uint32_t most,
                      struct heat *out);
