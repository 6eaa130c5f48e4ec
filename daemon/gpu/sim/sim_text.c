/* sim_text.c: see sim_text.h. The cursor never moves past its field. */
#include "gpu/sim/sim_text.h"

#include "base/units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NUMBER_CHARS = 40 };

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
    *out = v;
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
