/* format_size.c: formats sizes and rates. A reach of 64 GiB less one entry of 32 MiB is 63.97 GiB.
 * This size has two decimals, because rounding to one decimal gives the contradiction "64 GiB are
 * more than 64 GiB". */
#include "base/format_size.h"

#include "base/format_number.h"

#include <stdio.h>
#include <string.h>

/* Returns the size of `rest` in hundredths of 2^shift, 0 to 100, rounded to the nearest number;
 * ties go to the even number. */
static unsigned hundredths_of(uint64_t rest, unsigned shift)
{
    const uint64_t unit = (uint64_t)1 << shift;
    const uint64_t scaled = rest * 100; /* below 100 * 2^40 */
    const unsigned down = (unsigned)(scaled >> shift);
    const uint64_t left = 2 * (scaled & (unit - 1));

    return down + (left > unit || (left == unit && down % 2 == 1) ? 1 : 0);
}

/* Uses integers only: an answer contains several sizes, and printf takes a microsecond for each of
 * them. */
char *format_size(uint64_t bytes, char *out)
{
    static const char *const names[] = {" B", " KiB", " MiB", " GiB", " TiB"};
    enum { UNITS = sizeof(names) / sizeof(*names), STEP = 10 };
    unsigned unit = 0;
    unsigned hundredths;
    uint64_t whole;
    char *at;

    while (unit + 1 < UNITS && bytes >> (unit * STEP) >= 1024)
        unit++;
    whole = bytes >> (unit * STEP);
    hundredths = hundredths_of(bytes - (whole << (unit * STEP)), unit * STEP);
    at = out + format_u64(whole + hundredths / 100, out);
    if (hundredths % 100 > 0) {
        *at++ = '.';
        *at++ = (char)('0' + hundredths / 10);
        if (hundredths % 10 > 0)
            *at++ = (char)('0' + hundredths % 10);
    }
    strcpy(at, names[unit]);
    return out;
}

void format_size_pair(uint64_t a, uint64_t b, char *out_a, char *out_b)
{
    format_size(a, out_a);
    format_size(b, out_b);
    if (a == b || strcmp(out_a, out_b) != 0)
        return;
    snprintf(out_a, FORMAT_SIZE_BYTES, "%llu bytes", (unsigned long long)a);
    snprintf(out_b, FORMAT_SIZE_BYTES, "%llu bytes", (unsigned long long)b);
}

char *format_rate(struct maybe_f64 gbps, char *out)
{
    const int digits = gbps.v >= 100 ? 0 : gbps.v >= 10 ? 1 : 2;

    if (IS_KNOWN(gbps))
        snprintf(out, FORMAT_RATE_BYTES, "%.*f GB/s", digits, gbps.v);
    else
        snprintf(out, FORMAT_RATE_BYTES, "not known (%s)", reason_slug(gbps.reason));
    return out;
}
