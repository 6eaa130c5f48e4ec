/* strategy.c: asks for windows and scopes, prices every way to do the job, and ranks them.
 *
 * Ranking picks again and again, among those not picked yet, the simplest of all that are within
 * three percent of the fastest. Predictions are no better than that, and a job should not be turned
 * inside out for nothing.
 */
#include "placement/strategy.h"

#include "placement/limit.h"
#include "placement/strategy_cost.h"
#include "placement/strategy_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DEFAULT_ELEMENT = 128, SECTOR_BYTES = 32 };

/* ---- the request ---- */

enum status strategy_sizes(uint32_t element_bytes, uint32_t transaction_bytes,
                           uint32_t *out_element, uint32_t *out_transaction, struct err *err)
{
    const uint32_t element = element_bytes > 0 ? element_bytes : DEFAULT_ELEMENT;
    const char *field = element > STRATEGY_MAX_TRANSACTION ? "element" : "transaction";

    if (element > STRATEGY_MAX_TRANSACTION || transaction_bytes > STRATEGY_MAX_TRANSACTION)
        return err_set_field(err, STATUS_INVALID_ARGUMENT, field,
                             "%s is more than %d bytes: it is that of one access", field,
                             STRATEGY_MAX_TRANSACTION);
    *out_element = element;
    *out_transaction = transaction_bytes > 0
                           ? transaction_bytes
                           : (element + SECTOR_BYTES - 1) / SECTOR_BYTES * SECTOR_BYTES;
    return STATUS_OK;
}

/* ---- the options ---- */

/* All that is known while an answer is made. */
struct planner {
    const struct job_request *job;
    struct costing costing;
    struct strategy_answer *out;
    bool inside;           /* the job fits the reach, or there is no limit */
    struct cost naive;     /* every other is compared with it */
    struct err no_windows; /* STATUS_OK: placement has answered */
    bool few_groups;       /* it has, that windows need more groups than there are */
    struct cost costs[STRATEGY_COUNT];
};

static struct strategy_option *option_of(struct planner *p, enum strategy s)
{
    return &p->out->options[s]; /* until they are ranked */
}

static void set_possible(struct planner *p, enum strategy s, const struct cost *cost,
                         uint64_t readings)
{
    struct strategy_option *o = option_of(p, s);
    const double extra = cost_extra_bytes(&p->costing, s, readings);

    p->costs[s] = *cost;
    o->possible = true;
    o->bound = cost->bound;
    o->passes = 1;
    o->extra_bytes = extra;
    o->extra_bytes_total = p->job->accesses > 0 ? KNOWN_F64(extra * (double)p->job->accesses)
                                                : UNKNOWN_F64(REASON_NOT_APPLICABLE);
    o->gbps = UNKNOWN_F64(cost->why);
    if (cost->known && cost->ns > 0)
        o->gbps = KNOWN_F64(p->out->transaction_bytes / cost->ns);
    o->times_naive = UNKNOWN_F64(p->naive.known ? cost->why : p->naive.why);
    if (cost->known && p->naive.known)
        o->times_naive = KNOWN_F64(p->naive.ns / cost->ns);
}

static void add_naive(struct planner *p)
{
    set_possible(p, STRATEGY_NAIVE, &p->naive, 1);
    strategy_text_naive(&p->costing, p->inside, option_of(p, STRATEGY_NAIVE));
}

static void add_scopes(struct planner *p)
{
    struct strategy_option *o = option_of(p, STRATEGY_SCOPES);
    struct scope_cost s;

    if (p->inside) {
        strategy_text_needless(&p->costing, o);
    } else if (p->job->once) {
        strategy_text_once(o);
    } else if (!cost_best_scopes(&p->costing, &s)) {
        strategy_text_no_room(&p->costing, o);
    } else {
        set_possible(p, STRATEGY_SCOPES, &s.cost, s.passes);
        o->passes = s.passes;
        o->scope_bytes = s.scope_bytes;
        p->out->passes = s.passes;
        p->out->scope_bytes = s.scope_bytes;
        strategy_text_scopes(&p->costing, o);
    }
}

static void ask_windows(struct planner *p, const struct fingerprint *fp)
{
    struct placement_request r = {.bytes = p->job->bytes,
                                  .windows = p->job->windows,
                                  .granularity_bytes = p->job->granularity_bytes,
                                  .reserve_bytes = p->job->reserve_bytes,
                                  .fingerprint_id = p->out->fingerprint_id};

    if (placement_plan(fp, &r, &p->out->placement, &p->no_windows) != STATUS_OK)
        return;
    p->no_windows.status = STATUS_OK;
    p->out->has_placement = p->out->placement.window_count > 1;
    if (p->out->has_placement)
        return;
    p->few_groups = p->out->placement.advice == ADVICE_NOT_ENOUGH_GROUPS;
}

typedef struct cost windows_cost_fn(const struct costing *c, const struct placement_answer *w);

static void add_in_windows(struct planner *p, enum strategy s, windows_cost_fn *price)
{
    struct strategy_option *o = option_of(p, s);
    struct cost cost;

    if (!p->out->has_placement) {
        if (p->inside)
            strategy_text_needless(&p->costing, o);
        else if (p->few_groups)
            strategy_text_few_groups(&p->costing, o);
        else
            strategy_text_no_windows(&p->no_windows, o);
    } else if (p->job->fixed) {
        strategy_text_fixed(o);
    } else if (s == STRATEGY_WINDOWS && p->job->input_bytes > 0) {
        strategy_text_has_input(o);
    } else if (s == STRATEGY_FILTERED_WINDOWS && p->job->once) {
        strategy_text_once(o);
    } else {
        cost = price(&p->costing, &p->out->placement);
        set_possible(p, s, &cost, p->out->placement.window_count);
        o->windows = p->out->placement.window_count;
        strategy_text_windows(&p->costing, &p->out->placement, o);
    }
}

/* ---- the order ---- */

/* Falling simplicity, as the header has it. Filtered windows are one launch where scopes are
 * several, and were never measured to be slower. */
static uint32_t effort_of(const struct planner *p, enum strategy s)
{
    static const uint32_t effort[] = {[STRATEGY_NAIVE] = 1,
                                      [STRATEGY_WINDOWS] = 2,
                                      [STRATEGY_FILTERED_WINDOWS] = 3,
                                      [STRATEGY_SCOPES] = 4,
                                      [STRATEGY_PARTITIONED_WINDOWS] = 5};

    return s == STRATEGY_WINDOWS && !p->naive.known ? 0 : effort[s];
}

/* What an option ranks by. Where naive is not known it may be as fast as inside the reach, and so
 * may windows of which nothing is known. */
static double rank_ns(const struct planner *p, enum strategy s)
{
    const struct costing *c = &p->costing;

    if (p->costs[s].known)
        return p->costs[s].ns;
    if (s == STRATEGY_NAIVE || s == STRATEGY_WINDOWS)
        return IS_KNOWN(c->access)
                   ? fmax(fmax(c->access.v + (c->local ? c->read_ns : 0), c->look_ns), c->host_ns)
                   : 0;
    return INFINITY;
}

static int next_best(const struct planner *p, const bool *taken)
{
    double fastest = INFINITY;
    int best = -1;

    for (int s = 0; s < STRATEGY_COUNT; s++) {
        if (!taken[s] && p->out->options[s].possible)
            fastest = fmin(fastest, rank_ns(p, (enum strategy)s));
    }
    for (int s = 0; s < STRATEGY_COUNT; s++) {
        if (taken[s] || !p->out->options[s].possible ||
            rank_ns(p, (enum strategy)s) > fastest * (1 + STRATEGY_WORTH))
            continue;
        if (best < 0 || effort_of(p, (enum strategy)s) < effort_of(p, (enum strategy)best))
            best = s;
    }
    return best;
}

static void rank(struct planner *p)
{
    struct strategy_option ranked[STRATEGY_COUNT];
    bool taken[STRATEGY_COUNT] = {false};
    int count = 0;
    int s;

    while ((s = next_best(p, taken)) >= 0) {
        ranked[count++] = p->out->options[s];
        taken[s] = true;
    }
    for (s = 0; s < STRATEGY_COUNT; s++) {
        if (!taken[s])
            ranked[count++] = p->out->options[s];
    }
    memcpy(p->out->options, ranked, sizeof(ranked));
}

/* ---- the answer ---- */

static void begin_answer(struct planner *p)
{
    struct strategy_answer *out = p->out;
    const struct limit *limit = &p->costing.limit;

    memcpy(out->fingerprint_id, limit->fingerprint_id, sizeof(out->fingerprint_id));
    out->basis = p->costing.price.basis;
    out->inside_gbps = p->costing.price.inside_ns;
    if (IS_KNOWN(out->inside_gbps))
        out->inside_gbps.v = out->transaction_bytes / out->inside_gbps.v;
    for (int s = 0; s < STRATEGY_COUNT; s++) {
        out->options[s] =
            (struct strategy_option){.strategy = (enum strategy)s,
                                     .gbps = UNKNOWN(REASON_NOT_APPLICABLE),
                                     .times_naive = UNKNOWN(REASON_NOT_APPLICABLE),
                                     .extra_bytes_total = UNKNOWN(REASON_NOT_APPLICABLE)};
    }
}

enum status strategy_plan(const struct fingerprint *fp, const struct job_request *job,
                          struct strategy_answer *out, struct err *err)
{
    struct planner p = {.job = job, .out = out, .no_windows = {.status = STATUS_OK}};
    struct limit limit;
    struct err no_room = {.status = STATUS_OK};
    enum status s = limit_read(fp, job->bytes, job->fingerprint_id, &limit, err);

    memset(out, 0, sizeof(*out));
    if (s == STATUS_OK)
        s = costing_check(job, err);
    if (s == STATUS_OK)
        s = strategy_sizes(job->element_bytes, job->transaction_bytes, &out->element_bytes,
                           &out->transaction_bytes, err);
    if (s != STATUS_OK)
        return s;
    /* A reserve beyond the reach leaves nothing of it: that is an answer. */
    if (limit_reserve(&limit, job->reserve_bytes, &no_room) == STATUS_INVALID_ARGUMENT)
        return err_set_field(err, no_room.status, no_room.field, "%s", no_room.text);
    if (no_room.status != STATUS_OK)
        limit.usable_bytes = 0;
    costing_begin(fp, job, &limit, out->transaction_bytes, &p.costing);
    begin_answer(&p);
    p.inside = !limit.seen || job->bytes <= limit.usable_bytes;
    p.naive = cost_naive(&p.costing);
    ask_windows(&p, fp);
    if (p.no_windows.status == STATUS_INVALID_ARGUMENT)
        return err_set_field(err, p.no_windows.status, p.no_windows.field, "%s", p.no_windows.text);
    add_naive(&p);
    add_scopes(&p);
    add_in_windows(&p, STRATEGY_WINDOWS, cost_windows);
    add_in_windows(&p, STRATEGY_FILTERED_WINDOWS, cost_filtered);
    add_in_windows(&p, STRATEGY_PARTITIONED_WINDOWS, cost_partitioned);
    out->has_placement = out->has_placement && !job->fixed;
    rank(&p);
    strategy_text_reason(&p.costing, p.inside, out);
    return STATUS_OK;
}
