/* whatif_place.c: the trace in the scopes and windows that the planner chooses for as many bytes.
 * A position of the plan is a byte of the regions of the trace, one behind the other. That skipping
 * an access costs nothing is assumed, as the planner does where a job does not say.
 */
#include "clients/lab/whatif_parts.h"
#include "planner/access_cost.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_PASSES = 1024 };

/* a->plan, asked for once; stays NULL where there is none. */
static enum status make_plan(struct asking *a, struct err *err)
{
    const struct job_request job = {.bytes = a->trace->bytes,
                                    .accesses = a->options->launch_accesses,
                                    .reserve_bytes = a->options->reserve_bytes};
    if (a->plan || a->no_plan.status != STATUS_OK)
        return STATUS_OK;
    a->plan = calloc(1, sizeof *a->plan);
    if (!a->plan)
        return err_set(err, STATUS_NO_MEMORY, "no memory for the plan");
    if (strategy_plan(a->fp, &job, a->plan, &a->no_plan) != STATUS_OK) {
        free(a->plan);
        a->plan = NULL;
    }
    return STATUS_OK;
}

static const struct strategy_option *option_of(const struct asking *a, enum strategy strategy)
{
    uint32_t i = 0;
    while (i + 1 < STRATEGY_COUNT && a->plan->options[i].strategy != strategy)
        i++;
    return &a->plan->options[i];
}

static const char *why_not(const struct asking *a, enum strategy strategy)
{
    return a->plan ? option_of(a, strategy)->why : a->no_plan.text;
}

/* What a strategy launches and waits more than the job does, for the whole trace. */
static double launches_ns(const struct asking *a, enum strategy strategy)
{
    const double more = option_of(a, strategy)->launch_ns - option_of(a, STRATEGY_NAIVE)->launch_ns;
    return fmax(more, 0) * (double)a->out->accesses;
}

static double memory_of(const struct asking *a, const struct stream *s, size_t i)
{
    return a->memory_ns[s->classes[i] & (STREAM_SHARED - 1)];
}

static uint64_t position_of(const struct asking *a, size_t i)
{
    return trace_position(a->trace, stream_address(&a->stream, i));
}

/* ---- scopes ---- */

struct passes {
    uint32_t count;
    size_t ends[MAX_PASSES];
    double memory_ns[MAX_PASSES];
    uint64_t walks[MAX_PASSES];
};

/* The accesses of each pass together, in their order. */
static void filter(const struct asking *a, struct passes *p, uint16_t *pass_of, struct stream *out)
{
    const struct stream *s = &a->stream;
    for (size_t i = 0; i < s->count; i++) {
        const uint64_t pass = position_of(a, i) / a->plan->scope_bytes;
        pass_of[i] = (uint16_t)(pass < p->count ? pass : p->count - 1);
        p->memory_ns[pass_of[i]] += memory_of(a, s, i);
    }
    for (uint32_t pass = 0; pass < p->count; pass++) {
        for (size_t i = 0; i < s->count; i++) {
            if (pass_of[i] == pass)
                stream_append(out, s->units[i], s->sms[i], s->classes[i]);
        }
        p->ends[pass] = out->count;
    }
}

/* Passes come one after the other, so their times add up. */
static void add_scopes(struct asking *a, const struct passes *p)
{
    double ns = 0;
    double ns_at_worst = 0;
    double walks = 0;
    const double each = a->read_ns + a->add_ns * (p->count - 1) / p->count;
    for (uint32_t k = 0; k < p->count; k++) {
        const double memory_ns = p->memory_ns[k] + each;
        ns += whatif_time(a, memory_ns, (double)p->walks[k], whatif_told(a));
        ns_at_worst += whatif_time(a, memory_ns, (double)p->walks[k], whatif_worst(a));
        walks += (double)p->walks[k];
    }
    struct whatif_row *r =
        whatif_add(a, WHATIF_SCOPES, p->count, a->all_memory_ns + each * p->count, walks);
    const double launches = launches_ns(a, STRATEGY_SCOPES);
    whatif_set_times(a, r, ns + launches, ns_at_worst + launches);
    (void)snprintf(r->note, sizeof r->note,
                   "assuming that a pass skips the others' accesses for "
                   "nothing");
}

enum status whatif_scopes(struct asking *a, struct err *err)
{
    struct passes *p = NULL;
    uint16_t *pass_of = NULL;
    struct stream filtered = {0};
    enum status s = make_plan(a, err);
    if (s != STATUS_OK)
        return s;
    if (!a->plan || a->plan->scope_bytes == 0 || a->plan->passes > MAX_PASSES) {
        (void)whatif_add_unknown(a, WHATIF_SCOPES, why_not(a, STRATEGY_SCOPES));
        return STATUS_OK;
    }
    p = calloc(1, sizeof *p);
    pass_of = malloc(a->stream.count * sizeof *pass_of);
    s = p && pass_of ? stream_new(&a->stream, &filtered, err)
                     : err_set(err, STATUS_NO_MEMORY, "no memory for the passes");
    if (p && pass_of && s == STATUS_OK) {
        p->count = (uint32_t)a->plan->passes;
        filter(a, p, pass_of, &filtered);
        s = stream_count(&filtered, &a->machine, whatif_flight(a), a->options->cold, p->ends,
                         p->count, p->walks, err);
    }
    if (p && s == STATUS_OK)
        add_scopes(a, p);
    stream_free(&filtered);
    free(pass_of);
    free(p);
    return s;
}

/* ---- windows ---- */

struct dealt {
    double memory_ns[PLACEMENT_MAX_WINDOWS];
    uint64_t accesses[PLACEMENT_MAX_WINDOWS];
    uint32_t sm_count[PLACEMENT_MAX_WINDOWS];
    uint16_t sms[PLACEMENT_MAX_WINDOWS][REACH_MAX_SMS]; /* positions */
};

static uint32_t window_of(const struct placement_answer *w, uint64_t position)
{
    uint32_t i = 0;
    while (i + 1 < w->window_count &&
           position >= w->windows[i].first_byte + w->windows[i].length_bytes)
        i++;
    return i;
}

/* Each access goes to the SMs of its window in turn, STREAM_PIECE at a time. */
static void deal_to_windows(const struct asking *a, struct dealt *d, struct stream *out)
{
    const struct placement_answer *w = &a->plan->placement;
    const struct stream *s = &a->stream;
    for (uint32_t i = 0; i < a->machine.sm_count; i++) {
        const uint32_t id = a->machine.sm_ids[i];
        const int16_t window = id < w->sm_slots ? w->window_of_sm[id] : (int16_t)-1;
        if (window >= 0)
            d->sms[window][d->sm_count[window]++] = (uint16_t)i;
    }
    for (size_t i = 0; i < s->count; i++) {
        const uint32_t window = window_of(w, position_of(a, i));
        const uint32_t count = d->sm_count[window] > 0 ? d->sm_count[window] : 1;
        const uint64_t turn = d->accesses[window]++ / STREAM_PIECE % count;
        d->memory_ns[window] += memory_of(a, s, i);
        stream_append(out, s->units[i], d->sms[window][turn], s->classes[i]);
    }
}

/* By how much the busiest window has more than its share, that of its length. */
static double crowding(const struct asking *a, const struct dealt *d)
{
    const struct placement_answer *w = &a->plan->placement;
    double most = 0;
    for (uint32_t i = 0; i < w->window_count; i++) {
        const double share = (double)w->windows[i].length_bytes / (double)a->trace->bytes;
        most = fmax(most, d->memory_ns[i] / a->all_memory_ns / share);
    }
    return most * w->imbalance;
}

/* Measured, for the kind of access that most of the time goes to. */
static double slowdown(const struct asking *a)
{
    const struct reach_limit limit = {.observed = true,
                                      .reach_bytes = a->fp->windows.reach_bytes.v};
    uint32_t sectors = FINGERPRINT_CURVE_BYTES / TRACE_SECTOR_BYTES;
    struct access_cost cost;
    uint64_t most = 0;
    uint64_t lines[STREAM_KIND_CLASSES + 1] = {0};
    for (uint32_t i = 0; i < a->trace->record_count; i++) {
        const struct trace_record *r = &a->trace->records[i];
        lines[r->sectors] += r->line_count;
        if (lines[r->sectors] > most) {
            most = lines[r->sectors];
            sectors = r->sectors;
        }
    }
    access_cost_read(&a->fp->throughput, &limit, ACCESS_READ,
                     sectors * (uint32_t)TRACE_SECTOR_BYTES, &cost);
    return access_cost_by_group_slowdown(&cost, a->trace->bytes);
}

static void add_windows(struct asking *a, uint32_t count, double memory_ns, double walks)
{
    const double each = a->read_ns + a->add_ns * (count - 1);
    const double accesses = (double)a->out->accesses;
    const double launches = launches_ns(a, STRATEGY_FILTERED_WINDOWS);
    struct whatif_row *r = whatif_add(a, WHATIF_WINDOWS, count, memory_ns + each, walks);
    whatif_set_times(a, r, r->ns * accesses + launches, r->ns_at_worst * accesses + launches);
    (void)snprintf(r->note, sizeof r->note, "each SM does the accesses of its window");
}

enum status whatif_windows(struct asking *a, struct err *err)
{
    struct dealt *d = NULL;
    struct stream dealt = {0};
    uint64_t walks = 0;
    enum status s = make_plan(a, err);
    if (s != STATUS_OK)
        return s;
    if (!a->plan || !a->plan->has_placement) {
        (void)whatif_add_unknown(a, WHATIF_WINDOWS, why_not(a, STRATEGY_WINDOWS));
        return STATUS_OK;
    }
    d = calloc(1, sizeof *d);
    s = d ? stream_new(&a->stream, &dealt, err)
          : err_set(err, STATUS_NO_MEMORY, "no memory for the windows");
    if (d && s == STATUS_OK) {
        deal_to_windows(a, d, &dealt);
        s = stream_count(&dealt, &a->machine, whatif_flight(a), a->options->cold, &dealt.count, 1,
                         &walks, err);
    }
    const uint32_t count = a->plan->placement.window_count;
    if (d && s == STATUS_OK)
        add_windows(a, count, a->all_memory_ns * crowding(a, d) * slowdown(a), (double)walks);
    stream_free(&dealt);
    free(d);
    return s;
}
