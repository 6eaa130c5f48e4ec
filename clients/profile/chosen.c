/* chosen.c: see chosen.h. */
#include "clients/profile/chosen.h"

#include "clients/lab/trace/number_set.h"

#include <math.h>
#include <stdlib.h>

/* Evenly distributed rows are in at least this share of the expected number of entries. */
static const double EVEN = 0.9;

uint64_t chosen_span(const struct access_pattern *p)
{
    uint64_t span = 0;
    uint64_t low;
    uint64_t high;

    for (uint32_t i = 0; i < p->class_count; i++)
        if (access_pattern_region(p, i, &low, &high))
            span += high - low;
    return span;
}

struct chosen_sums chosen_sum(const struct costing *c)
{
    struct chosen_sums sums = {0};

    for (uint32_t i = 0; i < c->pattern.class_count; i++) {
        const struct access_class *const a = &c->pattern.classes[i];
        if (!a->chosen)
            continue;
        sums.lines += a->scale * (double)a->lines;
        sums.runs += a->scale * (double)a->runs;
        sums.moved_bytes += a->scale * (double)a->moved_bytes;
        sums.runs_of_kind[a->kind] += a->scale * (double)a->runs;
    }
    return sums;
}

enum rlt_kind chosen_kind(const struct chosen_sums *sums)
{
    enum rlt_kind most = RLT_LOAD;

    for (uint32_t k = 1; k < RLT_KIND_COUNT; k++)
        if (sums->runs_of_kind[k] > sums->runs_of_kind[most])
            most = (enum rlt_kind)k;
    return most;
}

enum access chosen_access(enum rlt_kind kind)
{
    return kind == RLT_STORE ? ACCESS_WRITE : kind == RLT_ATOMIC ? ACCESS_ATOMIC : ACCESS_READ;
}

/* ---- rows ---- */

static enum status add_row(void *context, const struct access_class *c, uint64_t address,
                           struct err *err)
{
    struct chosen_rows *const rows = context;

    (void)c;
    if (rows->count == rows->room) {
        const uint64_t room = rows->room > 0 ? 2 * rows->room : 4096;
        uint64_t *const more = realloc(rows->addresses, room * sizeof(*more));
        if (!more)
            return err_no_memory(err, "the rows");
        rows->addresses = more;
        rows->room = room;
    }
    rows->addresses[rows->count++] = address;
    return STATUS_OK;
}

enum status chosen_read_rows(const struct costing *c, struct chosen_rows *out, struct err *err)
{
    *out = (struct chosen_rows){0};
    rewind(c->trace);
    return access_pattern_walk(c->trace, c->context->map, &c->pattern, add_row, out, err);
}

enum status chosen_find_even(const struct chosen_rows *rows, uint64_t span, uint64_t entry_bytes,
                             bool *even, struct err *err)
{
    const double entries = (double)span / (double)entry_bytes;
    struct number_set set = {0};
    bool fits = true;

    for (uint64_t i = 0; fits && i < rows->count; i++)
        fits = number_set_add(&set, rows->addresses[i] / entry_bytes) != UINT32_MAX;
    *even = set.count >= EVEN * entries * (1 - exp(-(double)rows->count / entries));
    number_set_free(&set);
    return fits ? STATUS_OK : err_no_memory(err, "the entries");
}
