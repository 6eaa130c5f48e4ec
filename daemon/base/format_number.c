/* format_number.c: fifteen digits distinguish any two decimal numbers of fifteen digits, and
 * seventeen digits any two doubles. A rounded number has few digits. "%.17g" would show the error
 * of its binary fraction: 0.91100000000000003 for 0.911. */
#include "base/format_number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DECIMALS = 6, FEWEST_DIGITS = 15, MOST_DIGITS = 17, DIGIT_BYTES = 24, NUMBER_BYTES = 25 };

#define MILLION     1e6
#define DECIMAL_MIN 1e-4 /* "%g" writes a smaller number with an exponent */
#define DECIMAL_MAX 1e9
#define WHOLE_MAX   1e15

size_t format_u64(uint64_t v, char *out)
{
    char digits[DIGIT_BYTES];
    char *at = digits + sizeof(digits);

    do {
        *--at = (char)('0' + v % 10);
        v /= 10;
    } while (v > 0);
    memcpy(out, at, (size_t)(digits + sizeof(digits) - at));
    return (size_t)(digits + sizeof(digits) - at);
}

/* Writes a number of at most six decimals, the usual case. Returns 0 if `v` has more decimals. `v`
 * times a million is below 10^15, so it has at most fifteen digits. No other number of fifteen
 * digits is read as the same double. */
static size_t write_decimal(double v, char *out)
{
    size_t n;
    uint64_t millionths;
    uint64_t rest;
    size_t places = DECIMALS;

    if (v >= DECIMAL_MAX && v < WHOLE_MAX && (double)(uint64_t)v == v) {
        n = format_u64((uint64_t)v, out);
        strcpy(out + n, ".0");
        return n + 2;
    }
    if (!(v >= DECIMAL_MIN && v < DECIMAL_MAX))
        return 0;
    millionths = (uint64_t)(v * MILLION + 0.5);
    if ((double)millionths / MILLION != v)
        return 0;
    n = format_u64(millionths / (uint64_t)MILLION, out);
    rest = millionths % (uint64_t)MILLION;
    out[n] = '.';
    for (size_t i = DECIMALS; i > 0; i--, rest /= 10)
        out[n + i] = (char)('0' + rest % 10);
    while (places > 1 && out[n + places] == '0')
        places--;
    out[n + places + 1] = '\0';
    return n + places + 1;
}

/* Changes a text of "%g" to the form of jansson: ".0" after a whole number, and an exponent without
 * "+" and leading zeros. */
static size_t tidy(const char *number, char *out)
{
    const char *e = strchr(number, 'e');
    int n;

    if (!e) {
        n = snprintf(out, FORMAT_DOUBLE_BYTES, "%s%s", number, strchr(number, '.') ? "" : ".0");
        return (size_t)n;
    }
    n = snprintf(out, FORMAT_DOUBLE_BYTES, "%.*se%s%s", (int)(e - number), number,
                 e[1] == '-' ? "-" : "", e + 1 + strspn(e + 1, "+-0"));
    return (size_t)n;
}

size_t format_double(double v, char *out)
{
    const size_t n = write_decimal(v, out);
    char number[NUMBER_BYTES];

    if (n > 0)
        return n;
    for (int digits = FEWEST_DIGITS; digits <= MOST_DIGITS; digits++) {
        snprintf(number, sizeof(number), "%.*g", digits, v);
        if (strtod(number, NULL) == v)
            break;
    }
    return tidy(number, out);
}

double round_six_digits(double v)
{
    static const double least = 1e5;  /* the smallest number with six digits before the point */
    static const double exact = 1e22; /* powers of ten up to this one are exact */
    const double size = fabs(v);
    double scale = 1;

    if (!(size > 0) || !isfinite(v))
        return v;
    if (size < least) {
        while (size * scale < least && scale < exact)
            scale *= 10;
        return nearbyint(v * scale) / scale;
    }
    while (size / scale >= least * 10 && scale < exact)
        scale *= 10;
    return nearbyint(v / scale) * scale;
}
