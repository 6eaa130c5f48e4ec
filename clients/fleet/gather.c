/* gather.c: see gather.h. */
#include "clients/fleet/gather.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 4096 };

/* One number of one GPU in the temporary file. */
struct spooled {
    uint32_t slot;
    uint32_t weight;
    double v;
};

/* Not in memory, where /tmp may lie: in $TMPDIR or /var/tmp. */
static FILE *open_spool(void)
{
    const char *const folder = getenv("TMPDIR");
    char name[512];
    FILE *file;
    int fd;

    (void)snprintf(name, sizeof(name), "%s/reach-fleet-XXXXXX",
                   folder && folder[0] ? folder : "/var/tmp");
    fd = mkstemp(name);
    if (fd < 0)
        return tmpfile();
    (void)unlink(name);
    file = fdopen(fd, "w+");
    if (!file)
        close(fd);
    return file;
}

enum status gather_new(struct gather **out, struct err *err)
{
    struct gather *const g = calloc(1, sizeof(*g));

    *out = NULL;
    if (!g)
        return err_set(err, STATUS_NO_MEMORY, "no memory for a report");
    g->numbers = calloc(GATHER_MAX_NUMBERS, sizeof(*g->numbers));
    g->orders = calloc(GATHER_MAX_NUMBERS, sizeof(*g->orders));
    g->slot_of = calloc(NUMBER_MAX_NAMES, sizeof(*g->slot_of));
    if (!g->numbers || !g->orders || !g->slot_of) {
        gather_free(g);
        return err_set(err, STATUS_NO_MEMORY, "no memory for a report");
    }
    g->spool = open_spool();
    if (!g->spool) {
        gather_free(g);
        return err_set(err, STATUS_IO, "no temporary file: %s", strerror(errno));
    }
    *out = g;
    return STATUS_OK;
}

void gather_free(struct gather *take)
{
    if (!take)
        return;
    for (uint32_t i = 0; take->orders && i < GATHER_MAX_NUMBERS; i++)
        order_free(&take->orders[i]);
    if (take->spool)
        fclose(take->spool);
    free(take->slot_of);
    free(take->orders);
    free(take->numbers);
    free(take);
}

void gather_reset(struct gather *g)
{
    memset(g->slot_of, 0, NUMBER_MAX_NAMES * sizeof(*g->slot_of));
    g->count = 0;
    g->left_out = 0;
    rewind(g->spool);
    g->failed = ftruncate(fileno(g->spool), 0) != 0;
}

uint32_t gather_find(const struct gather *g, uint32_t id)
{
    return id < NUMBER_MAX_NAMES && g->slot_of[id] ? (uint32_t)g->slot_of[id] - 1 : GATHER_NONE;
}

/* Those of the structure are few, and asked for once a structure. */
static uint32_t find_name(const struct gather *g, const char *name)
{
    for (uint32_t i = 0; i < g->count; i++) {
        if (g->numbers[i].id == GATHER_STRUCTURE && strcmp(g->numbers[i].name, name) == 0)
            return i;
    }
    return GATHER_NONE;
}

uint32_t gather_slot(struct gather *g, uint32_t id, const char *name)
{
    const uint32_t found = id == GATHER_STRUCTURE ? find_name(g, name) : gather_find(g, id);
    struct gather_number *n;

    if (found != GATHER_NONE || g->count == GATHER_MAX_NUMBERS)
        return found;
    n = &g->numbers[g->count];
    memset(n, 0, sizeof(*n));
    (void)snprintf(n->name, sizeof(n->name), "%s", name ? name : "?");
    n->id = id;
    n->judged = numbers_is_judged(n->name);
    order_begin(&g->orders[g->count]);
    if (id < NUMBER_MAX_NAMES)
        g->slot_of[id] = (uint16_t)(g->count + 1);
    return g->count++;
}

void gather_put(struct gather *g, uint32_t slot, enum known known, double v, uint64_t weight)
{
    const struct spooled one = {.slot = slot, .weight = (uint32_t)weight, .v = v};
    struct gather_number *n;

    if (slot >= g->count) {
        g->left_out += weight;
        return;
    }
    n = &g->numbers[slot];
    if (known == MAYBE_KNOWN && isfinite(v)) {
        order_add(&g->orders[slot], v, weight);
        if (fwrite(&one, sizeof(one), 1, g->spool) != 1)
            g->failed = true;
    } else if (known == MAYBE_NOT_OBSERVABLE) {
        n->unobservable += weight;
    } else {
        n->unknown += weight;
    }
}

/* ---- passes over the temporary file ---- */

typedef void spool_fn(struct gather *g, const struct spooled *one);

static enum status pass(struct gather *g, spool_fn *each, struct err *err)
{
    struct spooled *const chunk = malloc(CHUNK * sizeof(*chunk));
    size_t n;

    if (!chunk)
        return err_set(err, STATUS_NO_MEMORY, "no memory for a report");
    rewind(g->spool);
    while ((n = fread(chunk, sizeof(*chunk), CHUNK, g->spool)) > 0) {
        for (size_t i = 0; i < n; i++)
            each(g, &chunk[i]);
    }
    free(chunk);
    if (g->failed || ferror(g->spool))
        return err_set(err, STATUS_IO, "the temporary file of a report: %s", strerror(errno));
    return STATUS_OK;
}

static void again(struct gather *g, const struct spooled *one)
{
    order_again(&g->orders[one->slot], one->v, one->weight);
}

static double distance(const struct gather *g, const struct spooled *one)
{
    return fabs(one->v - g->numbers[one->slot].median);
}

static void add_distance(struct gather *g, const struct spooled *one)
{
    order_add(&g->orders[one->slot], distance(g, one), one->weight);
}

static void distance_again(struct gather *g, const struct spooled *one)
{
    order_again(&g->orders[one->slot], distance(g, one), one->weight);
}

/* Passes until every number's places are found. */
static enum status settle(struct gather *g, spool_fn *each, struct err *err)
{
    enum status s = STATUS_OK;

    for (;;) {
        bool done = true;
        bool no_memory = false;
        for (uint32_t i = 0; i < g->count; i++) {
            done = done && order_done(&g->orders[i]);
            no_memory = no_memory || g->orders[i].no_memory;
        }
        if (no_memory)
            return err_set(err, STATUS_NO_MEMORY, "no memory for a report");
        if (done || s != STATUS_OK)
            return s;
        s = pass(g, each, err);
        for (uint32_t i = 0; i < g->count; i++) {
            if (!order_done(&g->orders[i]))
                order_pass_end(&g->orders[i]);
        }
    }
}

static enum status find_quartiles(struct gather *g, struct err *err)
{
    enum status s;

    for (uint32_t i = 0; i < g->count; i++) {
        if (g->orders[i].n > 0)
            order_want_quartiles(&g->orders[i]);
    }
    s = settle(g, again, err);
    for (uint32_t i = 0; s == STATUS_OK && i < g->count; i++) {
        struct order *const o = &g->orders[i];
        struct gather_number *const n = &g->numbers[i];
        n->n = o->n;
        if (o->n == 0)
            continue;
        n->least = order_least(o);
        n->lower = order_value(o, 0);
        n->median = order_median(o, 1);
        n->upper = order_value(o, 3);
        n->most = order_most(o);
    }
    return s;
}

static enum status find_deviations(struct gather *g, struct err *err)
{
    enum status s;

    for (uint32_t i = 0; i < g->count; i++)
        order_begin(&g->orders[i]);
    s = pass(g, add_distance, err);
    for (uint32_t i = 0; i < g->count; i++) {
        if (g->orders[i].n > 0)
            order_want_median(&g->orders[i]);
    }
    if (s == STATUS_OK)
        s = settle(g, distance_again, err);
    for (uint32_t i = 0; s == STATUS_OK && i < g->count; i++) {
        if (g->orders[i].n > 0)
            g->numbers[i].mad = order_median(&g->orders[i], 0);
    }
    return s;
}

static int by_id(const void *a, const void *b)
{
    const struct gather_number *const x = a;
    const struct gather_number *const y = b;
    const bool x_last = x->id != GATHER_STRUCTURE;
    const bool y_last = y->id != GATHER_STRUCTURE;

    if (x_last != y_last)
        return x_last - y_last;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return 0; /* glibc's merge sort leaves them as they are */
}

enum status gather_finish(struct gather *g, struct err *err)
{
    enum status s = fflush(g->spool) == 0 ? STATUS_OK : STATUS_IO;

    if (s != STATUS_OK || g->failed)
        return err_set(err, STATUS_IO, "the temporary file of a report: %s", strerror(errno));
    s = find_quartiles(g, err);
    if (s == STATUS_OK)
        s = find_deviations(g, err);
    if (s != STATUS_OK)
        return s;
    qsort(g->numbers, g->count, sizeof(*g->numbers), by_id);
    memset(g->slot_of, 0, NUMBER_MAX_NAMES * sizeof(*g->slot_of));
    for (uint32_t i = 0; i < g->count; i++) {
        if (g->numbers[i].id < NUMBER_MAX_NAMES)
            g->slot_of[g->numbers[i].id] = (uint16_t)(i + 1);
    }
    return STATUS_OK;
}
