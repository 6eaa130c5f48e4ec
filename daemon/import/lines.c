/* lines.c: see formats.h. */
#include "import/formats.h"

#include <stdio.h>
#include <string.h>

enum { MILLION = 1000000, FRACTION_DIGITS = 6, FILE_NAME_CHARS = 100, SHOWN_CHARS = 40 };

void lines_begin(struct lines *l, const char *file, const char *text, size_t bytes)
{
    *l = (struct lines){.file = file, .next = text, .end = text + bytes};
}

enum status lines_wrong(const struct lines *l, struct err *err, const char *format, ...)
{
    char what[256];
    char name[FIELD_TEXT_BYTES];
    const size_t length = strlen(l->file);
    const size_t skip = length > SHOWN_CHARS ? length - SHOWN_CHARS : 0;
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    field_text((struct field){l->file + skip, length - skip}, name);
    return err_set(err, STATUS_INVALID_ARGUMENT, "%s%s, line %u: %s", skip ? ".." : "", name,
                   l->number ? l->number : 1, what);
}

/* Returns whether all bytes are printable ASCII, tabs or above ASCII, which may all occur in
 * names. */
static bool is_text(const char *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char c = (unsigned char)at[i];
        if ((c < ' ' && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

enum status lines_next(struct lines *l, struct err *err)
{
    if (l->next == l->end)
        return STATUS_NOT_FOUND;
    const size_t left = (size_t)(l->end - l->next);
    const char *const newline = memchr(l->next, '\n', left);

    l->number += 1;
    l->ended = newline != NULL;
    l->at = l->next;
    l->bytes = newline ? (size_t)(newline - l->next) : left;
    l->next = newline ? newline + 1 : l->end;
    if (l->bytes > 0 && l->at[l->bytes - 1] == '\r')
        l->bytes -= 1;
    if (l->bytes > IMPORT_MAX_LINE_BYTES)
        return lines_wrong(l, err, "has %zu bytes, at most %d are read", l->bytes,
                           IMPORT_MAX_LINE_BYTES);
    if (!is_text(l->at, l->bytes))
        return lines_wrong(l, err, "contains bytes that are not text");
    return STATUS_OK;
}

bool field_cut(struct field *rest, char separator, struct field *out)
{
    if (!rest->at)
        return false;
    const char *const found = memchr(rest->at, separator, rest->bytes);
    if (!found) {
        *out = *rest;
        *rest = (struct field){NULL, 0};
        return true;
    }
    *out = (struct field){rest->at, (size_t)(found - rest->at)};
    *rest = (struct field){found + 1, rest->bytes - out->bytes - 1};
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct field field_trim(struct field f)
{
    while (f.bytes > 0 && is_blank(f.at[0])) {
        f.at += 1;
        f.bytes -= 1;
    }
    while (f.bytes > 0 && is_blank(f.at[f.bytes - 1]))
        f.bytes -= 1;
    return f;
}

bool field_begins(struct field f, const char *text)
{
    const size_t n = strlen(text);
    return f.bytes >= n && memcmp(f.at, text, n) == 0;
}

bool field_is(struct field f, const char *text)
{
    return f.bytes == strlen(text) && field_begins(f, text);
}

bool field_u64(struct field f, uint64_t max, uint64_t *out)
{
    uint64_t v = 0;

    if (f.bytes == 0)
        return false;
    for (size_t i = 0; i < f.bytes; i++) {
        if (f.at[i] < '0' || f.at[i] > '9')
            return false;
        const uint64_t digit = (uint64_t)(f.at[i] - '0');
        if (digit > max || v > (max - digit) / 10)
            return false;
        v = v * 10 + digit;
    }
    *out = v;
    return true;
}

bool field_millionths(struct field f, uint64_t max_whole, uint64_t *out)
{
    struct field whole;
    uint64_t fraction = 0;
    uint64_t v = 0;

    if (!field_cut(&f, '.', &whole) || !field_u64(whole, max_whole, &v))
        return false;
    if (f.at) {
        if (f.bytes > FRACTION_DIGITS || !field_u64(f, MILLION - 1, &fraction))
            return false;
        for (size_t i = f.bytes; i < FRACTION_DIGITS; i++)
            fraction *= 10;
    }
    *out = v * MILLION + fraction;
    return true;
}

const char *field_text(struct field f, char *out)
{
    size_t n = 0;
    for (; n < f.bytes && n < SHOWN_CHARS; n++) {
        const unsigned char c = (unsigned char)f.at[n];
        out[n] = '?';
        if (c >= ' ' && c < 0x7f)
            out[n] = (char)c;
    }
    out[n] = '\0';
    if (f.bytes > SHOWN_CHARS)
        memcpy(out + n, "..", sizeof "..");
    return out;
}

bool field_cycles(struct field f, uint32_t *out)
{
    uint64_t millionths = 0;

    if (!field_millionths(f, IMPORT_MAX_CYCLES - 1, &millionths))
        return false;
    *out = (uint32_t)(millionths / (1000000 / PROBE_MEAN_SCALE));
    return *out > 0;
}
