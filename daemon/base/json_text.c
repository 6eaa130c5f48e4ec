/* json_text.c: one growing buffer and one flag. A comma is written before whatever follows
 * something; opening a bracket says that nothing has come yet, closing one that something has. */
#include "base/json_text.h"

#include "base/maybe_json.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NUMBER_BYTES = 32,
    ESCAPE_BYTES = 6,
    LEAST_ROOM = 256,
    ITEM_BYTES = 6,
    SIGNIFICANT = 17,
    MANTISSA_BITS = 53
};

/* Doubles up to here that are whole have all their digits in an integer. */
#define WHOLE_MAX 1e15

static bool make_room(struct json_text *t, size_t bytes)
{
    char *grown;
    size_t room;

    if (t->failed || t->room - t->bytes >= bytes)
        return !t->failed;
    room = (t->room + bytes) * 2;
    grown = realloc(t->text, room);
    if (!grown) {
        t->failed = true;
        return false;
    }
    t->text = grown;
    t->room = room;
    return true;
}

static void append(struct json_text *t, const char *s, size_t n)
{
    if (!make_room(t, n))
        return;
    memcpy(t->text + t->bytes, s, n);
    t->bytes += n;
}

/* Writes the comma, and the name where there is one, and sees to it that `more` bytes fit behind
 * it. Where to go on; NULL without memory. */
static char *put_name(struct json_text *t, const char *name, size_t more)
{
    size_t n = name ? strlen(name) : 0;
    char *at;

    if (!make_room(t, n + 4 + more))
        return NULL;
    at = t->text + t->bytes;
    if (t->follows)
        *at++ = ',';
    t->follows = true;
    if (name) {
        *at++ = '"';
        at = stpcpy(at, name); /* its end is written over */
        *at++ = '"';
        *at++ = ':';
    }
    t->bytes = (size_t)(at - t->text);
    return at;
}

/* Writes the comma, and the name where there is one. */
static void append_name(struct json_text *t, const char *name)
{
    (void)put_name(t, name, 0);
}

void json_text_begin(struct json_text *t, size_t room)
{
    *t = (struct json_text){.room = room < LEAST_ROOM ? LEAST_ROOM : room};
    t->text = malloc(t->room);
    t->failed = !t->text;
}

void json_text_open(struct json_text *t, const char *name, char bracket)
{
    append_name(t, name);
    append(t, &bracket, 1);
    t->follows = false;
}

void json_text_close(struct json_text *t, char bracket)
{
    append(t, &bracket, 1);
    t->follows = true;
}

void json_text_null(struct json_text *t, const char *name)
{
    append_name(t, name);
    append(t, "null", 4);
}

void json_text_bool(struct json_text *t, const char *name, bool v)
{
    append_name(t, name);
    append(t, v ? "true" : "false", v ? 4 : 5);
}

/* Decimal digits, from the last to the first. */
static void append_u64(struct json_text *t, uint64_t v)
{
    char digits[NUMBER_BYTES];
    char *at = digits + sizeof(digits);

    do {
        *--at = (char)('0' + v % 10);
        v /= 10;
    } while (v > 0);
    append(t, at, (size_t)(digits + sizeof(digits) - at));
}

void json_text_u64(struct json_text *t, const char *name, uint64_t v)
{
    char *at = put_name(t, name, NUMBER_BYTES);

    if (v > INT64_MAX) {
        t->failed = true;
    } else if (at && v < 10) { /* most are: the windows of SMs */
        *at = (char)('0' + v);
        t->bytes++;
    } else if (at) {
        append_u64(t, v);
    }
}

/* There is one such list in most answers, with an entry for each SM, so it is written in one go. */
void json_text_i16s(struct json_text *t, const char *name, const int16_t *values, size_t count)
{
    static const char nothing[] = {'n', 'u', 'l', 'l'};
    char *at = put_name(t, name, 2 + count * ITEM_BYTES);

    if (!at)
        return;
    *at++ = '[';
    for (size_t i = 0; i < count; i++) {
        const int v = values[i];
        if (v < 0) {
            memcpy(at, nothing, sizeof(nothing));
            at += sizeof(nothing);
        } else if (v < 10) {
            *at++ = (char)('0' + v);
        } else {
            int scale = v < 100 ? 10 : v < 1000 ? 100 : v < 10000 ? 1000 : 10000;
            for (; scale > 0; scale /= 10)
                *at++ = (char)('0' + v / scale % 10);
        }
        *at++ = ',';
    }
    at[count > 0 ? -1 : 0] = ']'; /* over the last comma */
    t->bytes = (size_t)(at - t->text) + (count > 0 ? 0 : 1);
}

/* As jansson writes it: a whole number with ".0", an exponent without "+" and zeros before it. */
static void append_real(struct json_text *t, const char *number)
{
    const char *e = strchr(number, 'e');

    append(t, number, e ? (size_t)(e - number) : strlen(number));
    if (!e) {
        if (!strchr(number, '.'))
            append(t, ".0", 2);
        return;
    }
    append(t, e, e[1] == '-' ? 2 : 1);
    e += e[1] == '-' || e[1] == '+' ? 2 : 1;
    e += strspn(e, "0");
    append(t, e, strlen(e));
}

/* What "%.17g" writes for 1 <= v < 10^15, and ".0" behind a whole number, but in integers, which
 * takes a tenth: the fraction is m / 2^s with m at most 2^53 and s at most 104, and m times 10^16
 * fits 128 bits. So the digits are exact, and rounded as printf does: to the nearer, in the middle
 * to the even one. */
static void append_plain_real(struct json_text *t, double v)
{
    typedef unsigned __int128 wide;
    uint64_t whole = (uint64_t)v;
    int shift;
    const double mantissa = frexp(v - (double)whole, &shift);
    char digits[SIGNIFICANT];
    int places = SIGNIFICANT;
    uint64_t scale = 1;
    uint64_t tail;
    wide product;
    wide left;

    for (uint64_t rest = whole; rest > 0; rest /= 10)
        places--;
    for (int i = 0; i < places; i++)
        scale *= 10;
    shift = MANTISSA_BITS - shift; /* fraction = mantissa as an integer, over 2^shift */
    if (mantissa == 0) {
        append_u64(t, whole);
        append(t, ".0", 2);
        return;
    }
    product = (wide)(uint64_t)ldexp(mantissa, MANTISSA_BITS) * scale;
    tail = (uint64_t)(product >> shift);
    left = product & (((wide)1 << shift) - 1);
    if (left > (wide)1 << (shift - 1) || (left == (wide)1 << (shift - 1) && tail % 2 == 1))
        tail++;
    if (tail == scale) { /* up to the next whole number */
        tail = 0;
        whole++;
    }
    append_u64(t, whole);
    for (; tail > 0 && tail % 10 == 0; tail /= 10)
        places--;
    if (tail == 0) {
        append(t, ".0", 2);
        return;
    }
    append(t, ".", 1);
    for (int i = places; i > 0; i--, tail /= 10)
        digits[i - 1] = (char)('0' + tail % 10);
    append(t, digits, (size_t)places);
}

void json_text_real(struct json_text *t, const char *name, double v)
{
    char number[NUMBER_BYTES];

    append_name(t, name);
    if (!isfinite(v)) {
        t->failed = true;
    } else if (v >= 1 && v < WHOLE_MAX) {
        append_plain_real(t, v);
    } else {
        snprintf(number, sizeof(number), "%.17g", v);
        append_real(t, number);
    }
}

/* What stands for one byte that may not stand for itself. */
static void append_escaped(struct json_text *t, unsigned char c)
{
    static const char from[] = "\"\\\b\f\n\r\t";
    static const char to[] = "\"\\bfnrt";
    const char *found = strchr(from, c);
    char text[ESCAPE_BYTES + 1] = {'\\', '\0'};

    if (found) {
        text[1] = to[found - from];
        append(t, text, 2);
    } else {
        snprintf(text, sizeof(text), "\\u%04X", c);
        append(t, text, ESCAPE_BYTES);
    }
}

/* Is all of it ASCII, or else UTF-8 as jansson would take it? */
static bool is_valid(const char *v, size_t n)
{
    json_t *text;
    bool ascii = true;

    for (size_t i = 0; i < n && ascii; i++)
        ascii = (unsigned char)v[i] < 0x80;
    if (ascii)
        return true;
    text = json_stringn(v, n);
    json_decref(text);
    return text != NULL;
}

/* How many of the first bytes may stand for themselves: ASCII but for quotes, backslashes and
 * control characters. Eight at a time, by the bit that a borrow or the byte itself puts at its top.
 */
static size_t plain_bytes(const char *v, size_t n)
{
    const uint64_t ones = 0x0101010101010101u;
    const uint64_t tops = 0x80 * ones;
    size_t i = 0;

    for (; i + 8 <= n; i += 8) {
        uint64_t w;
        memcpy(&w, v + i, sizeof(w));
        const uint64_t quote = w ^ ('"' * ones);
        const uint64_t slash = w ^ ('\\' * ones);
        if ((w | (w - 0x20 * ones) | (quote - ones) | (slash - ones)) & tops)
            break; /* perhaps: what follows looks closer */
    }
    while (i < n && (unsigned char)v[i] >= 0x20 && (unsigned char)v[i] < 0x80 && v[i] != '"' &&
           v[i] != '\\')
        i++;
    return i;
}

void json_text_text(struct json_text *t, const char *name, const char *v)
{
    size_t n = strlen(v);
    size_t start = plain_bytes(v, n);
    bool valid = start == n || is_valid(v, n);
    size_t plain = 0; /* since here nothing had to be changed */

    append_name(t, name);
    append(t, "\"", 1);
    for (size_t i = start; i < n; i++) {
        unsigned char c = (unsigned char)v[i];
        bool bad = c >= 0x80 && !valid;
        if (c >= 0x20 && c != '"' && c != '\\' && !bad)
            continue;
        append(t, v + plain, i - plain);
        plain = i + 1;
        if (bad)
            append(t, "?", 1);
        else
            append_escaped(t, c);
    }
    append(t, v + plain, n - plain);
    append(t, "\"", 1);
}

static void append_reason(struct json_text *t, const char *name, enum known known,
                          enum reason reason)
{
    char reason_name[MAYBE_JSON_NAME_BYTES];
    char text[MAYBE_JSON_REASON_BYTES];

    json_text_null(t, name);
    json_text_text(t, maybe_json_reason_name(name, reason_name, sizeof(reason_name)),
                   maybe_json_reason(known, reason, text, sizeof(text)));
}

void json_text_u64_maybe(struct json_text *t, const char *name, struct maybe_u64 v)
{
    if (IS_KNOWN(v))
        json_text_u64(t, name, v.v);
    else
        append_reason(t, name, v.known, v.reason);
}

void json_text_f64_maybe(struct json_text *t, const char *name, struct maybe_f64 v)
{
    if (IS_KNOWN(v))
        json_text_real(t, name, v.v);
    else
        append_reason(t, name, v.known, v.reason);
}

char *json_text_end(struct json_text *t, size_t *out_bytes)
{
    char *text;

    append(t, "\n", 2); /* and its end */
    text = t->text;
    t->text = NULL;
    if (t->failed) {
        free(text);
        return NULL;
    }
    *out_bytes = t->bytes - 1;
    return text;
}
