/* hostlist.c: expands an expression from left to right; each value of a bracket is followed by all
 * that the rest of the item stands for. The hosts wait in memory until the whole expression is
 * valid.
 *
 * Padding is Slurm's: %0*d of as many digits as the lower bound was written with.
 */
#include "clients/fleet/hostlist.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BRACKETS = 8, MOST_DIGITS = 12, HOST_BYTES = 256, SHOWN_BYTES = 64 };

struct expansion {
    FILE *out; /* hosts, each ended by a null byte */
    uint64_t count;
    uint64_t most;
    char host[HOST_BYTES];
    const char *end; /* of the item */
    struct err *err;
};

struct range {
    uint64_t low;
    uint64_t high;
    int digits;
};

static enum status refuse(const struct expansion *x, const char *at, const char *why)
{
    char shown[SHOWN_BYTES];

    snprintf(shown, sizeof(shown), "%s", at);
    text_sanitize(shown);
    return err_set(x->err, STATUS_INVALID_ARGUMENT, "not a host list: %s at \"%s\"", why, shown);
}

/* Moves `*at` past a number; returns its digits, 0 if there is none. */
static int parse_number(const char **at, uint64_t *out)
{
    const size_t digits = strspn(*at, "0123456789");

    if (digits == 0 || digits > MOST_DIGITS)
        return 0;
    *out = strtoull(*at, NULL, 10);
    *at += digits;
    return (int)digits;
}

/* Moves `*at` past "001-256" or "7". Returns NULL, or what is wrong. */
static const char *parse_range(const char **at, struct range *out)
{
    static const char missing[] = "a number of at most 12 digits is missing";
    const char *high;
    int digits;

    out->digits = parse_number(at, &out->low);
    out->high = out->low;
    if (out->digits == 0)
        return missing;
    if (**at != '-')
        return NULL;
    high = ++*at;
    digits = parse_number(at, &out->high);
    if (digits == 0)
        return missing;
    if (digits > 1 && digits != out->digits && *high == '0')
        return "the bounds are padded to different widths";
    return out->high < out->low ? "the range runs backwards" : NULL;
}

static enum status expand(struct expansion *x, const char *at, size_t n, int brackets);

/* Expands what begins with the bracket at `at`. */
static enum status expand_bracket(struct expansion *x, const char *at, size_t n, int brackets)
{
    const char *rest = at;
    struct range r = {.digits = 0};
    enum status s = STATUS_OK;

    if (brackets == MOST_BRACKETS)
        return refuse(x, at, "there are more than 8 parts");
    do {
        const char *const begin = ++rest;
        const char *const why = parse_range(&rest, &r);
        if (why)
            return refuse(x, begin, why);
    } while (*rest == ',');
    if (*rest++ != ']')
        return refuse(x, at, "a bracket is not closed");
    do {
        at++;
        (void)parse_range(&at, &r);
        for (uint64_t v = r.low; s == STATUS_OK && v <= r.high; v++)
            s = expand(x, rest, n + (size_t)sprintf(x->host + n, "%0*" PRIu64, r.digits, v),
                       brackets + 1);
    } while (s == STATUS_OK && *at == ',');
    return s;
}

/* Expands an item from `at` on, after the `n` bytes that the host has already and as many brackets.
 */
static enum status expand(struct expansion *x, const char *at, size_t n, int brackets)
{
    const size_t plain = strcspn(at, "[],");

    if (plain + MOST_DIGITS >= HOST_BYTES - n)
        return refuse(x, at, "a name is too long");
    memcpy(x->host + n, at, plain);
    n += plain;
    at += plain;
    if (*at == '[')
        return expand_bracket(x, at, n, brackets);
    if (*at == ']')
        return refuse(x, at, "a bracket is closed that was not opened");
    if (n == 0)
        return refuse(x, at, "a name is missing");
    if (x->count++ == x->most)
        return err_set(x->err, STATUS_FULL, "the host list has more than %" PRIu64 " hosts",
                       x->most);
    fwrite(x->host, 1, n, x->out);
    fputc('\0', x->out);
    x->end = at;
    return STATUS_OK;
}

enum status hostlist_expand(const char *expression, uint64_t most, hostlist_fn *each, void *self,
                            struct err *err)
{
    char *hosts = NULL;
    size_t bytes = 0;
    struct expansion x = {
        .out = open_memstream(&hosts, &bytes), .most = most, .end = "", .err = err};
    enum status s = x.out ? expand(&x, expression, 0, 0)
                          : err_set(err, STATUS_NO_MEMORY, "no memory for hosts");

    while (s == STATUS_OK && *x.end == ',')
        s = expand(&x, x.end + 1, 0, 0);
    if (x.out && fclose(x.out) != 0 && s == STATUS_OK)
        s = err_set(err, STATUS_NO_MEMORY, "no memory for hosts");
    for (const char *host = hosts; s == STATUS_OK && host < hosts + bytes; host += strlen(host) + 1)
        s = each(self, host, err);
    free(hosts);
    return s;
}
