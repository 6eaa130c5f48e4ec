/* strategy_plan.c: requests windows and scopes, computes the cost of every strategy, ranks the
 * options, and writes the reason.
 *
 * The next option in the order is always the simplest of the remaining options that are within
 * three percent of the fastest one. Predictions have an error of three percent, and a job should
 * not be restructured without a gain.
 */
#include "planner/strategy.h"

#include "base/format_size.h"
#include "planner/next_step.h"
#include "planner/params.h"
#include "planner/reach_limit.h"
#include "planner/strategy_cost.h"
#include "planner/strategy_sides.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { DEFAULT_ELEMENT = 128, FITS_TEXT_BYTES = 160 };

/* ---- the request ---- */

enum status strategy_sizes(uint32_t element_bytes, uint32_t transaction_bytes,
                           uint32_t *out_element, uint32_t *out_transaction, struct err *err)
{
    const uint32_t element = element_bytes > 0 ? element_bytes : DEFAULT_ELEMENT;
    const char *field = element > STRATEGY_MAX_TRANSACTION ? "element" : "transaction";
    const uint64_t most = STRATEGY_MAX_TRANSACTION;
    uint64_t touched;

    if (element > STRATEGY_MAX_TRANSACTION || transaction_bytes > STRATEGY_MAX_TRANSACTION)
        return err_set_field(err, STATUS_INVALID_ARGUMENT, field,
                             "%s must be the size of one access, at most %d bytes", field,
                             STRATEGY_MAX_TRANSACTION);
    *out_element = element;
    *out_transaction = transaction_bytes;
    if (transaction_bytes == 0) {
        touched = access_cost_touched_bytes(element, ACCESS_COST_SECTOR_BYTES);
        *out_transaction = (uint32_t)(touched < most ? touched : most);
    }
    return STATUS_OK;
}

static enum status lay_out(const struct job_request *job, struct strategy_answer *out,
                           struct err *err)
{
    const struct job_allocation whole = {.bytes = job->bytes,
                                         .touches = 1,
                                         .element_bytes = job->element_bytes,
                                         .transaction_bytes = job->transaction_bytes};
    const struct job_allocation *of = job->allocation_count > 0 ? job->allocations : &whole;
    enum status s = STATUS_OK;

    out->layout.count = job->allocation_count > 0 ? job->allocation_count : 1;
    for (uint32_t i = 0; s == STATUS_OK && i < out->layout.count; i++) {
        struct strategy_allocation *a = &out->allocations[i];
        struct layout_allocation *l = &out->layout.of[i];
        s = strategy_sizes(of[i].element_bytes, of[i].transaction_bytes, &a->element_bytes,
                           &a->transaction_bytes, err);
        *l = (struct layout_allocation){.bytes = of[i].bytes, .touches = of[i].touches};
        l->row_bytes = job->allocation_count == 0    ? 1
                       : of[i].granularity_bytes > 0 ? of[i].granularity_bytes
                                                     : a->element_bytes;
        out->item_bytes += l->touches * a->transaction_bytes;
    }
    return s;
}

static uint64_t bytes_of(const struct job_request *job)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < job->allocation_count; i++)
        sum += job->allocations[i].bytes;
    return job->allocation_count > 0 ? sum : job->bytes;
}

static enum status check_allocations(const struct job_request *job, struct err *err)
{
    bool touched = job->allocation_count == 0;

    if (job->allocation_count > LAYOUT_MAX)
        return err_set_field(err, STATUS_INVALID_ARGUMENT, "bytes",
                             "%u allocations are more than the %d supported", job->allocation_count,
                             LAYOUT_MAX);
    for (uint32_t i = 0; i < job->allocation_count; i++) {
        const struct job_allocation *a = &job->allocations[i];
        if (a->bytes == 0 || a->bytes > PLACEMENT_MAX_BYTES)
            return err_set_field(err, STATUS_INVALID_ARGUMENT, "bytes",
                                 "bytes of an allocation must be from 1 to 1 PiB");
        if (a->granularity_bytes > PLACEMENT_MAX_BYTES)
            return err_set_field(err, STATUS_INVALID_ARGUMENT, "granularity",
                                 "granularity is more than 1 PiB: check the number");
        touched = touched || a->touches > 0;
    }
    return touched ? STATUS_OK
                   : err_set_field(err, STATUS_INVALID_ARGUMENT, "touches",
                                   "touches is 0 for every allocation: an item must touch one");
}

/* ---- the options ---- */

struct planner {
    const struct job_request *job;
    struct costing costing;
    struct strategy_answer *out;
    uint64_t alignment_bytes; /* margin for the bounds of allocations (layout_alignment_bytes) */
    bool in_reach;            /* the bytes of the job fit the reach, or there is no limit */
    struct cost naive;        /* cost of naive, with which all other options are compared */
    struct err no_windows;    /* error of the placement; STATUS_OK if there is a placement */
    struct cost costs[STRATEGY_COUNT];
    struct maybe_f64 naive_gbps;
};

/* ---- words ---- */

/* Returns the bottleneck as a part of a sentence: ", limited by translation", or "" if it is
 * unknown. */
static const char *bound_text(enum bound b)
{
    static const char *const texts[] = {[BOUND_UNKNOWN] = "",
                                        [BOUND_MEMORY] = ", limited by memory",
                                        [BOUND_TRANSLATION] = ", limited by translation",
                                        [BOUND_INPUT] = ", limited by its input",
                                        [BOUND_SCAN] = ", limited by the scan of positions",
                                        [BOUND_LAUNCH] = ", limited by launches"};

    return texts[b];
}

static void fits_text(const struct costing *c, char *out)
{
    char asked[FORMAT_SIZE_BYTES];
    char other[FORMAT_SIZE_BYTES];

    if (!c->limit.observed) {
        format_size(c->fp->conditions.range_bytes, other);
        snprintf(out, FITS_TEXT_BYTES,
                 "no translation limit that costs speed was observable up to the %s probed", other);
        return;
    }
    format_size_pair(c->bytes, c->limit.usable_bytes, asked, other);
    snprintf(out, FITS_TEXT_BYTES, "%s fit the %s that an SM group reaches without a miss%s", asked,
             other, c->job->reserve_bytes > 0 ? " beside the reserve" : "");
}

__attribute__((format(printf, 2, 3))) static void write_why(struct strategy_option *o,
                                                            const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(o->why, sizeof(o->why), format, args);
    va_end(args);
}

/* Returns the end of a sentence about a scan. */
static const char *free_scan_text(const struct costing *c)
{
    return c->scan_ns > 0 ? "" : ", assuming the scan costs nothing";
}

static void set_possible(struct planner *p, enum strategy s, const struct cost *cost,
                         uint64_t readings)
{
    struct strategy_option *o = &p->out->options[s]; /* not ranked yet */
    const double extra = cost_extra_bytes(&p->costing, s, readings);

    p->costs[s] = *cost;
    o->possible = true;
    o->bound = cost->bound;
    o->passes = 1;
    o->extra_bytes = extra;
    o->launch_ns = cost->launch_ns;
    o->extra_bytes_total = p->job->accesses > 0 ? KNOWN_F64(extra * (double)p->job->accesses)
                                                : UNKNOWN_F64(REASON_NOT_APPLICABLE);
    o->gbps = UNKNOWN_F64(cost->why);
    if (cost->known && cost->ns > 0)
        o->gbps = KNOWN_F64(p->out->item_bytes / cost->ns);
    o->times_naive = UNKNOWN_F64(p->naive.known ? cost->why : p->naive.why);
    if (cost->known && p->naive.known)
        o->times_naive = KNOWN_F64(p->naive.ns / cost->ns);
}

/* Returns the speed of naive if this share of the memory is scattered. */
static struct maybe_f64 naive_of(struct planner *p, double scattered)
{
    struct cost cost;

    costing_scatter(&p->costing, scattered);
    cost = cost_naive(&p->costing);
    costing_scatter(&p->costing, p->job->scattered);
    return cost.known ? KNOWN_F64(p->out->item_bytes / cost.ns) : UNKNOWN_F64(cost.why);
}

/* Writes "; 390 GB/s if its memory is physically scattered", or "" if scattered memory is not
 * slower. Returns `out`. */
static const char *scattered_text(const struct planner *p, char *out)
{
    const struct strategy_answer *answer = p->out;
    char rate[FORMAT_RATE_BYTES];

    out[0] = '\0';
    if (p->job->scattered > 0)
        snprintf(out, FITS_TEXT_BYTES, "; %.0f%% of its memory is physically scattered",
                 p->job->scattered * 100);
    else if (IS_KNOWN(answer->naive_scattered_gbps) &&
             answer->naive_scattered_gbps.v < answer->naive_contiguous_gbps.v)
        snprintf(out, FITS_TEXT_BYTES, "; %s if its memory is physically scattered",
                 format_rate(answer->naive_scattered_gbps, rate));
    return out;
}

static void add_naive(struct planner *p)
{
    struct strategy_option *o = &p->out->options[STRATEGY_NAIVE];
    char rate[FORMAT_RATE_BYTES];
    char in_reach[FORMAT_RATE_BYTES];
    char fits[FITS_TEXT_BYTES];

    set_possible(p, STRATEGY_NAIVE, &p->naive, 1);
    format_rate(o->gbps, rate);
    if (p->in_reach) {
        fits_text(&p->costing, fits);
        write_why(o, "One pass, any SM anywhere: %s%s; %s%s.", rate, bound_text(o->bound), fits,
                  p->costing.cached
                      ? "; caches keep a part of them, so translation is not the limit"
                      : "");
    } else {
        write_why(o, "One pass, any SM anywhere: %s%s; such accesses within the reach: %s%s.", rate,
                  bound_text(o->bound), format_rate(p->out->in_reach_gbps, in_reach),
                  scattered_text(p, fits));
    }
}

static void not_needed(const struct planner *p, struct strategy_option *o)
{
    char fits[FITS_TEXT_BYTES];

    fits_text(&p->costing, fits);
    write_why(o, "Not needed, because the answer would equal naive: %s.", fits);
}

static void not_twice(struct strategy_option *o)
{
    write_why(o, "The input of the job cannot be read again.");
}

static void add_scopes(struct planner *p)
{
    struct strategy_option *o = &p->out->options[STRATEGY_SCOPES];
    char scope[FORMAT_SIZE_BYTES];
    char rate[FORMAT_RATE_BYTES];
    struct scope_cost s;

    if (p->in_reach) {
        not_needed(p, o);
    } else if (p->job->single_pass) {
        not_twice(o);
    } else if (!cost_best_scopes(&p->costing, &s)) {
        write_why(o,
                  "No level of the TLB has room, beside the reserve of %s, for scopes that the job "
                  "does not fit as a whole.",
                  format_size(p->job->reserve_bytes, scope));
    } else {
        set_possible(p, STRATEGY_SCOPES, &s.cost, s.passes);
        o->passes = p->out->passes = s.passes;
        o->scope_bytes = p->out->scope_bytes = s.scope_bytes;
        write_why(o, "%llu passes over at most %s each: %s%s; each pass scans every position%s.",
                  (unsigned long long)s.passes, format_size(s.scope_bytes, scope),
                  format_rate(o->gbps, rate), bound_text(o->bound), free_scan_text(&p->costing));
    }
}

static void ask_windows(struct planner *p, const struct fingerprint *fp)
{
    const bool several = p->job->allocation_count > 0; /* their bounds are at rows */
    struct placement_request r = {.bytes = p->costing.bytes,
                                  .windows = p->job->windows,
                                  .granularity_bytes = several ? 0 : p->job->granularity_bytes,
                                  .reserve_bytes = p->job->reserve_bytes,
                                  .alignment_bytes = p->alignment_bytes,
                                  .fingerprint_id = p->out->fingerprint_id};

    if (placement_plan(fp, &r, &p->out->placement, &p->no_windows) != STATUS_OK)
        return;
    p->no_windows.status = STATUS_OK;
    p->out->has_placement = p->out->placement.window_count > 1;
}

static void windows_text(const struct planner *p, struct strategy_option *o)
{
    const struct placement_answer *w = &p->out->placement;
    const bool filtered = o->strategy == STRATEGY_FILTERED_WINDOWS;
    char longest_text[FORMAT_SIZE_BYTES];
    char rate[FORMAT_RATE_BYTES];
    char how[96] = "each SM draws work of its own window";
    uint64_t longest = 0;

    for (uint32_t i = 0; i < w->window_count; i++)
        longest = w->windows[i].length_bytes > longest ? w->windows[i].length_bytes : longest;
    if (filtered)
        snprintf(how, sizeof(how), "the SMs of each window scan all the input and keep their part");
    if (o->strategy == STRATEGY_PARTITIONED_WINDOWS)
        snprintf(how, sizeof(how), "the input is partitioned first, %.3g extra bytes per access",
                 o->extra_bytes);
    write_why(o, "%u windows of whole groups, at most %s each: %s%s; %s%s.", w->window_count,
              format_size(longest, longest_text), format_rate(o->gbps, rate), bound_text(o->bound),
              how, filtered ? free_scan_text(&p->costing) : "");
}

static void no_windows_text(const struct planner *p, struct strategy_option *o)
{
    const struct costing *c = &p->costing;
    char asked[FORMAT_SIZE_BYTES];
    char usable[FORMAT_SIZE_BYTES];

    if (p->in_reach) {
        not_needed(p, o);
    } else if (p->no_windows.status != STATUS_OK ||
               p->out->placement.advice != ADVICE_NOT_ENOUGH_GROUPS) {
        write_why(o, "No windows: %.*s.", (int)sizeof(o->why) - 16, p->no_windows.text);
    } else {
        format_size_pair(c->bytes, c->limit.usable_bytes, asked, usable);
        write_why(o,
                  "No windows: %s need %llu or more of at most %s, and there are %u SM groups to "
                  "work in them.",
                  asked, (unsigned long long)((c->bytes - 1) / c->limit.usable_bytes + 1), usable,
                  c->fp->topology.partition.group_count);
    }
}

typedef struct cost windows_cost_fn(const struct costing *c, const struct placement_answer *w);

static void add_in_windows(struct planner *p, enum strategy s, windows_cost_fn *cost_of)
{
    struct strategy_option *o = &p->out->options[s];
    struct cost cost;

    if (!p->out->has_placement) {
        no_windows_text(p, o);
    } else if (p->job->no_sm_binding) {
        write_why(o, "The work of the job cannot be bound to SMs.");
    } else if (s == STRATEGY_WINDOWS && p->job->input_bytes > 0) {
        write_why(
            o, "Positions come from the input, so an SM cannot draw work for its own window only.");
    } else if (s == STRATEGY_FILTERED_WINDOWS && p->job->single_pass) {
        not_twice(o);
    } else {
        cost = cost_of(&p->costing, &p->out->placement);
        set_possible(p, s, &cost, p->out->placement.window_count);
        o->windows = p->out->placement.window_count;
        windows_text(p, o);
    }
}

static void add_sides(struct planner *p)
{
    struct strategy_option *o = &p->out->options[STRATEGY_SIDES];
    struct sides_cost sides;

    sides_cost_read(&p->costing, p->in_reach, &sides);
    if (sides.possible)
        set_possible(p, STRATEGY_SIDES, &sides.cost, 2);
    sides_text(&p->costing, &sides, o->gbps, o->why, sizeof(o->why));
}

/* ---- the order ---- */

/* Returns the rank of a strategy in the order of simplicity, as in strategy.h. Filtered windows
 * come before scopes: they need one launch instead of several, and were never measured to be
 * slower. */
static uint32_t effort_of(const struct planner *p, enum strategy s)
{
    static const uint32_t effort[] = {[STRATEGY_NAIVE] = 1,  [STRATEGY_WINDOWS] = 2,
                                      [STRATEGY_SIDES] = 3,  [STRATEGY_FILTERED_WINDOWS] = 4,
                                      [STRATEGY_SCOPES] = 5, [STRATEGY_PARTITIONED_WINDOWS] = 6};

    return s == STRATEGY_WINDOWS && !p->naive.known ? 0 : effort[s];
}

static double launches_ns(const struct planner *p, enum strategy s)
{
    return cost_steps(&p->costing, s == STRATEGY_NAIVE ? STEPS_NAIVE : STEPS_WINDOWS);
}

/* Returns the cost that ranks an option. If the cost of naive or of windows is unknown, the cost
 * within the reach is used. */
static double rank_ns(const struct planner *p, enum strategy s)
{
    const struct costing *c = &p->costing;

    if (p->costs[s].known)
        return p->costs[s].ns;
    if (s != STRATEGY_NAIVE && s != STRATEGY_WINDOWS)
        return INFINITY;
    if (!IS_KNOWN(c->access))
        return launches_ns(p, s);
    return fmax(fmax(c->access.v + (c->local ? c->read_ns : 0), c->scan_ns), c->host_ns) +
           launches_ns(p, s);
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

/* ---- the reason ---- */

static void nothing_to_do(const struct planner *p)
{
    struct strategy_answer *out = p->out;
    const struct strategy_option *next = &out->options[1];
    char fits[FITS_TEXT_BYTES];
    char naive[FORMAT_RATE_BYTES];
    char other[FORMAT_RATE_BYTES];

    format_rate(out->options[0].gbps, naive);
    if (p->in_reach) {
        fits_text(&p->costing, fits);
        snprintf(out->reason, sizeof(out->reason),
                 "No strategy is worth its cost: %s, and any SM may work anywhere, at %s "
                 "(fingerprint %s).",
                 fits, naive, out->fingerprint_id);
    } else if (!next->possible) {
        snprintf(out->reason, sizeof(out->reason),
                 "No other strategy is possible: this job and this fingerprint allow only naive, "
                 "at %s (fingerprint %s).",
                 naive, out->fingerprint_id);
    } else if (!IS_KNOWN(out->options[0].gbps)) {
        snprintf(out->reason, sizeof(out->reason),
                 "The throughput of naive is %s, so no strategy that costs passes, scans or bytes "
                 "can be recommended (fingerprint %s).",
                 naive, out->fingerprint_id);
    } else {
        snprintf(out->reason, sizeof(out->reason),
                 "No strategy is worth its cost: naive is predicted to reach %s, the best of the "
                 "others, "
                 "%s, %s, and 3%% is the error of a prediction (fingerprint %s).",
                 naive, strategy_name(next->strategy), format_rate(next->gbps, other),
                 out->fingerprint_id);
    }
}

static void write_reason(const struct planner *p)
{
    struct strategy_answer *out = p->out;
    const struct strategy_option *first = &out->options[0];
    char best[FORMAT_RATE_BYTES];
    char naive[FORMAT_RATE_BYTES];
    char next[FORMAT_RATE_BYTES + 64] = "";
    char times[48] = "";
    char rate[FORMAT_RATE_BYTES];

    if (first->strategy == STRATEGY_NAIVE) {
        nothing_to_do(p);
        return;
    }
    if (!IS_KNOWN(first->gbps)) {
        snprintf(out->reason, sizeof(out->reason),
                 "%s: such accesses are %s, and windows cost nothing more than naive (fingerprint "
                 "%s).",
                 strategy_name(first->strategy), format_rate(first->gbps, best),
                 out->fingerprint_id);
        return;
    }
    if (IS_KNOWN(first->times_naive))
        snprintf(times, sizeof(times), ", %.*f times as much", first->times_naive.v < 2 ? 2 : 1,
                 first->times_naive.v);
    if (out->options[1].possible && out->options[1].strategy != STRATEGY_NAIVE)
        snprintf(next, sizeof(next), "; next best, %s: %s", strategy_name(out->options[1].strategy),
                 format_rate(out->options[1].gbps, rate));
    snprintf(out->reason, sizeof(out->reason), "%s: %s predicted, naive %s%s%s (fingerprint %s).",
             strategy_name(first->strategy), format_rate(first->gbps, best),
             format_rate(p->naive_gbps, naive), times, next, out->fingerprint_id);
}

/* ---- the answer ---- */

static void begin_answer(struct planner *p)
{
    struct strategy_answer *out = p->out;
    const struct reach_limit *limit = &p->costing.limit;

    memcpy(out->fingerprint_id, limit->fingerprint_id, sizeof(out->fingerprint_id));
    for (int s = 0; s < STRATEGY_COUNT; s++) {
        out->options[s] =
            (struct strategy_option){.strategy = (enum strategy)s,
                                     .gbps = UNKNOWN(REASON_NOT_APPLICABLE),
                                     .times_naive = UNKNOWN(REASON_NOT_APPLICABLE),
                                     .extra_bytes_total = UNKNOWN(REASON_NOT_APPLICABLE)};
    }
}

static enum status check_numbers(const struct job_request *job, struct err *err)
{
    const enum status s = param_check(PLANNER_PLAN, job, err);

    if (s == STATUS_OK && job->input_gbps > 0 && !(job->input_bytes > 0))
        return err_set_field(err, STATUS_INVALID_ARGUMENT, "input_gbps",
                             "input_gbps needs input_bytes: give the bytes of input per access");
    return s;
}

/* Checks the request, reads the limit and the costs, and initializes the answer. */
static enum status begin(struct planner *p, const struct fingerprint *fp, struct err *err)
{
    const struct job_request *job = p->job;
    struct strategy_answer *out = p->out;
    struct reach_limit limit;
    struct err no_room = {.status = STATUS_OK};
    enum status s = check_allocations(job, err);

    memset(out, 0, sizeof(*out));
    if (s == STATUS_OK)
        s = reach_limit_read(fp, bytes_of(job), job->fingerprint_id, &limit, err);
    if (s == STATUS_OK)
        s = check_numbers(job, err);
    if (s == STATUS_OK)
        s = lay_out(job, out, err);
    if (s != STATUS_OK)
        return s;
    p->alignment_bytes = layout_alignment_bytes(&out->layout, limit.entry_bytes);
    /* If the reserve or the margin exceeds the reach, no usable bytes remain, which is a result and
     * not an error. */
    if (reach_limit_reserve(&limit, job->reserve_bytes, &no_room) == STATUS_INVALID_ARGUMENT)
        return err_set_field(err, no_room.status, no_room.field, "%s", no_room.text);
    if (no_room.status != STATUS_OK ||
        reach_limit_alignment(&limit, p->alignment_bytes, &no_room) != STATUS_OK)
        limit.usable_bytes = 0;
    costing_begin(fp, job, &limit, out, &p->costing);
    begin_answer(p);
    p->in_reach = !limit.observed || p->costing.bytes <= limit.usable_bytes;
    return STATUS_OK;
}

enum status strategy_plan(const struct fingerprint *fp, const struct job_request *job,
                          struct strategy_answer *out, struct err *err)
{
    struct planner p = {.job = job, .out = out, .no_windows = {.status = STATUS_OK}};
    enum status s = begin(&p, fp, err);

    if (s != STATUS_OK)
        return s;
    p.naive = cost_naive(&p.costing);
    out->naive_contiguous_gbps = naive_of(&p, 0);
    out->naive_scattered_gbps = naive_of(&p, 1);
    ask_windows(&p, fp);
    if (p.no_windows.status == STATUS_INVALID_ARGUMENT)
        return err_set_field(err, p.no_windows.status, p.no_windows.field, "%s", p.no_windows.text);
    add_naive(&p);
    add_scopes(&p);
    add_in_windows(&p, STRATEGY_WINDOWS, cost_windows);
    add_in_windows(&p, STRATEGY_FILTERED_WINDOWS, cost_filtered);
    add_in_windows(&p, STRATEGY_PARTITIONED_WINDOWS, cost_partitioned);
    add_sides(&p);
    out->has_placement = out->has_placement && !job->no_sm_binding;
    p.naive_gbps = out->options[STRATEGY_NAIVE].gbps;
    rank(&p);
    write_reason(&p);
    next_step_append(fp, out->options[0].gbps, out->reason, sizeof(out->reason));
    return STATUS_OK;
}
