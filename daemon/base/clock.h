/* clock.h: reads two clocks. Durations come from the monotonic clock. The wall clock only dates
 * things. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef uint64_t nsec_t; /* nanoseconds */

#define NSEC_PER_USEC ((nsec_t)1000)
#define NSEC_PER_MSEC ((nsec_t)1000000)
#define NSEC_PER_SEC  ((nsec_t)1000000000)

/* Returns the time of CLOCK_MONOTONIC: nanoseconds since an arbitrary point. */
nsec_t clock_monotonic(void);
/* Returns the processor time of the calling thread. */
nsec_t clock_thread(void);
/* Converts nanoseconds for calls that take a struct timespec. UINT64_MAX becomes a time after every
 * deadline. */
struct timespec clock_timespec(nsec_t ns);
/* Returns the seconds since 1970, UTC. */
int64_t clock_wall_seconds(void);
/* Writes a time in the form of RFC 3339, UTC: "2026-11-20T22:51:20Z". `out_size` must be at least
 * 21. Returns `out`. */
char *clock_rfc3339(int64_t wall_seconds, char *out, size_t out_size);
/* Parses such a date. Returns -1 if the text does not have that form. */
int64_t clock_parse_rfc3339(const char *text);

/* The last second of the year 9999, the largest date that clock_rfc3339 can write. */
#define CLOCK_LAST_SECOND ((int64_t)253402300799)
