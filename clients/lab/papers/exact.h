/* exact.h: the examples of published papers whose results are exact. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The examples of Pichai 2014. */
struct pichai_exact {
    uint32_t serial_loads, scheduled_loads; /* loads in figure 8: 12 and 7 */
    uint32_t stack_fetches, packed_fetches; /* fetches in figure 19: 6 and 3 */
    uint32_t packed_misses[3];              /* misses of the packed warps in figure 19: 2, 3, 2 */
    uint32_t aware_misses;                  /* misses of the first two warps: 2 */
    uint32_t matrix_bits;                   /* bits in section 8.2: 48 x 47 x 3 */
};
/* Returns false if out of memory. */
bool pichai_exact(struct pichai_exact *out);

/* Prints each example with its verdict. Returns an exit status (exit_status.h). */
int exact_check(void);
