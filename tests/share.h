/* share.h: how much of a costly test is done where. Under a sanitizer everything takes several
 * times as long, and the hundredth random GPU goes through the code of the first ten: there a part
 * is done, and all of it with REACH_LONG (make check-long). The release build does all of it
 * always, or a larger part (test_part). */
#ifndef REACH_TESTS_SHARE_H
#define REACH_TESTS_SHARE_H

#include <stdint.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { TEST_SANITIZED = 1 };
#else
enum { TEST_SANITIZED = 0 };
#endif

static inline uint32_t test_share(uint32_t all, uint32_t sanitized)
{
    return TEST_SANITIZED && !getenv("REACH_LONG") ? sanitized : all;
}

/* The same where the release build, too, does a part in make check. */
static inline uint32_t test_part(uint32_t all, uint32_t release, uint32_t sanitized)
{
    return getenv("REACH_LONG") ? all : TEST_SANITIZED ? sanitized : release;
}

#endif
