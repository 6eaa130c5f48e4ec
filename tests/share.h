/* share.h: the share of a costly test in each build. A build with a sanitizer is several times
 * slower, and so is a program that an emulator runs (REACH_EMULATED, which .ci/emulated sets). The
 * hundredth random GPU runs the same code as the first ten. So such a test runs a part, or
 * everything with REACH_LONG (make check-long). Otherwise the release build always runs everything,
 * or a larger part (test_part). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { TEST_SANITIZED = 1 };
#else
enum { TEST_SANITIZED = 0 };
#endif

/* Returns the processor that an emulator provides to this program, or NULL without an emulator. */
static inline const char *test_emulated(void)
{
    return getenv("REACH_EMULATED");
}

static inline bool test_is_slow(void)
{
    return TEST_SANITIZED || test_emulated();
}

static inline uint32_t test_share(uint32_t all, uint32_t slow)
{
    return test_is_slow() && !getenv("REACH_LONG") ? slow : all;
}

/* The same scale for tests of which even the release build runs only a part in make check. */
static inline uint32_t test_part(uint32_t all, uint32_t release, uint32_t slow)
{
    return getenv("REACH_LONG") ? all : test_is_slow() ? slow : release;
}
