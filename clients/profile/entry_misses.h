/* entry_misses.h: counts the misses of a table of translations with least recently used
 * replacement. Host memory is translated by one table of the whole GPU. */
#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct entry_misses {
    uint64_t misses;
    uint64_t translations; /* that the addresses need */
};

/* Counts the misses of `count` addresses in a table of `entries` entries, each of which translates
 * `entry_bytes`. Both must be 1 or more. The addresses run once before they are counted, so that
 * the table is full, like in the middle of a long job. Returns STATUS_NO_MEMORY if out of memory.
 */
enum status entry_misses_count(const uint64_t *addresses, uint64_t count, uint64_t entry_bytes,
                               uint64_t entries, struct entry_misses *out, struct err *err);
