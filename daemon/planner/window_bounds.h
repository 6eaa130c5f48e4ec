/* window_bounds.h: cuts [0, bytes) into windows whose lengths are in proportion to their SMs.
 * Pure; no allocation; any thread. */
#ifndef REACH_PLANNER_WINDOW_BOUNDS_H
#define REACH_PLANNER_WINDOW_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

struct window_bounds_request {
    uint64_t bytes;
    uint64_t unit_bytes;    /* every bound but the last is a multiple of this */
    uint64_t limit_bytes;   /* no window is longer */
    const uint32_t *shares; /* SMs of each window, each >= 1 */
    uint32_t windows;       /* 1..PLACEMENT_MAX_WINDOWS */
};

struct window_bounds_result {
    bool fits;         /* all within the limit; if not, the rest says nothing */
    bool empty;        /* fits, but some window has no byte */
    bool proportional; /* no window had to be cut short at the limit */
    double imbalance;  /* bytes per SM of the worst window over those of all; 1 is even */
};

/* The unit for a requested granularity (0: none): a multiple of both granularity and entry if that
 * is fine enough for windows of limit_bytes, else the smallest multiple of the granularity
 * that is not below the entry. */
uint64_t window_bounds_unit(uint64_t entry_bytes, uint64_t granularity_bytes, uint64_t limit_bytes);

/* Writes the length of each window to `lengths`. */
struct window_bounds_result window_bounds_cut(const struct window_bounds_request *request,
                                              uint64_t *lengths);

#endif
