/* hostlist.c: an expression is read twice. First it is checked and its hosts are counted; then they
 * are written, a bracket at a time, each value followed by all that the rest stands for.
 *
 * Padding is Slurm's: %0*d of as many digits as the lower bound was written with.
 */
#include "clients/fleet/hostlist.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOST_BYTES = 256, SHOWN_BYTES = 64 };

struct range {
    uint64_t low;
    uint64_t high;
    int digits;
};

struct writing {
    hostlist_fn *each;
    void *self;
    struct err *err;
};

static enum status refuse(struct err *err, const char *at, const char *why)
{
    char shown[SHOWN_BYTES];

    snprintf(shown, sizeof(shown), "%s", at);
    text_tidy(shown);
    return err_set(err, STATUS_INVALID_ARGUMENT, "not a host list: %s at \"%s\"", why, shown);
}

/* Moves `*at` behind digits; returns how many, 0 where they are no number. */
static int read_number(const char **at, uint64_t *out)
{
    const size_t digits = strspn(*at, "0123456789");

    *out = 0;
    if (digits == 0 || digits > HOSTLIST_MOST_DIGITS)
        return 0;
    *out = strtoull(*at, NULL, 10);
    *at += digits;
    return (int)digits;
}

/* "001-256" or "7". NULL, or what is wrong; so in what follows. */
static const char *read_range(const char **at, struct range *out)
{
    static const char missing[] = "a number of at most 12 digits is missing";
    const char *high;
    int digits;

    out->digits = read_number(at, &out->low);
    out->high = out->low;
    if (out->digits == 0)
        return missing;
    if (**at != '-')
        return NULL;
    high = ++*at;
    digits = read_number(at, &out->high);
    if (digits == 0)
        return missing;
    if (digits > 1 && digits != out->digits && *high == '0')
        return "the bounds are padded to different widths";
    return out->high < out->low ? "the range runs backwards" : NULL;
}

/* "[1-3,7]", from the bracket on. */
static const char *count_bracket(const char **at, uint64_t *out, uint32_t *ranges)
{
    struct range r;
    const char *why;

    *out = 0;
    do {
        ++*at;
        why = read_range(at, &r);
        if (why)
            return why;
        if (++*ranges > HOSTLIST_MOST_RANGES)
            return "there are more than 4096 ranges";
        *out += r.high - r.low + 1; /* below 2^12 x 10^12 */
    } while (**at == ',');
    if (**at != ']')
        return "a bracket is not closed";
    ++*at;
    return NULL;
}

/* Up to a comma outside brackets or the end; one more than `most` for any number above it. */
static const char *count_item(const char **at, uint64_t most, uint64_t *out)
{
    const char *const start = *at;
    const char *why = NULL;
    uint32_t ranges = 0;
    uint64_t n;

    *out = 1;
    for (int parts = 0; !why && **at != '\0' && **at != ','; parts++) {
        if (parts == HOSTLIST_MOST_PARTS)
            return "there are more than 8 parts";
        *at += strcspn(*at, "[],");
        if (**at == ']')
            return "a bracket is closed that was not opened";
        if (**at != '[')
            continue;
        why = count_bracket(at, &n, &ranges);
        *out = why || n > most / *out ? most + 1 : *out * n;
    }
    return why ? why : *at == start ? "a name is missing" : NULL;
}

/* All hosts of an item from `at` on, behind the `n` bytes that `host` has already. */
static enum status write_item(const struct writing *w, const char *at, char *host, size_t n)
{
    const size_t text = strcspn(at, "[,");
    enum status s = STATUS_OK;
    const char *rest;
    struct range r;

    if (text + HOSTLIST_MOST_DIGITS >= HOST_BYTES - n)
        return refuse(w->err, at, "a name is too long");
    memcpy(host + n, at, text);
    n += text;
    at += text;
    host[n] = '\0';
    if (*at != '[')
        return w->each(w->self, host, w->err);
    rest = strchr(at, ']') + 1;
    do {
        at++;
        (void)read_range(&at, &r);
        for (uint64_t v = r.low; s == STATUS_OK && v <= r.high; v++)
            s = write_item(
                w, rest, host,
                n + (size_t)snprintf(host + n, HOST_BYTES - n, "%0*" PRIu64, r.digits, v));
    } while (s == STATUS_OK && *at == ',');
    return s;
}

enum status hostlist_expand(const char *expression, uint64_t most, hostlist_fn *each, void *self,
                            struct err *err)
{
    const struct writing w = {each, self, err};
    char host[HOST_BYTES];
    uint64_t total = 0;
    uint64_t n;
    enum status s = STATUS_OK;

    for (const char *at = expression, *item = at;; item = ++at) {
        const char *const why = count_item(&at, most, &n);
        if (why)
            return refuse(err, item, why);
        total += n;
        if (total > most)
            return err_set(err, STATUS_FULL, "the host list has more than %" PRIu64 " hosts", most);
        if (*at == '\0')
            break;
    }
    for (const char *at = expression; s == STATUS_OK; at++) {
        s = write_item(&w, at, host, 0);
        (void)count_item(&at, most, &n); /* to its end */
        if (*at == '\0')
            break;
    }
    return s;
}
