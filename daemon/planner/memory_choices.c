/* memory_choices.c: lists the choices of each kind of memory, predicts their speeds, and ranks
 * them. The probed regions of a kind form a curve, which access_cost.c interpolates like the curve
 * of device memory. */
#include "planner/memory_choices.h"

#include "types/name_of.h"
#include "planner/access_cost.h"
#include "base/format_size.h"
#include "planner/host_batch.h"
#include "planner/next_step.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* RATE_BYTES is the size of the writes and atomics that were measured in other kinds of memory
 * within the reach only. */
enum { RATE_BYTES = 32, LEAD_BYTES = 96, REACH_TEXT_BYTES = 160, MOVED_TEXT_BYTES = 64 };

_Static_assert(2 + FINGERPRINT_MAX_ROWS <= FINGERPRINT_MAX_RATES, "the rates of a kind");

/* If the speed of a choice is unknown, the choice ranks by this factor times its measured speed
 * over less memory. */
static const double UNMEASURED_SHARE = 0.5;

/* An access is not slowed down by translations if it takes at most this times as long. */
static const double HIDDEN = 1.02;

/* A prediction covers this multiple of the largest region, if the speed out of reach is known. */
enum { EXTRAPOLATED_TIMES = 4 };

/* Memory counts as reached if it is read at this share of the plateau (memory_facts.h). */
static const double REACHED = 0.9;

NAME_FUNCTION(
    choice_basis_name,
    enum choice_basis, [CHOICE_NOT_MEASURED] = "not-measured", [CHOICE_MEASURED] = "measured",
    [CHOICE_BETWEEN] = "between", [CHOICE_SCALED] = "scaled", [CHOICE_AT_LEAST] = "at-least",
    [CHOICE_EXTRAPOLATED] = "extrapolated", [CHOICE_SIMULATED] = "simulated")

/* The way to allocate each kind, and its place in the order of equally fast kinds. Usual kinds come
 * first. */
static const struct {
    const char *allocate;
    uint32_t effort;
} kinds[MEMORY_KIND_COUNT] = {
    [MEMORY_DEVICE] = {"cuMemAlloc, or cuMemCreate at the device", 0},
    [MEMORY_MANAGED_DEVICE] = {"cuMemAllocManaged, prefetched to the device", 1},
    [MEMORY_HOST_PINNED] = {"cuMemHostAlloc", 2},
    [MEMORY_MANAGED_HOST] = {"cuMemAllocManaged, preferred location host, accessed by the device",
                             3},
    [MEMORY_HOST_REGISTERED] = {"ordinary pages of the process, cuMemHostRegister", 4},
    [MEMORY_HOST_REGISTERED_HUGE] = {"transparent huge pages of the process, cuMemHostRegister", 5},
    [MEMORY_HOST_VIRTUAL] = {"cuMemCreate at a NUMA node of the host, accessed by the device", 6},
    [MEMORY_HOST_PAGEABLE] = {"malloc or mmap; cuMemAdvise: preferred location host, accessed by "
                              "the device",
                              7},
    [MEMORY_HOST_FILE] = {"mmap of a file whose pages are in memory", 8},
    [MEMORY_HOST_GATHERED] = {"malloc or mmap; the CPU gathers rows into cuMemHostAlloc", 9},
    [MEMORY_PEER] = {"cuMemCreate at the other device, accessed by this one", 10},
};

struct advising {
    const struct fingerprint *fp;
    const struct memory_request *request;
    struct memory_answer *out;
    struct maybe_f64 device_gbps;   /* speed of naive accesses in device memory */
    struct maybe_f64 in_reach_gbps; /* speed of accesses within the reach of device memory */
    double moved_bytes; /* bytes of device memory that the job reads and writes with an access of
                           host memory */
};

/* ---- what there is ---- */

/* Returns the size of device memory, which an imported fingerprint does not contain. */
static struct maybe_u64 device_bytes(const struct fingerprint *fp)
{
    return fp->gpu.memory_bytes > 0 ? KNOWN_U64(fp->gpu.memory_bytes)
                                    : UNKNOWN_U64(REASON_NOT_REPORTED);
}

/* Returns the largest size of one allocation of this kind. Managed memory that does not fit the
 * host stays at the device. */
static struct maybe_u64 capacity_of(const struct fingerprint *fp, const struct memory_facts *m)
{
    struct maybe_u64 capacity = memory_kind_is_host(m->kind) ? fp->conditions.host_memory_bytes
                                : m->kind == MEMORY_PEER     ? m->peer_memory_bytes
                                                             : device_bytes(fp);

    if (m->kind == MEMORY_MANAGED_HOST && IS_KNOWN(capacity))
        capacity.v += fp->gpu.memory_bytes;
    return capacity;
}

static struct maybe_u64 larger_of(struct maybe_u64 a, struct maybe_u64 b)
{
    if (!IS_KNOWN(a) || !IS_KNOWN(b))
        return IS_KNOWN(a) ? b : a;
    return a.v > b.v ? a : b;
}

/* Returns the bytes of the largest kind of memory at this location; LOCATION_ANY includes the
 * peers. */
static struct maybe_u64 location_bytes(const struct fingerprint *fp, enum memory_location location)
{
    struct maybe_u64 most = fp->conditions.host_memory_bytes;

    if (location != LOCATION_ANY)
        return most;
    if (IS_KNOWN(most))
        most.v += fp->gpu.memory_bytes;
    most = larger_of(most, device_bytes(fp));
    for (uint32_t i = MEMORY_PEER - 1; i < fp->memory_count; i++)
        most = larger_of(most, fp->memory[i].peer_memory_bytes);
    return most;
}

static enum status check_location(const struct fingerprint *fp,
                                  const struct memory_request *request, struct err *err)
{
    static const char *const owners[] = {
        [LOCATION_ANY] = "this GPU and its host have together", [LOCATION_HOST] = "the host has"};
    const struct maybe_u64 most = location_bytes(fp, request->location);
    char asked[FORMAT_SIZE_BYTES];
    char there[FORMAT_SIZE_BYTES];

    if (request->location == LOCATION_DEVICE)
        return reach_limit_check_device(fp, request->bytes, err);
    if (!IS_KNOWN(most) || request->bytes <= most.v)
        return STATUS_OK;
    format_size_pair(request->bytes, most.v, asked, there);
    return err_set_field(err, STATUS_TOO_MANY_BYTES, "bytes",
                         "%s are more than the %s of memory that %s", asked, there,
                         owners[request->location]);
}

static bool is_at_location(enum memory_kind kind, enum memory_location location)
{
    const bool is_device = kind == MEMORY_DEVICE || kind == MEMORY_MANAGED_DEVICE;

    return location == LOCATION_ANY ||
           (location == LOCATION_DEVICE ? is_device : memory_kind_is_host(kind));
}

static bool is_requested(const struct memory_request *request, enum memory_kind kind)
{
    return is_at_location(kind, request->location) &&
           (request->kind == 0 || request->kind == (uint32_t)kind + 1);
}

__attribute__((format(printf, 4, 5))) static void
leave_out(struct advising *a, enum memory_kind kind, const char *peer_uuid, const char *format, ...)
{
    struct memory_left_out *const l = &a->out->left_out[a->out->left_out_count++];
    va_list args;

    *l = (struct memory_left_out){.kind = kind, .peer_uuid = peer_uuid};
    va_start(args, format);
    (void)vsnprintf(l->why, sizeof(l->why), format, args);
    va_end(args);
}

/* Returns the largest amount of host memory that a measurement had. Memory of kind HOST_VIRTUAL
 * does not count, because its range may be one handle that is mapped repeatedly. */
static uint64_t host_bytes_seen(const struct fingerprint *fp)
{
    uint64_t seen = 0;

    for (uint32_t i = 0; i < fp->memory_count; i++) {
        const struct memory_facts *const m = &fp->memory[i];
        if (memory_kind_is_host(m->kind) && m->kind != MEMORY_HOST_VIRTUAL &&
            IS_KNOWN(m->probed_bytes) && m->probed_bytes.v > seen)
            seen = m->probed_bytes.v;
    }
    return seen;
}

/* Returns the degree of doubt that the bytes fit: 0 if they fit, else 1, or 2 for a peer. A peer
 * often has less memory than the host. */
static uint32_t doubt_of(const struct advising *a, enum memory_kind kind, struct maybe_u64 capacity)
{
    if (IS_KNOWN(capacity) ||
        (memory_kind_is_host(kind) && a->request->bytes <= host_bytes_seen(a->fp)))
        return 0;
    return kind == MEMORY_PEER ? 2 : 1;
}

/* ---- choices ---- */

static struct memory_choice *add_choice(struct advising *a, enum memory_kind kind,
                                        const char *peer_uuid, enum strategy s,
                                        struct maybe_u64 capacity)
{
    struct memory_choice *const w = &a->out->choices[a->out->choice_count++];

    *w = (struct memory_choice){.kind = kind,
                                .peer_uuid = peer_uuid,
                                .allocate = kinds[kind].allocate,
                                .capacity_bytes = capacity,
                                .doubt = doubt_of(a, kind, capacity),
                                .strategy = s,
                                .passes = 1,
                                .probed_bytes = UNKNOWN(REASON_NOT_APPLICABLE),
                                .probed_gbps = UNKNOWN(REASON_NOT_APPLICABLE),
                                .sms = UNKNOWN(REASON_NOT_APPLICABLE),
                                .in_flight_bytes = UNKNOWN(REASON_NOT_APPLICABLE)};
    return w;
}

static struct maybe_f64 column_of(const struct curve_point *p, enum strategy s)
{
    return s == STRATEGY_WINDOWS ? p->by_group_gbps : p->naive_gbps;
}

static bool is_probed(const struct curve_point *curve, uint32_t count, enum strategy s,
                      uint64_t bytes)
{
    bool any = false;

    for (uint32_t i = 0; i < count; i++)
        any = any || (curve[i].region_bytes == bytes && IS_KNOWN(column_of(&curve[i], s)));
    return any;
}

/* ---- device memory ---- */

static enum choice_basis measured(const struct fingerprint *fp)
{
    return fp->gpu.origin == ORIGIN_SIMULATED ? CHOICE_SIMULATED : CHOICE_MEASURED;
}

static enum choice_basis device_basis(const struct advising *a, const struct strategy_answer *plan,
                                      const struct strategy_option *option)
{
    const struct throughput *const t = &a->fp->throughput;
    const bool in_reach = IS_KNOWN(a->fp->windows.recommended_bytes) &&
                          a->request->bytes <= a->fp->windows.recommended_bytes.v;

    if (!IS_KNOWN(option->gbps) || plan->basis == BASIS_NONE)
        return CHOICE_NOT_MEASURED;
    if (plan->basis == BASIS_SCALED)
        return CHOICE_SCALED;
    return plan->basis == basis_of_origin(a->fp, BASIS_MEASURED) &&
                   (in_reach ||
                    is_probed(t->curve, t->curve_count, option->strategy, a->request->bytes))
               ? measured(a->fp)
               : CHOICE_BETWEEN;
}

static void add_option(struct advising *a, const struct strategy_answer *plan,
                       const struct strategy_option *option)
{
    struct memory_choice *const w =
        add_choice(a, MEMORY_DEVICE, "", option->strategy, device_bytes(a->fp));

    w->gbps = option->gbps;
    w->basis = device_basis(a, plan, option);
    w->passes = option->passes;
    w->scope_bytes = option->scope_bytes;
    w->windows = option->windows;
    for (uint32_t i = 0; i < option->windows; i++)
        if (plan->placement.windows[i].length_bytes > w->window_bytes)
            w->window_bytes = plan->placement.windows[i].length_bytes;
    w->rank_gbps =
        IS_KNOWN(w->gbps) ? w->gbps.v : UNMEASURED_SHARE * plan->in_reach_gbps.v; /* 0 if unknown */
    memcpy(w->why, option->why, sizeof(option->why));
    if (option->strategy == STRATEGY_NAIVE)
        a->device_gbps = option->gbps;
}

static struct maybe_f64 gbps_at(const struct access_cost *cost, uint64_t bytes)
{
    return access_cost_gbps(access_cost_naive_ns(cost, bytes), cost->transaction_bytes);
}

/* Adds only the choice of any SM anywhere, which needs no plan, because its measurements are valid
 * for any reach of a TLB. `why_not` is the reason why there is no plan. */
static void add_device_alone(struct advising *a, const char *why_not)
{
    const struct throughput *const t = &a->fp->throughput;
    const struct reach_limit none = {.observed = false};
    struct access_cost cost;
    struct memory_choice *w;
    char rate[FORMAT_RATE_BYTES];

    access_cost_read(t, &none, a->request->access, a->out->transaction_bytes, &cost);
    access_cost_add_lines(&cost, t, a->request->access, a->out->element_bytes);
    a->device_gbps = gbps_at(&cost, a->request->bytes);
    if (t->curve_count == 0 || !IS_KNOWN(a->device_gbps)) {
        leave_out(a, MEMORY_DEVICE, "", "%.190s", why_not);
        return;
    }
    w = add_choice(a, MEMORY_DEVICE, "", STRATEGY_NAIVE, device_bytes(a->fp));
    w->gbps = a->device_gbps;
    w->rank_gbps = w->gbps.v;
    w->basis = cost.basis == BASIS_SCALED ? CHOICE_SCALED
               : is_probed(t->curve, t->curve_count, STRATEGY_NAIVE, a->request->bytes)
                   ? CHOICE_MEASURED
                   : CHOICE_BETWEEN;
    snprintf(
        w->why, sizeof(w->why),
        "Any SM anywhere: %s; there is no other choice, since how far an SM group reaches is not "
        "known (%s).",
        format_rate(w->gbps, rate), reason_slug(a->fp->windows.reach_bytes.reason));
}

/* Adds the options of the plan that need no input, in the order of the plan. */
static void add_device(struct advising *a)
{
    const struct job_request job = {.bytes = a->request->bytes,
                                    .access = a->request->access,
                                    .element_bytes = a->request->element_bytes,
                                    .accesses = a->request->accesses,
                                    .launch_us = a->request->launch_us,
                                    .input_bytes = a->request->input_bytes,
                                    .written_bytes = a->request->written_bytes,
                                    .fingerprint_id = a->out->fingerprint_id};
    struct strategy_answer plan;
    struct err err;

    const enum status s = strategy_plan(a->fp, &job, &plan, &err);
    if (s == STATUS_NOT_APPLICABLE && !IS_KNOWN(a->fp->windows.reach_bytes)) {
        add_device_alone(a, err.text);
        return;
    }
    if (s != STATUS_OK) {
        leave_out(a, MEMORY_DEVICE, "", "%.190s", err.text);
        return;
    }
    a->in_reach_gbps = plan.in_reach_gbps;
    for (int i = 0; i < STRATEGY_COUNT; i++)
        if (plan.options[i].possible && plan.options[i].strategy <= STRATEGY_WINDOWS)
            add_option(a, &plan, &plan.options[i]);
}

/* ---- other kinds ---- */

static void add_region(struct throughput *t, uint64_t bytes, struct maybe_f64 gbps)
{
    if (IS_KNOWN(gbps) && gbps.v > 0 && t->curve_count < FINGERPRINT_MAX_CURVE)
        t->curve[t->curve_count++] =
            (struct curve_point){.region_bytes = bytes, .naive_gbps = gbps};
}

/* Adds a region at windows_reach_bytes, for which the curve has no point. */
static void add_windows_edge(const struct memory_facts *m, const struct curve_point *next,
                             struct throughput *t)
{
    const struct curve_point *const last = &t->curve[t->curve_count - 1];
    const uint64_t edge = IS_KNOWN(m->windows_reach_bytes) ? m->windows_reach_bytes.v : 0;

    if (IS_KNOWN(next->by_group_gbps) && edge > last->region_bytes && edge < next->region_bytes)
        add_region(t, edge, last->naive_gbps);
}

/* Adds a region EXTRAPOLATED_TIMES as long as the last one, on the line in 1 / bytes through the
 * last region and one of two thirds of its length at most. Both must be out of reach, because only
 * then does the line show the misses. The CPU gathers from longer regions as fast as from the last
 * one. */
static void add_extrapolated(const struct memory_facts *m, struct throughput *t)
{
    const struct curve_point *const last = &t->curve[t->curve_count - 1];
    const struct curve_point *other = last;

    if (m->kind == MEMORY_HOST_GATHERED) {
        add_region(t, EXTRAPOLATED_TIMES * last->region_bytes, last->naive_gbps);
        return;
    }
    while (other > t->curve && other->region_bytes > last->region_bytes / 3 * 2)
        other--;
    if (other->region_bytes > last->region_bytes / 3 * 2 || !IS_KNOWN(m->plateau_gbps) ||
        other->naive_gbps.v >= REACHED * t->plateau_gbps.v ||
        last->naive_gbps.v > other->naive_gbps.v)
        return;
    const double ratio = (double)last->region_bytes / other->region_bytes;
    const double rise = (1 / last->naive_gbps.v - 1 / other->naive_gbps.v) / (ratio - 1);
    const double more = rise * (1 - 1.0 / EXTRAPOLATED_TIMES);
    add_region(t, EXTRAPOLATED_TIMES * last->region_bytes,
               KNOWN_F64(1 / (1 / last->naive_gbps.v + more)));
}

/* Returns the share of the L2 that the job's own data take from page tables, if each access moves
 * these bytes and loads one line of page tables. */
static double share_of_l2(double moved_bytes)
{
    return moved_bytes / (moved_bytes + FINGERPRINT_CURVE_BYTES);
}

/* Returns the time of accesses out of reach in these bytes, relative to accesses without input and
 * output (docs/planner.md, "Input and output"). */
static double slowdown(const struct advising *a, const struct memory_facts *m, uint64_t bytes)
{
    if (!IS_KNOWN(m->written_factor))
        return 1;
    return 1 + (1 / m->written_factor.v - 1) * share_of_l2(a->moved_bytes) /
                   share_of_l2(FINGERPRINT_WRITTEN_BYTES) *
                   fmin(1, (double)bytes / (double)m->probed_bytes.v);
}

/* Returns the number of a region with the job's input and output. */
static struct maybe_f64 slowed(const struct advising *a, const struct memory_facts *m,
                               uint64_t bytes, double plateau_gbps, struct maybe_f64 gbps)
{
    if (IS_KNOWN(gbps) && gbps.v < REACHED * plateau_gbps)
        gbps.v /= slowdown(a, m, bytes);
    return gbps;
}

/* Writes the measurements for this choice to `*out` in the form that access_cost_read takes. */
static void read_curve(const struct advising *a, const struct memory_facts *m, enum strategy s,
                       struct throughput *out)
{
    memset(out, 0, sizeof(*out));
    out->plateau_gbps = m->plateau_gbps;
    for (uint32_t i = 0; !IS_KNOWN(m->plateau_gbps) && i < m->curve_count; i++)
        if (IS_KNOWN(m->curve[i].naive_gbps) && m->curve[i].naive_gbps.v > out->plateau_gbps.v)
            out->plateau_gbps = m->curve[i].naive_gbps;
    if (s == STRATEGY_WINDOWS) /* the region that needs no windows */
        add_region(out, IS_KNOWN(m->reach_bytes) ? m->reach_bytes.v : 1, out->plateau_gbps);
    for (uint32_t i = 0; i < m->curve_count; i++) {
        if (s == STRATEGY_WINDOWS)
            add_windows_edge(m, &m->curve[i], out);
        add_region(out, m->curve[i].region_bytes,
                   slowed(a, m, m->curve[i].region_bytes, out->plateau_gbps.v,
                          column_of(&m->curve[i], s)));
    }
    out->rates[out->rate_count++] = (struct access_rate){
        .access = ACCESS_ATOMIC, .transaction_bytes = RATE_BYTES, .plateau_gbps = m->atomic_gbps};
    out->rates[out->rate_count++] = (struct access_rate){
        .access = ACCESS_WRITE, .transaction_bytes = RATE_BYTES, .plateau_gbps = m->write_gbps};
    for (uint32_t i = 0; i < m->row_count; i++)
        out->rates[out->rate_count++] =
            (struct access_rate){.access = m->rows[i].access,
                                 .transaction_bytes = m->rows[i].transaction_bytes,
                                 .plateau_gbps = m->rows[i].plateau_gbps};
}

/* Returns the time of such an access out of reach, relative to a read of 128 bytes: the ratio of
 * both over the largest region. A row longer than every measured row has the ratio of the longest
 * one. The ratio is 1 if accesses take no longer over that region than `in_reach_ns`, because
 * memory then hides their translations. */
static struct maybe_f64 translation_factor(const struct memory_facts *m, enum access access,
                                           uint32_t bytes, struct maybe_f64 in_reach_ns)
{
    const struct reach_limit none = {.observed = false};
    struct throughput t = {.plateau_gbps = m->curve[m->curve_count - 1].naive_gbps};
    uint32_t longest = access == ACCESS_READ ? FINGERPRINT_CURVE_BYTES : 0;
    struct access_cost cost;

    for (uint32_t i = 0; i < m->row_count; i++) {
        t.rates[t.rate_count++] =
            (struct access_rate){.access = m->rows[i].access,
                                 .transaction_bytes = m->rows[i].transaction_bytes,
                                 .plateau_gbps = m->rows[i].probed_gbps};
        if (m->rows[i].access == access && IS_KNOWN(m->rows[i].probed_gbps) &&
            m->rows[i].transaction_bytes > longest)
            longest = m->rows[i].transaction_bytes;
    }
    if (!IS_KNOWN(t.plateau_gbps) || longest == 0)
        return UNKNOWN_F64(REASON_NOT_MEASURED);
    access_cost_read(&t, &none, access, bytes < longest ? bytes : longest, &cost);
    if (cost.basis != BASIS_MEASURED && cost.basis != BASIS_BETWEEN)
        return UNKNOWN_F64(REASON_NOT_MEASURED);
    return KNOWN_F64(cost.in_reach_ns.v > HIDDEN * in_reach_ns.v
                         ? cost.in_reach_ns.v * t.plateau_gbps.v / FINGERPRINT_CURVE_BYTES
                         : 1);
}

/* Returns whether a limit of host memory hides the reach. */
static bool is_cut(const struct memory_facts *m)
{
    return m->reach_bytes.known == MAYBE_UNKNOWN && m->reach_bytes.reason == REASON_NO_HOST_MEMORY;
}

/* Returns whether the size is below the first region that was read with windows, and that region is
 * slow. In this case the size at which windows become slow is unknown. */
static bool is_below_curve(const struct memory_facts *m, const struct throughput *t,
                           enum strategy s, uint64_t bytes)
{
    return s == STRATEGY_WINDOWS && !IS_KNOWN(m->windows_reach_bytes) && t->curve_count > 1 &&
           bytes < t->curve[1].region_bytes &&
           t->curve[1].naive_gbps.v < REACHED * t->plateau_gbps.v;
}

/* Returns whether the input and output of the job slow its accesses with this strategy. */
static bool is_slowed(const struct advising *a, const struct memory_facts *m, enum strategy s)
{
    const struct maybe_u64 reach = s == STRATEGY_WINDOWS ? m->windows_reach_bytes : m->reach_bytes;

    return IS_KNOWN(m->written_factor) && a->moved_bytes > 0 && IS_KNOWN(reach) &&
           a->request->bytes > reach.v;
}

static enum choice_basis kind_basis(const struct advising *a, const struct memory_facts *m,
                                    const struct access_cost *cost, bool factor_is_known,
                                    const struct memory_choice *w)
{
    const struct maybe_u64 reach =
        w->strategy == STRATEGY_WINDOWS ? m->windows_reach_bytes : m->reach_bytes;
    const uint64_t bytes = a->request->bytes;
    const bool is_curve = a->request->access == ACCESS_READ &&
                          cost->transaction_bytes == (uint32_t)FINGERPRINT_CURVE_BYTES;

    if (!IS_KNOWN(w->gbps))
        return IS_KNOWN(w->probed_gbps) && bytes > w->probed_bytes.v &&
                       reach.known == MAYBE_NOT_OBSERVABLE
                   ? CHOICE_AT_LEAST
                   : CHOICE_NOT_MEASURED;
    if (cost->basis == BASIS_SCALED || (!factor_is_known && IS_KNOWN(reach) && bytes > reach.v))
        return CHOICE_SCALED;
    if (bytes > w->probed_bytes.v)
        return CHOICE_EXTRAPOLATED;
    return cost->basis == BASIS_MEASURED && !is_slowed(a, m, w->strategy) &&
                   is_probed(m->curve, m->curve_count, w->strategy, bytes) &&
                   (is_curve || (factor_is_known && w->strategy != STRATEGY_WINDOWS &&
                                 bytes == w->probed_bytes.v))
               ? measured(a->fp)
               : CHOICE_BETWEEN;
}

/* Reads the cost of the requested accesses to this kind with this strategy. Returns the factor of
 * its translations, which is unknown if it was not measured. */
static struct maybe_f64 read_cost(const struct advising *a, const struct memory_facts *m,
                                  struct throughput *t, struct access_cost *cost)
{
    const struct reach_limit none = {.observed = false}; /* the curve contains the limit */
    struct maybe_f64 factor;

    access_cost_read(t, &none, a->request->access, a->out->transaction_bytes, cost);
    factor = translation_factor(m, a->request->access, cost->transaction_bytes, cost->in_reach_ns);
    if (IS_KNOWN(factor))
        cost->scattering = factor;
    return factor;
}

/* Fills in gbps, basis and the probed numbers. At least one region must have been probed. */
static void predict(const struct advising *a, const struct memory_facts *m, struct memory_choice *w)
{
    const uint64_t bytes = a->request->bytes;
    struct throughput t;
    struct access_cost cost;

    read_curve(a, m, w->strategy, &t);
    w->probed_bytes = KNOWN_U64(t.curve[t.curve_count - 1].region_bytes);
    add_extrapolated(m, &t);
    const struct maybe_f64 factor = read_cost(a, m, &t, &cost);
    w->probed_gbps = gbps_at(&cost, w->probed_bytes.v);
    if (!IS_KNOWN(w->probed_gbps))
        w->gbps = w->probed_gbps;
    else if (bytes > t.curve[t.curve_count - 1].region_bytes)
        w->gbps = UNKNOWN_F64(is_cut(m) ? REASON_NO_HOST_MEMORY : REASON_BEYOND_MEMORY);
    else if (is_below_curve(m, &t, w->strategy, bytes))
        w->gbps = UNKNOWN_F64(REASON_NOT_MEASURED);
    else
        w->gbps = gbps_at(&cost, bytes);
    w->basis = kind_basis(a, m, &cost, IS_KNOWN(factor), w);
}

static double least(double a, struct maybe_f64 b)
{
    return IS_KNOWN(b) && b.v < a ? b.v : a;
}

/* Limits the speed of managed memory at the device to the speed of device memory. Small regions are
 * faster in measurements only because of the L2 cache. */
static void cap_at_device(const struct advising *a, struct memory_choice *w)
{
    w->gbps.v = least(w->gbps.v, a->device_gbps);
    w->probed_gbps.v = least(w->probed_gbps.v, a->in_reach_gbps);
    w->rank_gbps = least(w->rank_gbps, a->device_gbps);
}

/* Writes the end of a sentence: the bytes that any SM reads at full speed, or why this number is
 * not known. */
static void reach_text(const struct memory_facts *m, char *out)
{
    const bool has_reach = IS_KNOWN(m->reach_bytes);
    char reach[FORMAT_SIZE_BYTES];
    char plateau[FORMAT_RATE_BYTES];

    format_size(has_reach ? m->reach_bytes.v : m->probed_bytes.v, reach);
    format_rate(m->plateau_gbps, plateau);
    if (m->kind == MEMORY_HOST_GATHERED)
        out[0] = '\0';
    else if (has_reach || m->reach_bytes.known == MAYBE_NOT_OBSERVABLE)
        snprintf(out, REACH_TEXT_BYTES, "; any SM reads %s %s at full speed (%s)",
                 has_reach ? "up to" : "at least", reach, plateau);
    else if (is_cut(m))
        snprintf(out, REACH_TEXT_BYTES,
                 "; the reach is unknown, because only %s of host memory were allowed", reach);
    else
        out[0] = '\0';
}

static void write_why(const struct advising *a, const struct memory_facts *m, const char *lead,
                      struct memory_choice *w)
{
    static const char *const rests[] = {[CHOICE_MEASURED] = "measured over this many bytes",
                                        [CHOICE_SIMULATED] = "simulated over this many bytes",
                                        [CHOICE_BETWEEN] = "between what was measured",
                                        [CHOICE_EXTRAPOLATED] =
                                            "extrapolated from the largest regions",
                                        [CHOICE_SCALED] = "from other accesses that were measured"};
    char rate[FORMAT_RATE_BYTES];
    char asked[FORMAT_SIZE_BYTES];
    char probed[FORMAT_SIZE_BYTES];
    char reach[REACH_TEXT_BYTES];
    char moved[MOVED_TEXT_BYTES] = "";

    format_size_pair(a->request->bytes, w->probed_bytes.v, asked, probed);
    if (is_slowed(a, m, w->strategy))
        snprintf(moved, sizeof(moved), ", with %.4g bytes of input and output for each access",
                 a->moved_bytes);
    reach_text(m, reach);
    if (!IS_KNOWN(w->probed_gbps))
        snprintf(w->why, sizeof(w->why), "%s: %ss of this memory were not measured%s.", lead,
                 access_name(a->request->access), reach);
    else if (!IS_KNOWN(w->gbps))
        snprintf(w->why, sizeof(w->why), "%s: not known for %s; %s were probed, at %s%s.", lead,
                 asked, probed, format_rate(w->probed_gbps, rate), reach);
    else
        snprintf(w->why, sizeof(w->why), "%s: %s, %s%s%s.", lead, format_rate(w->gbps, rate),
                 rests[w->basis], moved, reach);
}

/* Fills in what fills the link. By Little's law, the bytes in flight on a full link are its
 * throughput times the latency of a load. */
static void set_link(const struct advising *a, const struct memory_facts *m,
                     struct memory_choice *w)
{
    const struct maybe_u32 khz = a->fp->conditions.sm_clock_khz;

    w->sms = m->sms_to_fill;
    if (!IS_KNOWN(m->plateau_gbps) || !IS_KNOWN(m->latency_cycles))
        w->in_flight_bytes = UNKNOWN_U64(IS_KNOWN(m->plateau_gbps) ? m->latency_cycles.reason
                                                                   : m->plateau_gbps.reason);
    else if (!IS_KNOWN(khz) || khz.v == 0)
        w->in_flight_bytes = UNKNOWN_U64(IS_KNOWN(khz) ? REASON_NOT_REPORTED : khz.reason);
    else
        w->in_flight_bytes = KNOWN_U64((uint64_t)fmin(
            m->plateau_gbps.v * m->latency_cycles.v * 1e6 / khz.v, (double)PLACEMENT_MAX_BYTES));
}

/* Adds the choice of any SM anywhere, or of groups in `windows` windows. */
static void add_kind_choice(struct advising *a, const struct memory_facts *m, enum strategy s,
                            uint32_t windows)
{
    struct memory_choice *const w = add_choice(a, m->kind, m->peer_uuid, s, capacity_of(a->fp, m));
    const bool by_cpu = s == STRATEGY_CPU_GATHER;
    char lead[LEAD_BYTES] = "";
    char mean[FORMAT_SIZE_BYTES];

    predict(a, m, w);
    w->rank_gbps = IS_KNOWN(w->gbps) ? w->gbps.v : UNMEASURED_SHARE * w->probed_gbps.v;
    if (m->kind == MEMORY_MANAGED_DEVICE)
        cap_at_device(a, w);
    if (!by_cpu)
        set_link(a, m, w);
    snprintf(lead, sizeof(lead), "%s",
             by_cpu ? "Threads of the CPU gather rows into pinned memory, which is then copied"
                    : "Any SM anywhere");
    if (s == STRATEGY_WINDOWS) {
        w->windows = windows;
        w->window_bytes = (a->request->bytes - 1) / windows + 1;
        if (IS_KNOWN(w->sms) && w->sms.v < windows)
            w->sms.v = windows;
        snprintf(lead, sizeof(lead), "%u windows of whole groups, some %s each", windows,
                 format_size(w->window_bytes, mean));
    }
    write_why(a, m, lead, w);
}

/* Adds a choice for a batch that takes `ns`. */
static struct memory_choice *add_batch_choice(struct advising *a, const struct memory_facts *m,
                                              enum strategy s, const struct access_cost *cost,
                                              uint64_t probed, double ns)
{
    struct memory_choice *const w = add_choice(a, m->kind, m->peer_uuid, s, capacity_of(a->fp, m));

    w->gbps = KNOWN_F64((double)a->request->accesses * a->out->transaction_bytes / ns);
    w->rank_gbps = w->gbps.v;
    w->probed_bytes = KNOWN_U64(probed);
    w->probed_gbps = gbps_at(cost, probed);
    set_link(a, m, w);
    w->basis = CHOICE_SCALED;
    return w;
}

static void add_scopes(struct advising *a, const struct memory_facts *m, const struct host_batch *b,
                       uint64_t probed)
{
    double ns;
    const uint64_t passes = host_batch_passes(b, &ns);
    char scope[FORMAT_SIZE_BYTES];
    char rate[FORMAT_RATE_BYTES];

    if (passes == 0)
        return;
    struct memory_choice *const w = add_batch_choice(a, m, STRATEGY_SCOPES, b->cost, probed, ns);
    w->passes = passes;
    w->scope_bytes = (a->request->bytes - 1) / passes + 1;
    snprintf(w->why, sizeof(w->why),
             "%llu passes over scopes of %s: %s, from reads within a scope, misses and launches.",
             (unsigned long long)passes, format_size(w->scope_bytes, scope),
             format_rate(w->gbps, rate));
}

/* The time of the sort depends on the job, so the choice ranks below the choices whose whole time
 * is known. */
static void add_sorted(struct advising *a, const struct memory_facts *m, const struct host_batch *b,
                       uint64_t probed)
{
    const double ns = host_batch_sorted_ns(b);
    char rate[FORMAT_RATE_BYTES];

    if (ns == 0)
        return;
    struct memory_choice *const w = add_batch_choice(a, m, STRATEGY_SORTED, b->cost, probed, ns);
    w->rank_gbps = 0;
    snprintf(w->why, sizeof(w->why),
             "One launch after a sort of the accesses by address: %s without the time of the sort, "
             "from reads within the reach and misses.",
             format_rate(w->gbps, rate));
}

/* Adds the choices that need a batch, if the batch is known and they are faster than one launch. */
static void add_batch_choices(struct advising *a, const struct memory_facts *m)
{
    struct throughput t;
    struct access_cost cost;

    if (a->request->accesses == 0 || !memory_kind_is_host(m->kind) || !IS_KNOWN(m->reach_bytes) ||
        !IS_KNOWN(m->entry_bytes) || a->request->bytes <= m->reach_bytes.v)
        return;
    read_curve(a, m, STRATEGY_NAIVE, &t);
    const uint64_t probed = t.curve[t.curve_count - 1].region_bytes;
    add_extrapolated(m, &t);
    (void)read_cost(a, m, &t, &cost);
    const struct host_batch b = {.request = a->request,
                                 .memory = m,
                                 .cost = &cost,
                                 .longest_bytes = t.curve[t.curve_count - 1].region_bytes,
                                 .stream_gbps = a->fp->throughput.plateau_gbps.v};
    add_scopes(a, m, &b, probed);
    add_sorted(a, m, &b, probed);
}

/* Returns the number of windows with which groups were measured. It is 0 if there was no such
 * measurement, or if all SMs reach all of the memory. */
static uint32_t windows_that_help(const struct memory_facts *m, uint64_t bytes)
{
    uint32_t windows = 0;

    for (uint32_t i = 0; i < m->curve_count; i++)
        if (IS_KNOWN(m->curve[i].by_group_gbps) && m->curve[i].by_group_gbps.v > 0)
            windows = m->curve[i].windows;
    if (m->reach_bytes.known == MAYBE_NOT_OBSERVABLE ||
        (IS_KNOWN(m->reach_bytes) && bytes <= m->reach_bytes.v))
        return 0;
    return windows;
}

static bool has_curve(const struct memory_facts *m)
{
    bool any = false;

    for (uint32_t i = 0; i < m->curve_count; i++)
        any = any || (IS_KNOWN(m->curve[i].naive_gbps) && m->curve[i].naive_gbps.v > 0);
    return any;
}

static void add_kind(struct advising *a, const struct memory_facts *m)
{
    const struct maybe_u64 most = capacity_of(a->fp, m);
    const uint32_t windows = windows_that_help(m, a->request->bytes);
    char asked[FORMAT_SIZE_BYTES];
    char there[FORMAT_SIZE_BYTES];

    if (!has_curve(m)) {
        leave_out(
            a, m->kind, m->peer_uuid, "The fingerprint lacks this memory: %s.",
            reason_slug(IS_KNOWN(m->probed_bytes) ? REASON_NOT_MEASURED : m->probed_bytes.reason));
    } else if (IS_KNOWN(most) && a->request->bytes > most.v) {
        format_size_pair(a->request->bytes, most.v, asked, there);
        leave_out(a, m->kind, m->peer_uuid, "%s are more than the %s of this memory.", asked,
                  there);
    } else if (m->kind == MEMORY_HOST_GATHERED && a->request->access != ACCESS_READ) {
        leave_out(a, m->kind, m->peer_uuid, "The CPU gathers rows only for reads.");
    } else if (m->kind == MEMORY_HOST_GATHERED) {
        add_kind_choice(a, m, STRATEGY_CPU_GATHER, 0);
    } else {
        add_kind_choice(a, m, STRATEGY_NAIVE, 0);
        if (windows > 1)
            add_kind_choice(a, m, STRATEGY_WINDOWS, windows);
        add_batch_choices(a, m);
    }
}

/* ---- the order ---- */

static uint32_t effort_of(const struct memory_choice *w)
{
    static const uint32_t efforts[] = {[STRATEGY_NAIVE] = 0,
                                       [STRATEGY_WINDOWS] = 1,
                                       [STRATEGY_SCOPES] = 2,
                                       [STRATEGY_CPU_GATHER] = 3,
                                       [STRATEGY_SORTED] = 4};
    enum { STRATEGY_STEP = MEMORY_KIND_COUNT, BASIS_STEP = 5 * STRATEGY_STEP };

    return (IS_KNOWN(w->gbps) ? 0 : BASIS_STEP) + efforts[w->strategy] * STRATEGY_STEP +
           kinds[w->kind].effort;
}

static uint32_t least_doubt(const struct memory_answer *out, uint32_t from)
{
    uint32_t least = UINT32_MAX;

    for (uint32_t i = from; i < out->choice_count; i++)
        least = out->choices[i].doubt < least ? out->choices[i].doubt : least;
    return least;
}

/* Returns the index of the best choice from `from` on with the least doubt. Only the first choice
 * in device memory counts, because the plan has ranked the others. */
static uint32_t next_best(const struct memory_answer *out, uint32_t from)
{
    const uint32_t doubt = least_doubt(out, from);
    double fastest = 0;
    uint32_t best = out->choice_count;

    for (int pass = 0; pass < 2; pass++) {
        bool device = false;
        for (uint32_t i = from; i < out->choice_count; i++) {
            const struct memory_choice *const w = &out->choices[i];
            if (w->doubt > doubt || (w->kind == MEMORY_DEVICE && device))
                continue;
            device = device || w->kind == MEMORY_DEVICE;
            if (pass == 0 && w->rank_gbps > fastest)
                fastest = w->rank_gbps;
            if (pass == 1 && w->rank_gbps * (1 + STRATEGY_WORTH) >= fastest &&
                (best == out->choice_count || effort_of(w) < effort_of(&out->choices[best])))
                best = i;
        }
    }
    return best;
}

static void rank(struct memory_answer *out)
{
    struct memory_choice choice;
    uint32_t best;

    for (uint32_t i = 0; i < out->choice_count; i++) {
        best = next_best(out, i);
        choice = out->choices[best];
        memmove(&out->choices[i + 1], &out->choices[i], (best - i) * sizeof(choice));
        out->choices[i] = choice;
    }
}

/* Returns a note if the first choice depends on memory of unknown size, else "". */
static const char *size_note(const struct advising *a)
{
    const struct memory_choice *const first = &a->out->choices[0];

    if (first->kind == MEMORY_PEER && !IS_KNOWN(first->capacity_bytes))
        return " The memory size of the peer is not recorded: measure again.";
    if (!IS_KNOWN(device_bytes(a->fp)) && !memory_kind_is_host(first->kind))
        return " The memory size of the GPU is not recorded.";
    return a->request->location != LOCATION_DEVICE && !IS_KNOWN(a->fp->conditions.host_memory_bytes)
               ? " The memory size of the host is not recorded."
               : "";
}

static void write_reason(const struct advising *a)
{
    const struct memory_choice *const first = &a->out->choices[0];
    const struct memory_choice *const next = a->out->choice_count > 1 ? first + 1 : NULL;
    char rate[FORMAT_RATE_BYTES];
    char other[FORMAT_RATE_BYTES];
    char then[FORMAT_RATE_BYTES + 64] = "";

    if (next)
        snprintf(then, sizeof(then), "; next, %s %s: %s", memory_kind_name(next->kind),
                 strategy_name(next->strategy), format_rate(next->gbps, other));
    snprintf(a->out->reason, sizeof(a->out->reason), "%s %s: %s%s (fingerprint %s).%s",
             memory_kind_name(first->kind), strategy_name(first->strategy),
             format_rate(first->gbps, rate), then, a->out->fingerprint_id, size_note(a));
}

/* Returns the next step if there is no choice: the probed memory is too small, or no memory at this
 * location was probed. */
static const char *nothing_left_step(const struct advising *a)
{
    enum reason why = REASON_NOT_SUPPORTED; /* every supported kind has an element */

    for (uint32_t i = 0; i < a->fp->memory_count; i++) {
        const struct memory_facts *const m = &a->fp->memory[i];
        if (!is_requested(a->request, m->kind))
            continue;
        if (has_curve(m))
            return "Request at most the size in the detail.";
        why = m->probed_bytes.reason;
    }
    return next_step_full(a->fp, why);
}

/* Returns the depth at which the kinds were measured. It may exceed the depth of the newest
 * measurement, which keeps their numbers. */
static enum depth depth_of_kinds(const struct fingerprint *fp)
{
    for (uint32_t i = 0; i < fp->memory_count; i++)
        if (fp->memory[i].probed_bytes.v > DEPTH_FULL_REGION_BYTES)
            return DEPTH_MEMORY;
    return fp->depth;
}

/* Writes the next step for the first choice without a number. If the first choice has a number, a
 * later choice counts only if a deeper measurement can find its number. Depth full reads all of
 * device memory, and depth memory reads more of the other kinds. */
static void write_next_step(const struct advising *a)
{
    struct memory_answer *const out = a->out;
    const enum depth had = depth_of_kinds(a->fp);
    const size_t used = strlen(out->reason);
    const char *step = NULL;

    for (uint32_t i = 0; i < out->choice_count && !step; i++) {
        const struct memory_choice *const w = &out->choices[i];
        if (IS_KNOWN(w->gbps) || (i > 0 && IS_KNOWN(out->choices[0].gbps) &&
                                  (w->kind == MEMORY_DEVICE || had == DEPTH_MEMORY)))
            continue;
        if (w->kind == MEMORY_DEVICE)
            step = next_step_full(a->fp, w->gbps.reason);
        else if (w->gbps.reason == REASON_BEYOND_MEMORY && had == DEPTH_MEMORY)
            step = "Depth memory reads all available memory within the limits of reachd.";
        else
            step = next_step(a->fp, had, DEPTH_MEMORY, w->gbps.reason);
    }
    if (step)
        snprintf(out->reason + used, sizeof(out->reason) - used, " %s", step);
}

/* ---- the answer ---- */

/* By default, a job that reads copies what it reads. */
static double moved_bytes(const struct memory_request *request, uint32_t element_bytes)
{
    const double copied = request->access == ACCESS_READ ? element_bytes : 0;

    return request->input_bytes + (request->written_bytes > 0 ? request->written_bytes : copied);
}

enum status memory_choices_rank(const struct fingerprint *fp, const struct memory_request *request,
                                struct memory_answer *out, struct err *err)
{
    struct advising a = {.fp = fp, .request = request, .out = out};
    enum status s;

    memset(out, 0, sizeof(*out));
    s = reach_limit_begin(fp, request->bytes, request->fingerprint_id, out->fingerprint_id, err);
    if (s == STATUS_OK)
        s = strategy_sizes(request->element_bytes, 0, &out->element_bytes, &out->transaction_bytes,
                           err);
    if (s == STATUS_OK)
        s = check_location(fp, request, err);
    if (s != STATUS_OK)
        return s;
    a.moved_bytes = moved_bytes(request, out->element_bytes);
    if (is_at_location(MEMORY_DEVICE, request->location))
        add_device(&a); /* the speed of device memory also limits managed memory at the device */
    if (!is_requested(request, MEMORY_DEVICE))
        out->choice_count = out->left_out_count = 0;
    for (uint32_t i = 0; i < fp->memory_count; i++)
        if (is_requested(request, fp->memory[i].kind))
            add_kind(&a, &fp->memory[i]);
    if (out->choice_count == 0)
        return err_set_hint(
            err, STATUS_NOT_APPLICABLE, nothing_left_step(&a),
            "fingerprint %s has no measured memory %sat this location with sufficient size%s%s",
            out->fingerprint_id, request->kind > 0 ? "of this kind " : "",
            out->left_out_count > 0 ? ": " : "",
            out->left_out_count > 0 ? out->left_out[0].why : "");
    rank(out);
    write_reason(&a);
    write_next_step(&a);
    return STATUS_OK;
}
