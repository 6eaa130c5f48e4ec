/* sim_text.c: see sim_text.h. The cursor never moves past its field. */
#include "gpu/sim/sim_text.h"

#include "base/assert.h"
#include "base/units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NUMBER_CHARS = 40, MAX_DIGITS = 17 };

enum status sim_text_fail(const struct sim_cursor *c, const char *what)
{
    return err_set(
        c->err, STATUS_INVALID_ARGUMENT, "simulated GPU: %.*s, at character %d (\"%.*s\"): %s",
        (int)(c->end - c->field > 60 ? 60 : c->end - c->field), c->field,
        (int)(c->at - c->whole) + 1, (int)(c->end - c->at > 12 ? 12 : c->end - c->at), c->at, what);
}

bool sim_text_skip(struct sim_cursor *c, const char *expected)
{
    const size_t n = strlen(expected);
    if ((size_t)(c->end - c->at) < n || strncmp(c->at, expected, n) != 0)
        return false;
    c->at += n;
    return true;
}

/* Copies the following characters that are in `set`, for a library function to parse. */
static bool copy_span(const struct sim_cursor *c, const char *set, char *out, size_t out_size)
{
    size_t n = 0;
    while (c->at + n < c->end && strchr(set, c->at[n]))
        n++;
    if (n == 0 || n >= out_size)
        return false;
    memcpy(out, c->at, n);
    out[n] = '\0';
    return true;
}

static enum status read_whole(struct sim_cursor *c, uint64_t max, uint64_t *out)
{
    char digits[MAX_NUMBER_CHARS];
    if (!copy_span(c, "0123456789", digits, sizeof digits))
        return sim_text_fail(c, "expected a whole number");
    errno = 0;
    *out = strtoull(digits, NULL, 10);
    if (errno != 0 || *out > max)
        return sim_text_fail(c, "the number is too large");
    c->at += strlen(digits);
    return STATUS_OK;
}

enum status sim_text_u32(struct sim_cursor *c, uint32_t max, uint32_t *out)
{
    uint64_t v = 0;
    const enum status s = read_whole(c, max, &v);
    *out = (uint32_t)v;
    return s;
}

enum status sim_text_ids(struct sim_cursor *c, uint32_t *first, uint32_t *last)
{
    enum status s = sim_text_u32(c, REACH_MAX_SMS - 1, first);
    *last = *first;
    if (s == STATUS_OK && sim_text_skip(c, "-"))
        s = sim_text_u32(c, REACH_MAX_SMS - 1, last);
    if (s == STATUS_OK && *last < *first)
        return sim_text_fail(c, "the range is reversed");
    return s;
}

static enum status read_f64(struct sim_cursor *c, double max, double *out)
{
    char digits[MAX_NUMBER_CHARS];
    if (!copy_span(c, "0123456789.eE-+", digits, sizeof digits))
        return sim_text_fail(c, "expected a number");
    char *end = NULL;
    const double v = strtod(digits, &end);
    if (*end != '\0' || !(v >= 0 && v <= max))
        return sim_text_fail(c, "not a number, negative or too large");
    c->at += strlen(digits);
    *out = fabs(v); /* "-0" is printed as nothing and would differ when read back */
    return STATUS_OK;
}

static enum status read_bytes(struct sim_cursor *c, uint64_t *out)
{
    char digits[MAX_NUMBER_CHARS];
    struct err why;
    if (!copy_span(c, "0123456789.KMGTiBkmgtb", digits, sizeof digits))
        return sim_text_fail(c, "expected a size: 128K, 2M, 80G");
    if (units_parse_bytes(digits, out, &why) != STATUS_OK)
        return sim_text_fail(c, why.text);
    c->at += strlen(digits);
    return STATUS_OK;
}

enum status sim_text_number(struct sim_cursor *c, const struct sim_number *n, void *object)
{
    void *slot = (char *)object + n->offset;
    if (n->type == SIM_U32)
        return sim_text_u32(c, (uint32_t)n->max, slot);
    if (n->type == SIM_U64)
        return read_whole(c, n->max, slot);
    return n->type == SIM_F64 ? read_f64(c, (double)n->max, slot) : read_bytes(c, slot);
}

enum status sim_text_parts(struct sim_cursor *c, const struct sim_part *parts, size_t count,
                           const char *expected, void *object)
{
    for (size_t i = 0; i < count; i++) {
        if (!sim_text_skip(c, parts[i].before))
            return sim_text_fail(c, expected);
        const enum status s = sim_text_number(c, &parts[i].number, object);
        if (s != STATUS_OK)
            return s;
    }
    return STATUS_OK;
}

void sim_text_put(struct sim_writer *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(w->at, w->left, format, args);
    va_end(args);
    REACH_ASSERT(n >= 0 && (size_t)n < w->left);
    w->at += n;
    w->left -= (size_t)n;
}

void sim_text_put_number(struct sim_writer *w, const struct sim_number *n, const void *object)
{
    const void *slot = (const char *)object + n->offset;
    char text[MAX_NUMBER_CHARS] = "";
    double v;

    if (n->type == SIM_U32) {
        sim_text_put(w, "%u", *(const uint32_t *)slot);
    } else if (n->type == SIM_U64) {
        sim_text_put(w, "%llu", (unsigned long long)*(const uint64_t *)slot);
    } else if (n->type == SIM_BYTES) {
        sim_text_put(w, "%s", units_print_bytes(*(const uint64_t *)slot, text, sizeof text));
    } else {
        /* Writes the shortest text that strtod reads back as exactly the same number. */
        memcpy(&v, slot, sizeof v);
        for (int digits = 6; digits <= MAX_DIGITS && (!text[0] || strtod(text, NULL) != v);
             digits++)
            (void)snprintf(text, sizeof text, "%.*g", digits, v);
        sim_text_put(w, "%s", text);
    }
}

void sim_text_put_parts(struct sim_writer *w, const struct sim_part *parts, size_t count,
                        const void *object)
{
    for (size_t i = 0; i < count; i++) {
        sim_text_put(w, "%s", parts[i].before);
        sim_text_put_number(w, &parts[i].number, object);
    }
}

void sim_text_put_ids(struct sim_writer *w, const struct sim_desc *d, const uint16_t *of,
                      uint16_t group)
{
    const char *comma = "";
    for (uint32_t i = 0, j; i < d->sm_count; i = j + 1) {
        j = i;
        if (of && of[i] != group)
            continue;
        while (j + 1 < d->sm_count && d->sm_ids[j + 1] == d->sm_ids[j] + 1 &&
               (!of || of[j + 1] == group))
            j++;
        if (j < i + 2)
            j = i;
        sim_text_put(w, "%s%u", comma, d->sm_ids[i]);
        if (j > i)
            sim_text_put(w, "-%u", d->sm_ids[j]);
        comma = ",";
    }
}

bool sim_text_differs(const struct sim_number *n, const void *a, const void *b)
{
    const size_t size = n->type == SIM_U32 ? sizeof(uint32_t) : sizeof(uint64_t);
    return memcmp((const char *)a + n->offset, (const char *)b + n->offset, size) != 0;
}
