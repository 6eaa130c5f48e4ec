/* partition.h: assigns groups of different sizes to windows, as evenly as possible. Pure; no
 * allocation; any thread. */
#ifndef REACH_PLANNER_PARTITION_H
#define REACH_PLANNER_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

/* Puts each of `count` groups (sizes >= 1, at most REACH_MAX_GROUPS of them) into one of `windows`
 * windows, 1 <= windows <= count. No window stays empty, and no two windows differ by more than
 * the largest group. Windows are numbered by their lowest group. The same input always gives the
 * same answer. `window_of` has `count` elements, `totals` has `windows`. False, and nothing is
 * done, for numbers out of these ranges. */
bool partition_balance(const uint32_t *sizes, uint32_t count, uint32_t windows, uint16_t *window_of,
                       uint32_t *totals);

#endif
