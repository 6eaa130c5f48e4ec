/* share.h: the share of a costly test in each build. A build with a sanitizer, or for another
 * architecture, which an emulator runs, is several times slower, and the hundredth random GPU runs
 * the same code as the first ten. So it runs a part, or everything with REACH_LONG (make
 * check-long). The release build always runs everything, or a larger part (test_part). */
#ifndef REACH_TESTS_SHARE_H
#define REACH_TESTS_SHARE_H

#include <stdint.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(REACH_EMULATED)
enum { TEST_SANITIZED = 1 };
#else
enum { TEST_SANITIZED = 0 };
#endif

static inline uint32_t test_share(uint32_t all, uint32_t sanitized)
{
    return TEST_SANITIZED && !getenv("REACH_LONG") ? sanitized : all;
}

/* The same scale for tests of which even the release build runs only a part in make check. */
static inline uint32_t test_part(uint32_t all, uint32_t release, uint32_t sanitized)
{
    return getenv("REACH_LONG") ? all : TEST_SANITIZED ? sanitized : release;
}

#endif
