/* clock.c: reads two clocks, and converts seconds to dates and back.
 *
 * A date is accepted only in the form that clock_rfc3339 writes: exactly 20 characters, UTC, whole
 * seconds, years 1970 to 9999. The functions strptime and timegm accept other forms ("2026-2-3", a
 * leap second, blanks) and normalize them silently. So the result is written again and compared.
 */
#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { RFC3339_BYTES = 21 }; /* with the terminating zero */

static struct timespec read_clock(clockid_t id)
{
    struct timespec t = {.tv_sec = 0};

    (void)clock_gettime(id, &t); /* fails only for an unknown clock */
    return t;
}

static nsec_t nanoseconds(struct timespec t)
{
    return (nsec_t)t.tv_sec * NSEC_PER_SEC + (nsec_t)t.tv_nsec;
}

nsec_t clock_monotonic(void)
{
    return nanoseconds(read_clock(CLOCK_MONOTONIC));
}

nsec_t clock_thread(void)
{
    return nanoseconds(read_clock(CLOCK_THREAD_CPUTIME_ID));
}

struct timespec clock_timespec(nsec_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / NSEC_PER_SEC),
                             .tv_nsec = (long)(ns % NSEC_PER_SEC)};
}

int64_t clock_wall_seconds(void)
{
    return (int64_t)read_clock(CLOCK_REALTIME).tv_sec;
}

char *clock_rfc3339(int64_t wall_seconds, char *out, size_t out_size)
{
    struct tm tm;
    const time_t t = (time_t)wall_seconds;

    if (wall_seconds < 0 || wall_seconds > CLOCK_LAST_SECOND || !gmtime_r(&t, &tm) ||
        strftime(out, out_size, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        snprintf(out, out_size, "invalid");
    return out;
}

int64_t clock_parse_rfc3339(const char *text)
{
    struct tm tm = {0};
    char again[RFC3339_BYTES];
    time_t seconds;

    if (!text || !strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm))
        return -1;
    seconds = timegm(&tm);
    return strcmp(clock_rfc3339(seconds, again, sizeof(again)), text) == 0 ? seconds : -1;
}
