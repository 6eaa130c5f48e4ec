/* units.c: sizes as people write them, exactly.
 *
 * Parsing uses integers only, because a size is an address bound and 2^53 is less than the largest
 * size allowed. "1.5GiB" is 15 tenths of 2^30: digits are gathered into one integer, and the
 * scaling keeps apart what is a whole number and what is left over. Eighteen digits behind the
 * point are as many as 64 bits hold; more are fine only where they are zeros.
 *
 *     "1.5GiB"  -> digits 15, scale 10   -> 15 * 2^30 / 10, remainder 0 -> 1610612736
 *     "0.3K"    -> digits  3, scale 10   ->  3 * 1024 / 10, remainder 2 -> not whole, refused
 *
 * Printing tries each unit and keeps the shortest text; of two equally long ones the smaller unit:
 * 1536 stays "1536" and is not "1.5K", but 1572864 is "1.5M" and not "1536K".
 */
#include "base/units.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    TEXT_BYTES = 24,
    SHOWN_BYTES = 40, /* how much of a bad text an error repeats */
    UNIT_STEP_BITS = 10,
    UNIT_COUNT = 5 /* B, K, M, G, T */
};

static const char unit_letters[UNIT_COUNT + 1] = "BKMGT";

/* "", "B", "K", "KB" or "KiB" and so on up to T; false where it is none of these. */
static bool parse_unit(const char *s, unsigned *out_shift)
{
    *out_shift = 0;
    if (s[0] == '\0' || strcasecmp(s, "B") == 0)
        return true;
    for (unsigned u = 1; u < UNIT_COUNT; u++) {
        if (strncasecmp(s, &unit_letters[u], 1) != 0)
            continue;
        *out_shift = u * UNIT_STEP_BITS;
        return s[1] == '\0' || strcasecmp(s + 1, "B") == 0 || strcasecmp(s + 1, "iB") == 0;
    }
    return false;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A decimal number: `digits` / `scale`, where scale is a power of ten. */
struct decimal {
    unsigned __int128 digits;
    uint64_t scale;
    bool too_large; /* more digits than any size below 2^63 needs */
    bool too_fine;  /* more digits behind the point than a whole number of bytes can have */
};

/* Reads digits[.digits]; returns what follows, or NULL where there is no number. At least one
 * digit must stand before the point and one behind it. */
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

enum status units_parse_bytes(const char *text, uint64_t *out_bytes, struct err *err)
{
    struct decimal d;
    unsigned shift;
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
    if (!parse_unit(rest, &shift))
        return refuse(err, text, "has an unknown unit; B, K, M, G and T are known (KB, KiB too)");
    if (d.too_large || d.digits / d.scale > ((uint64_t)INT64_MAX >> shift))
        return refuse(err, text, "is too large; it must be below 8388608 TiB (2^63 bytes)");
    /* digits < 2^100 would not leave room for a shift by 40; take off the whole part first. */
    const uint64_t whole = (uint64_t)(d.digits / d.scale) << shift;
    const unsigned __int128 part = (d.digits % d.scale) << shift;
    if (d.too_fine || part % d.scale != 0)
        return refuse(err, text, "is not a whole number of bytes");
    *out_bytes = whole + (uint64_t)(part / d.scale);
    return STATUS_OK;
}

char *units_format_bytes(uint64_t bytes, char *out, size_t out_size)
{
    static const char *const names[UNIT_COUNT] = {"B", "KiB", "MiB", "GiB", "TiB"};
    unsigned u = 0;

    while (u + 1 < UNIT_COUNT && bytes >> ((u + 1) * UNIT_STEP_BITS) != 0)
        u++;
    /* Tenths of the unit, rounded to nearest; 128 bits because bytes * 10 may not fit into 64. */
    const uint64_t unit = (uint64_t)1 << (u * UNIT_STEP_BITS);
    uint64_t tenths = (uint64_t)(((unsigned __int128)bytes * 10 + unit / 2) / unit);
    if (tenths >= 10240 && u + 1 < UNIT_COUNT) { /* 1023.96 KiB reads 1 MiB, not 1024 KiB */
        tenths = 10;
        u++;
    }
    if (tenths % 10 == 0)
        (void)snprintf(out, out_size, "%" PRIu64 " %s", tenths / 10, names[u]);
    else
        (void)snprintf(out, out_size, "%" PRIu64 ".%u %s", tenths / 10, (unsigned)(tenths % 10),
                       names[u]);
    return out;
}

/* Writes bytes / 2^shift with all digits behind the point and the unit's letter; false where that
 * takes `size` bytes or more. A division by a power of two always ends, at the latest after
 * `shift` digits. */
static bool print_exactly(uint64_t bytes, unsigned u, char *out, size_t size)
{
    const uint64_t unit = (uint64_t)1 << (u * UNIT_STEP_BITS);
    uint64_t rest = bytes % unit;
    size_t n = (size_t)snprintf(out, size, "%" PRIu64 "%s", bytes / unit, rest ? "." : "");

    for (; rest != 0 && n + 2 < size; rest %= unit) {
        rest *= 10; /* below 10 * 2^40 */
        out[n++] = (char)('0' + rest / unit);
    }
    if (rest != 0 || n + 2 > size)
        return false;
    out[n++] = unit_letters[u];
    out[n] = '\0';
    return true;
}

char *units_print_bytes(uint64_t bytes, char *out, size_t out_size)
{
    (void)snprintf(out, out_size, "%" PRIu64, bytes);
    for (unsigned u = 1; u < UNIT_COUNT && bytes != 0 && out_size >= TEXT_BYTES; u++) {
        char text[TEXT_BYTES];
        if (print_exactly(bytes, u, text, strlen(out))) /* room only for what is shorter */
            memcpy(out, text, strlen(text) + 1);
    }
    return out;
}
