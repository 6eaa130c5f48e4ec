/* gather.c: see gather.h. */
#include "clients/fleet/gather.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 4096 };

/* One number of one GPU in the temporary file; `slot` as it was before they were sorted. */
struct gather_spooled {
    uint16_t slot;
    bool many; /* is `of` how many GPUs have it? Else it is whose it is */
    uint32_t of;
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
    g->chunk = calloc(CHUNK, sizeof(*g->chunk));
    g->place_of = calloc(GATHER_MAX_NUMBERS, sizeof(*g->place_of));
    if (!g->numbers || !g->orders || !g->slot_of || !g->chunk || !g->place_of) {
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
    free(take->place_of);
    free(take->chunk);
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
    g->waiting = 0;
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

static void flush(struct gather *g)
{
    if (g->waiting && fwrite(g->chunk, sizeof(*g->chunk), g->waiting, g->spool) != g->waiting)
        g->failed = true;
    g->waiting = 0;
}

void gather_put(struct gather *g, uint32_t slot, enum known known, double v, uint32_t weight,
                uint32_t who)
{
    struct gather_number *n;

    if (slot >= g->count) {
        g->left_out += weight;
        return;
    }
    n = &g->numbers[slot];
    if (known == MAYBE_KNOWN && isfinite(v)) {
        order_add(&g->orders[slot], v, weight);
        if (g->waiting == CHUNK)
            flush(g);
        g->chunk[g->waiting++] = (struct gather_spooled){
            .slot = (uint16_t)slot, .many = weight != 1, .of = weight != 1 ? weight : who, .v = v};
    } else if (known == MAYBE_NOT_OBSERVABLE) {
        n->unobservable += weight;
    } else {
        n->unknown += weight;
    }
}

/* ---- passes over the temporary file ---- */

typedef void spool_fn(struct gather *g, const struct gather_spooled *one);

static enum status pass(struct gather *g, spool_fn *each, struct err *err)
{
    size_t n;

    rewind(g->spool);
    while ((n = fread(g->chunk, sizeof(*g->chunk), CHUNK, g->spool)) > 0) {
        for (size_t i = 0; i < n; i++)
            each(g, &g->chunk[i]);
    }
    if (g->failed || ferror(g->spool))
        return err_set(err, STATUS_IO, "the temporary file of a report: %s", strerror(errno));
    return STATUS_OK;
}

static uint64_t weight_of(const struct gather_spooled *one)
{
    return one->many ? one->of : 1;
}

static void again(struct gather *g, const struct gather_spooled *one)
{
    order_again(&g->orders[one->slot], one->v, weight_of(one));
}

static double distance(const struct gather *g, const struct gather_spooled *one)
{
    return fabs(one->v - g->numbers[one->slot].median);
}

static void add_distance(struct gather *g, const struct gather_spooled *one)
{
    order_add(&g->orders[one->slot], distance(g, one), weight_of(one));
}

static void distance_again(struct gather *g, const struct gather_spooled *one)
{
    order_again(&g->orders[one->slot], distance(g, one), weight_of(one));
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
    return x->was < y->was ? -1 : x->was > y->was;
}

enum status gather_finish(struct gather *g, struct err *err)
{
    enum status s;

    flush(g);
    if (fflush(g->spool) != 0 || g->failed)
        return err_set(err, STATUS_IO, "the temporary file of a report: %s", strerror(errno));
    s = find_quartiles(g, err);
    if (s == STATUS_OK)
        s = find_deviations(g, err);
    if (s != STATUS_OK)
        return s;
    for (uint32_t i = 0; i < g->count; i++)
        g->numbers[i].was = i;
    qsort(g->numbers, g->count, sizeof(*g->numbers), by_id);
    memset(g->slot_of, 0, NUMBER_MAX_NAMES * sizeof(*g->slot_of));
    for (uint32_t i = 0; i < g->count; i++) {
        g->place_of[g->numbers[i].was] = (uint16_t)i;
        if (g->numbers[i].id < NUMBER_MAX_NAMES)
            g->slot_of[g->numbers[i].id] = (uint16_t)(i + 1);
    }
    return STATUS_OK;
}

enum status gather_each(struct gather *g, gather_fn *each, void *self, struct err *err)
{
    enum status s = STATUS_OK;
    size_t n;

    rewind(g->spool);
    while (s == STATUS_OK && (n = fread(g->chunk, sizeof(*g->chunk), CHUNK, g->spool)) > 0) {
        for (size_t i = 0; s == STATUS_OK && i < n; i++)
            s = each(self, &g->numbers[g->place_of[g->chunk[i].slot]], g->chunk[i].v,
                     g->chunk[i].many ? 0 : g->chunk[i].of, err);
    }
    if (s == STATUS_OK && ferror(g->spool))
        s = err_set(err, STATUS_IO, "the temporary file of a report: %s", strerror(errno));
    return s;
}
