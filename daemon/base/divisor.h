/* divisor.h: the greatest common divisor, by Euclid's algorithm. Pure. */
#pragma once

#include <stdint.h>

/* Returns the other number if one of the two is 0. */
static inline uint64_t greatest_common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}
