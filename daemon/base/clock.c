/* clock.c: reads two clocks, and turns seconds into dates and back.
 *
 * The calendar arithmetic is done here and not by timegm/strptime because those accept more than
 * RFC 3339 does ("2026-2-3", a leap second, blanks) and normalise it silently. The form accepted
 * is the one written: exactly 20 characters, UTC, whole seconds, years 1970 to 9999.
 *
 * Days are counted from 1 March of year 0, so that the leap day is the last day of a year and the
 * months before it have a fixed pattern: month m (0 = March) starts (153 m + 2) / 5 days in.
 * 400 years have 146 097 days; 1970-01-01 is day 719 468.
 */
#include "base/clock.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    RFC3339_BYTES = 21, /* with the terminating zero */
    SECONDS_PER_DAY = 86400,
    DAYS_BEFORE_1970 = 719468
};

#define LAST_SECOND ((int64_t)253402300799) /* 9999-12-31T23:59:59Z */

static struct timespec read_clock(clockid_t id)
{
    struct timespec t = {.tv_sec = 0};

    (void)clock_gettime(id, &t); /* fails for an unknown clock alone */
    return t;
}

nsec_t clock_monotonic(void)
{
    const struct timespec t = read_clock(CLOCK_MONOTONIC);

    return (nsec_t)t.tv_sec * NSEC_PER_SEC + (nsec_t)t.tv_nsec;
}

int64_t clock_wall_seconds(void)
{
    return (int64_t)read_clock(CLOCK_REALTIME).tv_sec;
}

/* Days from 1970-01-01 to a date of the Gregorian calendar. */
static int64_t days_of_date(int year, int month, int day)
{
    const int shifted = month > 2 ? month - 3 : month + 9; /* 0 = March */
    const int64_t y = month > 2 ? year : year - 1;
    const int64_t leap_days = y / 4 - y / 100 + y / 400;

    return y * 365 + leap_days + (153 * shifted + 2) / 5 + day - 1 - DAYS_BEFORE_1970;
}

char *clock_rfc3339(int64_t wall_seconds, char *out, size_t out_size)
{
    struct tm tm;
    const time_t t = (time_t)wall_seconds;

    if (wall_seconds < 0 || wall_seconds > LAST_SECOND || !gmtime_r(&t, &tm) ||
        strftime(out, out_size, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        snprintf(out, out_size, "invalid");
    return out;
}

/* The number written by exactly n digits; -1 where another character stands there. */
static int digits(const char *s, int n)
{
    int value = 0;

    for (int i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9')
            return -1;
        value = value * 10 + (s[i] - '0');
    }
    return value;
}

static int days_in_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return days[month - 1] + (month == 2 && leap ? 1 : 0);
}

int64_t clock_parse_rfc3339(const char *text)
{
    static const char form[] = "....-..-..T..:..:..Z";
    int year, month, day, hour, minute, second;

    if (!text || strlen(text) != sizeof(form) - 1)
        return -1;
    for (size_t i = 0; i < sizeof(form) - 1; i++) {
        if (form[i] != '.' && form[i] != text[i])
            return -1;
    }
    year = digits(text, 4);
    month = digits(text + 5, 2);
    day = digits(text + 8, 2);
    hour = digits(text + 11, 2);
    minute = digits(text + 14, 2);
    second = digits(text + 17, 2);
    if (year < 1970 || month < 1 || month > 12 || day < 1 || day > days_in_month(year, month))
        return -1;
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59)
        return -1;
    return days_of_date(year, month, day) * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second;
}
