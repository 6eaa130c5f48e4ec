/* layout.h: allocations that one job touches together, cut into matched parts. Part k is at the
 * same fraction of each allocation. Examples are the offsets and the edges of a graph, the metadata
 * and the values of a hash table, and a set of embedding tables. The functions are pure, allocate
 * nothing, and may be called on any thread.
 *
 * A position is a byte of all touched allocations together, 0 .. layout_touched_bytes. The fraction
 * is the position divided by layout_touched_bytes. An allocation that is not touched is cut too,
 * but uses no part of a reach.
 */
#pragma once

#include <stdint.h>

enum { LAYOUT_MAX = 16 };

struct layout_allocation {
    uint64_t bytes;     /* at least 1 */
    uint64_t row_bytes; /* bounds are multiples of this number, except the end; at least 1 */
    double touches;     /* accesses to the allocation per item; 0 means none */
};

struct layout {
    uint32_t count; /* 1 .. LAYOUT_MAX */
    struct layout_allocation of[LAYOUT_MAX];
};

/* Returns the layout of one allocation that is cut at any byte. */
struct layout layout_single(uint64_t bytes);

uint64_t layout_bytes(const struct layout *l); /* of all */
uint64_t layout_touched_bytes(const struct layout *l);

/* Returns the margin to subtract from a reach less one entry so that the parts of a window fit the
 * rest at any alignment. The margin is two entries for each further allocation, and two rows of
 * each allocation. It is 0 for one allocation that is cut at any byte. */
uint64_t layout_alignment_bytes(const struct layout *l, uint64_t entry_bytes);

/* Returns the bound of allocation `i` at this position: the fraction of the position, as whole
 * rows, rounded down. Allocations with the same number of rows are cut at the same row. */
uint64_t layout_bound(const struct layout *l, uint32_t i, uint64_t position);

struct layout_range {
    uint64_t first_byte;
    uint64_t length_bytes;
};

/* Returns the part of allocation `i` between two positions. The part may be empty if the allocation
 * has few rows. */
struct layout_range layout_part(const struct layout *l, uint32_t i, uint64_t from, uint64_t to);
/* Returns the sums over all allocations: the bytes before the parts, and the bytes of the parts. */
struct layout_range layout_parts(const struct layout *l, uint64_t from, uint64_t to);

/* Returns the number of evenly touched bytes that miss as often as the first `bytes` of this layout
 * in a TLB of `reach_bytes`. The number is at most `bytes`. Pages with more accesses stay in the
 * TLB longer. An access to a page hits if fewer other pages than entries were touched since its
 * last access. See Che, Tung, Wang: Hierarchical Web Caching Systems, 2002, section IV.
 *
 * `concentration` is from 0 to 1. The hottest share x of the pages of each allocation has the share
 * x^(1 - concentration) of its accesses, so all pages are accessed equally often if `concentration`
 * is 0. The result is not rounded: close to the reach, a byte changes the misses noticeably. */
double layout_effective_bytes(const struct layout *l, double concentration, uint64_t reach_bytes,
                              uint64_t bytes);
