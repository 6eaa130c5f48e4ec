/* whatif_place.c: see whatif_place.h. The plan is for an allocation as large as all regions of the
 * trace together. A position in it is a byte of these regions, in order. Skipping an access costs
 * nothing. The planner assumes the same if a job does not give its scan speed.
 */
#include "clients/lab/whatif/whatif_place.h"

#include "clients/lab/whatif/stream_walks.h"
#include "clients/lab/whatif/whatif_rows.h"
#include "planner/access_cost.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_PASSES = 1024 };

/* Sets c->plan once. It stays NULL if the planner has no plan. */
static enum status make_plan(struct whatif_context *c, struct err *err)
{
    const struct job_request job = {.bytes = c->trace->bytes,
                                    .fingerprint_id = c->shared->fingerprint_id,
                                    .accesses = c->options->launch_accesses,
                                    .reserve_bytes = c->options->reserve_bytes};
    if (c->plan || c->no_plan.status != STATUS_OK)
        return STATUS_OK;
    c->plan = calloc(1, sizeof *c->plan);
    if (!c->plan)
        return err_set(err, STATUS_NO_MEMORY, "cannot allocate the plan: out of memory");
    if (strategy_plan(c->fp, &job, c->plan, &c->no_plan) != STATUS_OK) {
        free(c->plan);
        c->plan = NULL;
    }
    return STATUS_OK;
}

static const struct strategy_option *find_option(const struct whatif_context *c,
                                                 enum strategy strategy)
{
    uint32_t i = 0;
    while (i + 1 < STRATEGY_COUNT && c->plan->options[i].strategy != strategy)
        i++;
    return &c->plan->options[i];
}

static const char *missing_reason(const struct whatif_context *c, enum strategy strategy)
{
    return c->plan ? find_option(c, strategy)->why : c->no_plan.text;
}

/* Returns the time of the launches and waits that a strategy adds to the job, for all accesses. */
static double launches_ns(const struct whatif_context *c, enum strategy strategy)
{
    const double more =
        find_option(c, strategy)->launch_ns - find_option(c, STRATEGY_NAIVE)->launch_ns;
    return fmax(more, 0) * (double)c->out->accesses;
}

static double access_memory_ns(const struct whatif_context *c, const struct stream *s, size_t i)
{
    return c->memory_ns[s->classes[i] & (STREAM_SHARED - 1)];
}

static uint64_t access_position(const struct whatif_context *c, size_t i)
{
    return trace_position(c->trace, stream_address(&c->stream, i));
}

/* ---- scopes ---- */

struct passes {
    uint32_t count;
    size_t ends[MAX_PASSES];
    double memory_ns[MAX_PASSES];
    uint64_t walks[MAX_PASSES];
};

/* Appends the accesses pass by pass. The accesses of a pass keep their order. */
static void filter_by_pass(const struct whatif_context *c, struct passes *p, uint16_t *pass_of,
                           struct stream *out)
{
    const struct stream *s = &c->stream;
    for (size_t i = 0; i < s->count; i++) {
        const uint64_t pass = access_position(c, i) / c->plan->scope_bytes;
        pass_of[i] = (uint16_t)(pass < p->count ? pass : p->count - 1);
        p->memory_ns[pass_of[i]] += access_memory_ns(c, s, i);
    }
    for (uint32_t pass = 0; pass < p->count; pass++) {
        for (size_t i = 0; i < s->count; i++) {
            if (pass_of[i] == pass)
                stream_append(out, s->units[i], s->sms[i], s->classes[i]);
        }
        p->ends[pass] = out->count;
    }
}

/* Passes run one after another, so their times add up. */
static void add_scopes_row(struct whatif_context *c, const struct passes *p)
{
    double ns = 0;
    double ns_at_worst = 0;
    double walks = 0;
    const double each = c->read_ns + c->add_ns * (p->count - 1) / p->count;
    for (uint32_t k = 0; k < p->count; k++) {
        const double memory_ns = p->memory_ns[k] + each;
        ns += whatif_time_ns(c, memory_ns, (double)p->walks[k], whatif_scattered_share(c));
        ns_at_worst +=
            whatif_time_ns(c, memory_ns, (double)p->walks[k], whatif_worst_scattered_share(c));
        walks += (double)p->walks[k];
    }
    struct whatif_row *r =
        whatif_add_row(c, WHATIF_SCOPES, p->count, c->all_memory_ns + each * p->count, walks);
    const double launches = launches_ns(c, STRATEGY_SCOPES);
    whatif_set_times(c, r, ns + launches, ns_at_worst + launches);
    (void)snprintf(r->note, sizeof r->note,
                   "assumes that skipping the accesses of other passes costs nothing");
}

enum status whatif_add_scopes(struct whatif_context *c, struct err *err)
{
    struct passes *p = NULL;
    uint16_t *pass_of = NULL;
    struct stream filtered = {0};
    enum status s = make_plan(c, err);
    if (s != STATUS_OK)
        return s;
    if (!c->plan || c->plan->scope_bytes == 0 || c->plan->passes > MAX_PASSES) {
        (void)whatif_add_unknown_row(c, WHATIF_SCOPES, missing_reason(c, STRATEGY_SCOPES));
        return STATUS_OK;
    }
    p = calloc(1, sizeof *p);
    pass_of = malloc(c->stream.count * sizeof *pass_of);
    s = p && pass_of ? stream_new(&c->stream, &filtered, err)
                     : err_set(err, STATUS_NO_MEMORY, "cannot allocate the passes: out of memory");
    if (p && pass_of && s == STATUS_OK) {
        p->count = (uint32_t)c->plan->passes;
        filter_by_pass(c, p, pass_of, &filtered);
        s = stream_walks_count(&filtered, &c->machine, whatif_miss_queue(c), c->options->cold,
                               p->ends, p->count, p->walks, err);
    }
    if (p && s == STATUS_OK)
        add_scopes_row(c, p);
    stream_free(&filtered);
    free(pass_of);
    free(p);
    return s;
}

/* ---- windows ---- */

struct window_streams {
    double memory_ns[PLACEMENT_MAX_WINDOWS]; /* of the accesses that windows divide */
    double shared_ns;                        /* of the other accesses */
    uint64_t accesses[PLACEMENT_MAX_WINDOWS];
    uint32_t sm_count[PLACEMENT_MAX_WINDOWS];
    uint16_t sms[PLACEMENT_MAX_WINDOWS][REACH_MAX_SMS]; /* positions */
};

static uint32_t find_window(const struct placement_answer *w, uint64_t position)
{
    uint32_t i = 0;
    while (i + 1 < w->window_count &&
           position >= w->windows[i].first_byte + w->windows[i].length_bytes)
        i++;
    return i;
}

/* A job divides its large arrays into windows. Its small arrays, such as an index or a result, are
 * in the reach of every group, so all SMs access them. Returns the largest size of such an array,
 * or 0 if these arrays are not small together. */
static uint64_t shared_bytes(const struct trace *t)
{
    enum { ONE = 64, ALL = 16 }; /* parts of the bytes of the trace */
    uint64_t sum = 0;
    for (uint32_t i = 0; i < t->region_count; i++) {
        if (t->regions[i].bytes <= t->bytes / ONE)
            sum += t->regions[i].bytes;
    }
    return sum <= t->bytes / ALL ? t->bytes / ONE : 0;
}

/* Deals the accesses of each window to its SMs in turn, STREAM_PIECE at a time. */
static void deal_to_windows(const struct whatif_context *c, struct window_streams *d,
                            struct stream *out)
{
    const struct placement_answer *w = &c->plan->placement;
    const struct stream *s = &c->stream;
    const uint64_t shared = shared_bytes(c->trace);
    for (uint32_t i = 0; i < c->machine.sm_count; i++) {
        const uint32_t id = c->machine.sm_ids[i];
        const int16_t window = id < w->sm_slots ? w->window_of_sm[id] : (int16_t)-1;
        if (window >= 0)
            d->sms[window][d->sm_count[window]++] = (uint16_t)i;
    }
    for (size_t i = 0; i < s->count; i++) {
        const uint32_t window = find_window(w, access_position(c, i));
        const uint32_t count = d->sm_count[window] > 0 ? d->sm_count[window] : 1;
        const uint64_t turn = d->accesses[window]++ / STREAM_PIECE % count;
        const bool divided = trace_find_region(c->trace, stream_address(s, i))->bytes > shared;
        *(divided ? &d->memory_ns[window] : &d->shared_ns) += access_memory_ns(c, s, i);
        stream_append(out, s->units[i], d->sms[window][turn], s->classes[i]);
    }
}

/* Returns the highest load of a window, divided by the load that its length predicts. All windows
 * have their shares of the accesses that no window divides. */
static double crowding(const struct whatif_context *c, const struct window_streams *d)
{
    const struct placement_answer *w = &c->plan->placement;
    double most = 0;
    for (uint32_t i = 0; i < w->window_count; i++) {
        const double share = (double)w->windows[i].length_bytes / (double)c->trace->bytes;
        most = fmax(most, d->memory_ns[i] / c->all_memory_ns / share);
    }
    return (most + d->shared_ns / c->all_memory_ns) * w->imbalance;
}

/* Returns the measured slowdown of windows for the most frequent width of an access. */
static double window_slowdown(const struct whatif_context *c)
{
    const struct reach_limit limit = {.observed = true,
                                      .reach_bytes = c->fp->windows.reach_bytes.v};
    uint32_t sectors = FINGERPRINT_CURVE_BYTES / TRACE_SECTOR_BYTES;
    struct access_cost cost;
    uint64_t most = 0;
    uint64_t lines[STREAM_KIND_CLASSES + 1] = {0};
    for (uint32_t i = 0; i < c->trace->record_count; i++) {
        const struct trace_record *r = &c->trace->records[i];
        lines[r->sectors] += r->line_count;
        if (lines[r->sectors] > most) {
            most = lines[r->sectors];
            sectors = r->sectors;
        }
    }
    access_cost_read(&c->fp->throughput, &limit, ACCESS_READ,
                     sectors * (uint32_t)TRACE_SECTOR_BYTES, &cost);
    return access_cost_by_group_slowdown(&cost, c->trace->bytes);
}

static void add_windows_row(struct whatif_context *c, uint32_t count, double memory_ns,
                            double walks)
{
    const double each = c->read_ns + c->add_ns * (count - 1);
    const double accesses = (double)c->out->accesses;
    const double launches = launches_ns(c, STRATEGY_FILTERED_WINDOWS);
    struct whatif_row *r = whatif_add_row(c, WHATIF_WINDOWS, count, memory_ns + each, walks);
    whatif_set_times(c, r, r->ns * accesses + launches, r->ns_at_worst * accesses + launches);
    (void)snprintf(r->note, sizeof r->note, "each SM makes the accesses of its window");
}

enum status whatif_add_windows(struct whatif_context *c, struct err *err)
{
    struct window_streams *d = NULL;
    struct stream dealt = {0};
    uint64_t walks = 0;
    enum status s = make_plan(c, err);
    if (s != STATUS_OK)
        return s;
    if (!c->plan || !c->plan->has_placement) {
        (void)whatif_add_unknown_row(c, WHATIF_WINDOWS, missing_reason(c, STRATEGY_WINDOWS));
        return STATUS_OK;
    }
    d = calloc(1, sizeof *d);
    s = d ? stream_new(&c->stream, &dealt, err)
          : err_set(err, STATUS_NO_MEMORY, "cannot allocate the windows: out of memory");
    dealt.group_count = 0;
    if (d && s == STATUS_OK) {
        deal_to_windows(c, d, &dealt);
        s = stream_walks_count(&dealt, &c->machine, whatif_miss_queue(c), c->options->cold,
                               &dealt.count, 1, &walks, err);
    }
    const uint32_t count = c->plan->placement.window_count;
    if (d && s == STATUS_OK)
        add_windows_row(c, count, c->all_memory_ns * crowding(c, d) * window_slowdown(c),
                        (double)walks);
    stream_free(&dealt);
    free(d);
    return s;
}
