/* link_cost.c: see link_cost.h. The planner predicts the speed of evenly distributed rows. Rows
 * that miss less often are taken to be evenly distributed over less memory. */
#include "clients/profile/link_cost.h"

#include "clients/profile/chosen.h"
#include "clients/profile/entry_misses.h"
#include "planner/memory_choices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A trace with fewer rows than this multiple of the entries does not fill the table. Evenly
 * distributed rows then miss by the share of the memory that the table does not reach. */
enum { FILLS_TABLE = 4 };

/* The random accesses to one place other than device memory. */
struct linked {
    enum place place;
    const struct memory_facts *facts; /* of the place */
    struct chosen_rows rows;
    struct memory_answer *answer; /* borrowed */
    uint64_t span;
    double runs; /* of the launch */
    uint32_t row_bytes;
    enum access access;
};

/* Returns the facts of a place, or NULL if there are none. If the launch accesses several peers,
 * the facts are those of the first one. */
static const struct memory_facts *find_facts(const struct costing *c, enum place place)
{
    const char *peer = "";
    enum memory_kind kind;

    if (!place_memory_kind(place, &kind))
        return NULL;
    for (uint32_t i = 0; kind == MEMORY_PEER && peer[0] == '\0' && i < c->pattern.class_count;
         i++) {
        const struct access_class *const a = &c->pattern.classes[i];
        if (a->place == place)
            peer = c->context->recording->gpus[c->context->map->regions[a->region].gpu].uuid;
    }
    for (uint32_t i = 0; i < c->fp->memory_count; i++)
        if (c->fp->memory[i].kind == kind && strcmp(c->fp->memory[i].peer_uuid, peer) == 0)
            return &c->fp->memory[i];
    return NULL;
}

/* Rows that miss by `share`, like rows that are evenly distributed over `even_bytes`. */
struct spread {
    double share;
    uint64_t even_bytes;
    bool is_even; /* whether the rows are distributed evenly, or all hit */
};

/* Counts the misses of the rows in memory of this kind. Rows that all hit are as fast as rows that
 * are evenly distributed over the memory of their entries. */
static enum status count_misses(const struct linked *l, const struct memory_facts *m,
                                struct spread *out, struct err *err)
{
    const uint64_t entries =
        IS_KNOWN(m->reach_bytes) && IS_KNOWN(m->entry_bytes) && m->entry_bytes.v > 0
            ? m->reach_bytes.v / m->entry_bytes.v
            : 0;
    struct entry_misses counted;
    enum status s;

    *out = (struct spread){.even_bytes = l->span};
    if (entries == 0)
        return STATUS_OK;
    s = chosen_find_even(&l->rows, l->span, m->entry_bytes.v, &out->is_even, err);
    if (s != STATUS_OK || (out->is_even && l->rows.count < FILLS_TABLE * entries)) {
        out->share =
            l->span > m->reach_bytes.v ? 1 - (double)m->reach_bytes.v / (double)l->span : 0;
        return s;
    }
    s = entry_misses_count(l->rows.addresses, l->rows.count, m->entry_bytes.v, entries, &counted,
                           err);
    out->share = (double)counted.misses / (double)l->rows.count;
    const double bytes = counted.misses == 0
                             ? (double)counted.translations * (double)m->entry_bytes.v
                             : (double)m->reach_bytes.v / (1 - out->share);
    out->even_bytes = bytes < (double)l->span ? (uint64_t)bytes : l->span;
    out->is_even = out->is_even || counted.misses == 0;
    return s;
}

/* Returns the time of all rows over `bytes` of memory of this kind with a strategy, or 0 if it is
 * unknown. */
static double rows_ns(const struct costing *c, const struct linked *l, const struct memory_facts *m,
                      enum strategy strategy, uint64_t bytes)
{
    const struct memory_request request = {.bytes = bytes > 0 ? bytes : 1,
                                           .access = l->access,
                                           .kind = (uint32_t)m->kind + 1,
                                           .element_bytes = l->row_bytes,
                                           .fingerprint_id = c->context->fingerprint_id,
                                           .accesses =
                                               strategy == STRATEGY_NAIVE ? 0 : (uint64_t)l->runs};

    if (memory_choices_rank(c->fp, &request, l->answer, NULL) != STATUS_OK)
        return 0;
    for (uint32_t i = 0; i < l->answer->choice_count; i++) {
        const struct memory_choice *const w = &l->answer->choices[i];
        if (w->strategy == strategy && strcmp(w->peer_uuid, m->peer_uuid) == 0 &&
            IS_KNOWN(w->gbps) && w->gbps.v > 0)
            return l->runs * l->answer->transaction_bytes / w->gbps.v;
    }
    return 0;
}

/* Adds the other kinds of host memory, and passes and windows in this kind. `other_ns` is the time
 * of the rest of the link. */
static enum status add_options(struct costing *c, const struct linked *l, double other_ns,
                               struct err *err)
{
    static const enum strategy strategies[] = {STRATEGY_SCOPES, STRATEGY_WINDOWS};
    enum status s = STATUS_OK;

    for (uint32_t i = 0; s == STATUS_OK && i < c->fp->memory_count; i++) {
        const struct memory_facts *const m = &c->fp->memory[i];
        struct spread spread;
        if (!memory_kind_is_host(m->kind) || m->kind == l->facts->kind)
            continue;
        s = count_misses(l, m, &spread, err);
        const double ns = rows_ns(c, l, m, STRATEGY_NAIVE, spread.even_bytes);
        costing_add_option(c, m->kind, STRATEGY_NAIVE, ns > 0 ? ns + other_ns : 0);
    }
    for (uint32_t i = 0; s == STATUS_OK && i < sizeof(strategies) / sizeof(*strategies); i++) {
        const double ns = rows_ns(c, l, l->facts, strategies[i], l->span);
        costing_add_option(c, l->facts->kind, strategies[i], ns > 0 ? ns + other_ns : 0);
    }
    return s;
}

/* Chooses the random accesses to a place. Returns false if there is none. */
static bool choose_place(struct costing *c, enum place place, struct memory_answer *answer,
                         struct linked *out)
{
    enum memory_kind kind;
    struct chosen_sums sums;

    for (uint32_t i = 0; i < c->pattern.class_count; i++) {
        struct access_class *const a = &c->pattern.classes[i];
        a->chosen = a->place == place && a->random;
    }
    sums = chosen_sum(c);
    if (sums.runs == 0 || !place_memory_kind(place, &kind))
        return false;
    *out = (struct linked){.place = place,
                           .facts = find_facts(c, place),
                           .answer = answer,
                           .span = chosen_span(&c->pattern),
                           .runs = sums.runs,
                           .row_bytes = (uint32_t)lround(fmax(sums.moved_bytes / sums.runs, 1)),
                           .access = chosen_access(chosen_kind(&sums))};
    return true;
}

/* Returns the time of the accesses to a place that are in order. */
static double in_order_ns(const struct costing *c, enum place place)
{
    const struct memory_facts *const m = find_facts(c, place);
    double bytes = 0;

    for (uint32_t i = 0; i < c->pattern.class_count; i++) {
        const struct access_class *const a = &c->pattern.classes[i];
        bytes += a->place == place && !a->random ? a->scale * (double)a->moved_bytes : 0;
    }
    return m && IS_KNOWN(m->plateau_gbps) && m->plateau_gbps.v > 0 ? bytes / m->plateau_gbps.v : 0;
}

/* Returns the bytes that even rows would have without misses. Memory counts as reached at 90 % of
 * the plateau, so evenly distributed rows have the time of a small region. Other rows are compared
 * with the edge of the reach, because most of them can be in a small part of it. */
static uint64_t reached_bytes(const struct linked *l, const struct spread *spread)
{
    if (spread->is_even)
        return 1;
    return IS_KNOWN(l->facts->reach_bytes) && l->facts->reach_bytes.v < spread->even_bytes
               ? l->facts->reach_bytes.v
               : spread->even_bytes;
}

static enum status cost_place(struct costing *c, struct linked *l, struct err *err)
{
    const double before = c->link_ns;
    struct spread spread;
    enum status s;

    if (!l->facts)
        return err_set(err, STATUS_INCONCLUSIVE,
                       "the fingerprint does not describe %s memory; measure with depth memory",
                       place_words(l->place));
    s = chosen_read_rows(c, &l->rows, err);
    if (s == STATUS_OK)
        s = count_misses(l, l->facts, &spread, err);
    if (s != STATUS_OK)
        return s;
    const double now = rows_ns(c, l, l->facts, STRATEGY_NAIVE, spread.even_bytes);
    if (!(now > 0))
        return err_set(err, STATUS_INCONCLUSIVE, "the speed of %s memory over this size is unknown",
                       place_words(l->place));
    const double reached = rows_ns(c, l, l->facts, STRATEGY_NAIVE, reached_bytes(l, &spread));
    c->out->accesses += l->runs;
    c->out->misses += spread.share * l->runs;
    c->link_ns += now;
    c->link_in_reach_ns += reached > 0 ? fmin(reached, now) : now;
    return add_options(c, l, before, err);
}

enum status link_cost_predict(struct costing *c, struct err *err)
{
    struct memory_answer *const answer = malloc(sizeof(*answer));
    enum status s = STATUS_OK;

    if (!answer)
        return err_no_memory(err, "the answer");
    for (uint32_t place = 0; place < PLACE_COUNT; place++)
        c->link_ns += in_order_ns(c, (enum place)place);
    c->link_in_reach_ns = c->link_ns;
    for (uint32_t place = 0; s == STATUS_OK && place < PLACE_COUNT; place++) {
        struct linked l;
        if (!choose_place(c, (enum place)place, answer, &l))
            continue;
        s = cost_place(c, &l, err);
        free(l.rows.addresses);
    }
    free(answer);
    return s;
}
