/* hostlist.c: an item of the list is read into parts, each a text and the ranges behind it; its
 * hosts are then counted, and only if they are not too many called one by one, as an odometer runs.
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
    uint32_t digits;
};

struct part {
    const char *text; /* before the bracket */
    size_t bytes;
    uint32_t first; /* of the ranges */
    uint32_t count; /* 0: no bracket */
};

struct item {
    struct part parts[HOSTLIST_MOST_PARTS];
    uint32_t part_count;
    struct range ranges[HOSTLIST_MOST_RANGES];
    uint32_t range_count;
};

/* Where the odometer of a part stands. */
struct wheel {
    uint32_t range; /* of the part's */
    uint64_t value;
};

static enum status refuse(struct err *err, const char *at, const char *why)
{
    char shown[SHOWN_BYTES];

    snprintf(shown, sizeof(shown), "%s", at);
    text_tidy(shown);
    return err_set(err, STATUS_INVALID_ARGUMENT, "no host list: %s at \"%s\"", why, shown);
}

/* Digits; moves `*at` behind them. */
static bool read_number(const char **at, uint64_t *out, uint32_t *out_digits)
{
    uint64_t value = 0;
    uint32_t digits = 0;

    for (; **at >= '0' && **at <= '9' && digits <= HOSTLIST_MOST_DIGITS; (*at)++, digits++)
        value = value * 10 + (uint64_t)(**at - '0');
    *out = value;
    *out_digits = digits;
    return digits > 0 && digits <= HOSTLIST_MOST_DIGITS;
}

/* "001-256" or "7". */
static enum status read_range(const char **at, struct range *out, struct err *err)
{
    const char *const start = *at;
    uint32_t digits = 0;

    if (!read_number(at, &out->low, &out->digits))
        return refuse(err, start, "a number of at most 12 digits is missing");
    out->high = out->low;
    if (**at != '-')
        return STATUS_OK;
    (*at)++;
    if (!read_number(at, &out->high, &digits))
        return refuse(err, start, "a number of at most 12 digits is missing");
    if (digits > 1 && digits != out->digits && start[out->digits + 1] == '0')
        return refuse(err, start, "the bounds are padded to different widths");
    return out->high < out->low ? refuse(err, start, "the range runs backwards") : STATUS_OK;
}

/* "[1-3,7]", from the bracket on. */
static enum status read_bracket(const char **at, struct item *item, struct part *part,
                                struct err *err)
{
    const char *const start = *at;
    enum status s;

    do {
        (*at)++;
        if (item->range_count == HOSTLIST_MOST_RANGES)
            return refuse(err, start, "there are more than 4096 ranges");
        s = read_range(at, &item->ranges[item->range_count], err);
        if (s != STATUS_OK)
            return s;
        item->range_count++;
        part->count++;
    } while (**at == ',');
    if (**at != ']')
        return refuse(err, start, "a bracket is not closed");
    (*at)++;
    return STATUS_OK;
}

/* One item, up to a comma outside brackets or the end. */
static enum status read_item(const char **at, struct item *item, struct err *err)
{
    const char *const start = *at;
    enum status s = STATUS_OK;

    item->part_count = 0;
    item->range_count = 0;
    while (s == STATUS_OK && **at != '\0' && **at != ',') {
        struct part *const part = &item->parts[item->part_count];
        if (item->part_count == HOSTLIST_MOST_PARTS)
            return refuse(err, start, "there are more than 8 parts");
        *part = (struct part){.text = *at, .first = item->range_count};
        part->bytes = strcspn(*at, "[],");
        *at += part->bytes;
        item->part_count++;
        if (**at == ']')
            return refuse(err, start, "a bracket is closed that was not opened");
        if (**at == '[')
            s = read_bracket(at, item, part, err);
    }
    if (s == STATUS_OK && item->part_count == 0)
        return refuse(err, start, "a name is missing");
    return s;
}

/* How many hosts an item stands for; one more than `most` for any number above it. */
static uint64_t count_item(const struct item *item, uint64_t most)
{
    uint64_t product = 1;

    for (uint32_t p = 0; p < item->part_count; p++) {
        const struct part *const part = &item->parts[p];
        uint64_t sum = part->count == 0;
        for (uint32_t r = part->first; r < part->first + part->count; r++)
            sum += item->ranges[r].high - item->ranges[r].low + 1; /* below 2^12 x 10^12 */
        if (sum == 0 || sum > most / product)
            return most + 1;
        product *= sum;
    }
    return product;
}

static enum status print_host(const struct item *item, const struct wheel *wheels, char *out,
                              struct err *err)
{
    size_t n = 0;

    for (uint32_t p = 0; p < item->part_count; p++) {
        const struct part *const part = &item->parts[p];
        if (part->bytes + HOSTLIST_MOST_DIGITS >= HOST_BYTES - n)
            return refuse(err, item->parts[0].text, "a name is too long");
        memcpy(out + n, part->text, part->bytes);
        n += part->bytes;
        out[n] = '\0';
        if (part->count > 0)
            n += (size_t)snprintf(out + n, HOST_BYTES - n, "%0*" PRIu64,
                                  (int)item->ranges[part->first + wheels[p].range].digits,
                                  wheels[p].value);
    }
    return STATUS_OK;
}

/* One on. False where all are through. */
static bool advance(const struct item *item, struct wheel *wheels)
{
    for (uint32_t p = item->part_count; p-- > 0;) {
        const struct part *const part = &item->parts[p];
        const struct range *const ranges = &item->ranges[part->first];
        struct wheel *const w = &wheels[p];
        if (part->count == 0)
            continue;
        if (w->value < ranges[w->range].high) {
            w->value++;
            return true;
        }
        w->range = w->range + 1 < part->count ? w->range + 1 : 0;
        w->value = ranges[w->range].low;
        if (w->range > 0)
            return true;
    }
    return false;
}

static enum status call_item(const struct item *item, hostlist_fn *each, void *self,
                             struct err *err)
{
    struct wheel wheels[HOSTLIST_MOST_PARTS] = {{0}};
    char host[HOST_BYTES];
    enum status s;

    for (uint32_t p = 0; p < item->part_count; p++) {
        if (item->parts[p].count > 0)
            wheels[p].value = item->ranges[item->parts[p].first].low;
    }
    do {
        s = print_host(item, wheels, host, err);
        if (s == STATUS_OK)
            s = each(self, host, err);
    } while (s == STATUS_OK && advance(item, wheels));
    return s;
}

/* All items: counts them, or with `each` calls them. */
static enum status walk(const char *expression, struct item *item, uint64_t most, hostlist_fn *each,
                        void *self, struct err *err)
{
    const char *at = expression;
    uint64_t count = 0;
    enum status s = STATUS_OK;

    for (;; at++) {
        s = read_item(&at, item, err);
        if (s == STATUS_OK && each)
            s = call_item(item, each, self, err);
        if (s != STATUS_OK)
            return s;
        count += count_item(item, most);
        if (count > most)
            return err_set(err, STATUS_FULL, "the host list stands for more than %" PRIu64 " hosts",
                           most);
        if (*at == '\0')
            return STATUS_OK;
    }
}

enum status hostlist_expand(const char *expression, uint64_t most, hostlist_fn *each, void *self,
                            struct err *err)
{
    struct item *const item = malloc(sizeof(*item));
    enum status s;

    if (!item)
        return err_set(err, STATUS_NO_MEMORY, "no memory for a host list");
    s = walk(expression, item, most, NULL, NULL, err);
    if (s == STATUS_OK)
        s = walk(expression, item, most, each, self, err);
    free(item);
    return s;
}
