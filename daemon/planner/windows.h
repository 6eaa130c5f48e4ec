/* windows.h: assigns groups of SMs to windows, and cuts [0, bytes) into windows whose lengths are
 * in proportion to their SMs. The functions are pure, allocate nothing, and may be called on any
 * thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Puts each of `count` groups (sizes >= 1, at most REACH_MAX_GROUPS of them) into one of `windows`
 * windows, 1 <= windows <= count. No window stays empty, and no two windows differ by more than the
 * largest group. Windows are numbered by their lowest group. The same input always gives the same
 * answer. `window_of` has `count` elements, `totals` has `windows`. Returns false, and writes
 * nothing, if a number is out of these ranges. */
bool windows_assign(const uint32_t *sizes, uint32_t count, uint32_t windows, uint16_t *window_of,
                    uint32_t *totals);

struct windows_request {
    uint64_t bytes;
    uint64_t unit_bytes;    /* every bound except the last is a multiple of this size */
    uint64_t limit_bytes;   /* the longest allowed window */
    const uint32_t *shares; /* SMs of each window, each >= 1 */
    uint32_t windows;       /* 1..PLACEMENT_MAX_WINDOWS */
};

struct windows_result {
    bool fits;  /* all windows are within the limit; if false, the other members are not valid */
    bool empty; /* a window has no bytes, although all windows fit */
    bool proportional; /* no window was cut short at the limit */
    double imbalance;  /* bytes per SM of the fullest window, relative to the mean; 1 means even */
};

/* Returns the unit of window bounds. Without a granularity (0) it is the entry. Otherwise it is a
 * common multiple of granularity and entry if this multiple is small enough for windows of
 * limit_bytes. If not, it is the smallest multiple of the granularity that is not below the
 * entry. */
uint64_t windows_unit(uint64_t entry_bytes, uint64_t granularity_bytes, uint64_t limit_bytes);

/* Cuts the bytes into windows, and writes the length of each window to `lengths`. */
struct windows_result windows_cut(const struct windows_request *request, uint64_t *lengths);
