/* units.c: converts sizes between texts and bytes, exactly.
 *
 * Parsing uses integers only, because a size is an address bound and 2^53 is less than the largest
 * size allowed. "1.5GiB" is 15 tenths of 2^30: digits are gathered into one integer, and the
 * scaling keeps the whole part and the remainder apart. 64 bits hold eighteen digits after the
 * point; further digits must be zeros.
 *
 *     "1.5GiB"  -> digits 15, scale 10   -> 15 * 2^30 / 10, remainder 0 -> 1610612736
 *     "1.5GB"   -> digits 15, scale 10   -> 15 * 10^9 / 10, remainder 0 -> 1500000000
 *     "0.3K"    -> digits  3, scale 10   ->  3 * 1024 / 10, remainder 2 -> not whole, refused
 *
 * Printing tries each unit and keeps the shortest text that is read back as the same size. If two
 * texts have the same length, the smaller unit wins: 1536 stays "1536" and is not "1.5K", but
 * 1572864 is "1.5M" and not "1536K".
 */
#include "base/units.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    TEXT_BYTES = 24,
    SHOWN_BYTES = 40,   /* length of the part of a bad text that an error repeats */
    SHORT_COUNT = 1000, /* larger than any number before a unit letter, which has three digits */
    UNIT_STEP_BITS = 10,
    UNIT_COUNT = 5 /* B, K, M, G, T */
};

static const char unit_letters[UNIT_COUNT + 1] = "BKMGT";

/* Returns the bytes of "", "B", "K", "KB" or "KiB" and so on up to T. Returns 0 for any other
 * text. */
static uint64_t parse_unit(const char *s)
{
    uint64_t decimal = 1;

    if (s[0] == '\0' || strcasecmp(s, "B") == 0)
        return 1;
    for (unsigned u = 1; u < UNIT_COUNT; u++) {
        decimal *= 1000;
        if (strncasecmp(s, &unit_letters[u], 1) != 0)
            continue;
        if (s[1] == '\0' || strcasecmp(s + 1, "iB") == 0)
            return (uint64_t)1 << (u * UNIT_STEP_BITS);
        return strcasecmp(s + 1, "B") == 0 ? decimal : 0;
    }
    return 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A decimal number, which is `digits` / `scale`. The scale is a power of ten. */
struct decimal {
    unsigned __int128 digits;
    uint64_t scale;
    bool too_large; /* more digits than any size below 2^63 needs */
    bool too_fine;  /* more digits after the point than a whole number of bytes has */
};

/* Parses digits[.digits], with at least one digit on each side of the point. Returns the text
 * behind the number, or NULL if there is no number. */
static const char *parse_decimal(const char *s, struct decimal *d)
{
    const unsigned __int128 most = (unsigned __int128)1 << 100;

    *d = (struct decimal){.scale = 1};
    if (!is_digit(*s))
        return NULL;
    for (; is_digit(*s); s++) {
        d->digits = d->digits * 10 + (unsigned)(*s - '0');
        d->too_large = d->too_large || d->digits > INT64_MAX;
        if (d->too_large)
            d->digits = 0;
    }
    if (*s != '.')
        return s;
    if (!is_digit(*++s))
        return NULL;
    for (; is_digit(*s); s++) {
        if (d->scale < UINT64_MAX / 20 && d->digits < most / 10) {
            d->digits = d->digits * 10 + (unsigned)(*s - '0');
            d->scale *= 10;
        } else if (*s != '0') {
            d->too_fine = true;
        }
    }
    return s;
}

static enum status refuse(struct err *err, const char *text, const char *why)
{
    return err_set(err, STATUS_INVALID_ARGUMENT, "the size \"%.*s\" %s", SHOWN_BYTES, text, why);
}

/* Reports a valid number with a text behind it that is not a unit. */
static enum status refuse_rest(struct err *err, const char *text, const char *rest)
{
    if (*rest == ',')
        return refuse(err, text,
                      "has a comma; use a decimal point and no separators: 137000, 1.5GiB");
    if ((*rest == 'e' || *rest == 'E') && is_digit(rest[rest[1] == '+' ? 2 : 1]))
        return refuse(err, text, "has an exponent; write 100000000000 or 100GB for 1e11");
    return refuse(err, text,
                  "has an unknown unit; K, M, G, T (or KiB to TiB) are powers of 1024, kB, MB, "
                  "GB, TB powers of 1000");
}

enum status units_parse_bytes(const char *text, uint64_t *out_bytes, struct err *err)
{
    struct decimal d;
    uint64_t unit;
    const char *rest;

    if (!text || text[0] == '\0')
        return err_set(err, STATUS_INVALID_ARGUMENT, "the size is empty");
    if (text[0] == '-')
        return refuse(err, text, "is negative");
    rest = parse_decimal(text, &d);
    if (!rest)
        return refuse(err, text, "is not a number; write 137438953472, 137GiB or 80G");
    if (*rest == ' ' && rest[1] != '\0')
        rest++;
    unit = parse_unit(rest);
    if (unit == 0)
        return refuse_rest(err, text, rest);
    if (d.too_large || d.digits / d.scale > (uint64_t)INT64_MAX / unit)
        return refuse(err, text, "is too large; a size must be below 8388608 TiB (2^63 bytes)");
    /* digits < 2^100 would not leave room for a factor of 2^40, so the whole part is taken off
     * first. */
    const uint64_t whole = (uint64_t)(d.digits / d.scale) * unit;
    const unsigned __int128 part = (d.digits % d.scale) * unit;
    if (d.too_fine || part % d.scale != 0)
        return refuse(err, text, "is not a whole number of bytes");
    if ((uint64_t)(part / d.scale) > (uint64_t)INT64_MAX - whole)
        return refuse(err, text, "is too large; a size must be below 8388608 TiB (2^63 bytes)");
    *out_bytes = whole + (uint64_t)(part / d.scale);
    return STATUS_OK;
}

char *units_print_bytes(uint64_t bytes, char *out, size_t out_size)
{
    unsigned whole = 0; /* index of the largest unit that divides `bytes` */

    while (bytes != 0 && whole + 1 < UNIT_COUNT &&
           bytes % ((uint64_t)1 << (whole + 1) * UNIT_STEP_BITS) == 0)
        whole++;
    (void)snprintf(out, out_size, "%" PRIu64 "%.*s", bytes >> whole * UNIT_STEP_BITS,
                   whole > 0 ? 1 : 0, &unit_letters[whole]);
    if (bytes >> whole * UNIT_STEP_BITS < SHORT_COUNT)
        return out; /* no fraction of a larger unit is shorter, and a search takes microseconds */
    for (unsigned u = 1; u < UNIT_COUNT && bytes != 0 && out_size >= TEXT_BYTES; u++) {
        const uint64_t unit = (uint64_t)1 << (u * UNIT_STEP_BITS);
        char text[2 * TEXT_BYTES]; /* room for an exponent, which is never parsed */
        uint64_t back = 0;

        (void)snprintf(text, sizeof(text), "%.18Lg%c", (long double)bytes / (long double)unit,
                       unit_letters[u]);
        if (strlen(text) < strlen(out) && units_parse_bytes(text, &back, NULL) == STATUS_OK &&
            back == bytes)
            memcpy(out, text, strlen(text) + 1);
    }
    return out;
}

/* ---- durations ---- */

static const struct {
    char letter;
    uint32_t seconds;
} durations[] = {{'d', 24 * 3600}, {'h', 3600}, {'m', 60}, {'s', 1}};
enum { DURATIONS = sizeof durations / sizeof durations[0], MOST_DIGITS = 9 };

enum status units_parse_seconds(const char *text, uint64_t *out_seconds, struct err *err)
{
    const size_t digits = strspn(text, "0123456789");
    uint64_t number = 0;

    for (size_t i = 0; i < digits && digits <= MOST_DIGITS; i++)
        number = number * 10 + (uint64_t)(text[i] - '0');
    for (size_t u = 0; u < DURATIONS && digits >= 1 && digits <= MOST_DIGITS; u++) {
        if (text[digits] == durations[u].letter && text[digits + 1] == '\0') {
            *out_seconds = number * durations[u].seconds;
            return STATUS_OK;
        }
    }
    return err_set(err, STATUS_INVALID_ARGUMENT,
                   "\"%.*s\" is not a whole number with the unit s, m, h or d, such as 90s or 1h",
                   SHOWN_BYTES, text);
}

char *units_print_seconds(uint64_t seconds, char *out, size_t out_size)
{
    size_t u = 0;

    while (u + 1 < DURATIONS && seconds % durations[u].seconds != 0)
        u++;
    (void)snprintf(out, out_size, "%" PRIu64 "%c", seconds / durations[u].seconds,
                   durations[u].letter);
    return out;
}
