/* strategy_cost.c: computes the costs. Four resources work at the same time: the scan of positions,
 * the link that brings input, memory, and translation. A pass takes the time of the busiest
 * resource. docs/planner.md has the formulas ("A pass", "The strategies") and their validation. */
#include "planner/strategy_cost.h"

#include "planner/line_reuse.h"
#include "planner/set_cost.h"

#include <math.h>

/* MOVES_TO_ADD counts a read and a write, because an addition to a number in memory needs both.
 * SOFTNESS is the exponent of soft_max. DEPENDENT_IN_LAUNCH is the number of dependent reads that
 * the time of a launch includes. */
enum {
    MOVES_TO_ADD = 2,
    SOFTNESS = 6,
    NS_PER_US = 1000,
    NS_PER_MS = 1000000,
    DEPENDENT_IN_LAUNCH = 2
};

/* The size of a position (an offset) that a partition writes if the job has no input. */
static const double POSITION_BYTES = 8;

/* Nanoseconds per item of each resource, for a pass or a part of a pass. */
struct load {
    double scan;
    double memory;
    double translation;
    bool waits;  /* the time of memory was measured by a job whose threads wait for each access */
    bool chains; /* the scan waits for chains of reads */
};

/* Returns the time of two resources for a job that waits for its accesses, so that few of them are
 * in flight: for the results of atomics, or for rows that a thread adds before it continues. If the
 * two times are similar, both count; if they are far apart, only the larger time counts. Memory and
 * translation of other jobs overlap, as all measured curves show, so that only the larger time
 * counts. */
static double soft_max(double a, double b)
{
    const double most = fmax(a, b);
    const double ratio = most > 0 ? fmin(a, b) / most : 0;

    return most * pow(1 + pow(ratio, SOFTNESS), 1.0 / SOFTNESS);
}

static bool waits_for_accesses(const struct job_request *job)
{
    return job->in_reach_gbps > 0 && job->access == ACCESS_ATOMIC;
}

static struct cost busiest(const struct load *l)
{
    struct cost c = {.known = true, .ns = l->memory, .bound = BOUND_MEMORY};
    double others;

    if (l->translation > c.ns)
        c = (struct cost){.known = true, .ns = l->translation, .bound = BOUND_TRANSLATION};
    if (l->waits && l->translation > 0)
        c.ns = soft_max(l->memory, l->translation);
    others = c.ns;
    if (l->scan > others)
        c.bound = BOUND_SCAN;
    c.ns = l->chains ? soft_max(l->scan, others) : fmax(l->scan, others);
    c.spare_ns = c.ns - others;
    return c;
}

static struct cost unknown(enum reason why)
{
    return (struct cost){.known = false, .bound = BOUND_UNKNOWN, .why = why};
}

/* ---- the accesses of an item ---- */

/* Returns the costs of accesses to allocation `i`. If the costing has them for the same size, they
 * are returned from the costing; otherwise they are computed in `room`. */
static const struct access_cost *cost_of(const struct costing *c, uint32_t i,
                                         struct access_cost *room)
{
    const struct strategy_allocation *const a = &c->sizes->allocations[i];
    const struct throughput *const t = &c->fp->throughput;

    if (a->transaction_bytes == c->access_cost.transaction_bytes &&
        a->element_bytes == c->access_cost.element_bytes)
        return &c->access_cost;
    access_cost_read(t, &c->limit, c->job->access, a->transaction_bytes, room);
    access_cost_add_lines(room, t, c->job->access, a->element_bytes);
    access_cost_scatter(room, c->fp, c->scattered);
    return room;
}

static double touches_of(const struct costing *c, uint32_t i)
{
    return c->sizes->layout.of[i].touches;
}

/* Returns the time of translation per item over the first `bytes`, with the current share of
 * scattered memory. */
static struct maybe_f64 translation_ns(const struct costing *c, uint64_t bytes)
{
    struct access_cost room;
    double sum = 0;

    for (uint32_t i = 0; i < c->sizes->layout.count; i++) {
        struct maybe_f64 ns;
        if (!(touches_of(c, i) > 0))
            continue;
        ns = access_cost_translation_ns(cost_of(c, i, &room), bytes);
        if (!IS_KNOWN(ns))
            return ns;
        sum += touches_of(c, i) * ns.v;
    }
    return KNOWN_F64(sum);
}

/* Returns the weaker of two bases. The basis of an item is the weakest basis of its accesses. */
static enum basis weaker(enum basis a, enum basis b)
{
    return a == BASIS_NONE || b == BASIS_NONE ? BASIS_NONE : a > b ? a : b;
}

static void add_accesses(struct costing *c, struct strategy_answer *sizes)
{
    struct access_cost room;
    double within = 0;
    double slowed = 0;

    c->basis = BASIS_MEASURED;
    c->access = KNOWN_F64(0);
    for (uint32_t i = 0; i < sizes->layout.count; i++) {
        const struct access_cost *cost = cost_of(c, i, &room);
        const double touches = touches_of(c, i);
        double weight;
        sizes->allocations[i].basis = basis_of_origin(c->fp, cost->basis);
        if (!(touches > 0))
            continue;
        weight = touches * (IS_KNOWN(cost->in_reach_ns) ? cost->in_reach_ns.v : 1);
        within += weight;
        slowed += weight * access_cost_by_group_slowdown(cost, c->bytes);
        c->basis = weaker(c->basis, cost->basis);
        if (!IS_KNOWN(cost->in_reach_ns))
            c->access = cost->in_reach_ns;
        else if (IS_KNOWN(c->access))
            c->access.v += touches * cost->in_reach_ns.v;
    }
    c->slowdown = slowed / within;
    if (c->job->in_reach_gbps > 0) {
        c->access = KNOWN_F64(sizes->item_bytes / c->job->in_reach_gbps);
        c->basis = c->basis == BASIS_NONE ? BASIS_JOB : c->basis;
    }
}

static uint32_t first_touched(const struct layout *l)
{
    uint32_t i = 0;

    while (i + 1 < l->count && !(l->of[i].touches > 0))
        i++;
    return i;
}

/* Returns the nanoseconds of a read whose result another read waits for. A launch ends with its
 * slowest chain, so this is the time of the slow loads. Returns 0 if no latency is known. */
static double latency_ns(const struct fingerprint *fp)
{
    const struct maybe_f64 cycles = fp->latency.tail_cycles;
    const struct maybe_u32 khz = fp->conditions.sm_clock_khz;

    if (IS_KNOWN(cycles) && IS_KNOWN(khz) && khz.v > 0)
        return cycles.v * NS_PER_MS / khz.v;
    return IS_KNOWN(fp->parallelism.latency_ns) ? fp->parallelism.latency_ns.v : 0;
}

/* Computes the time from the end of the mean bank and of the mean chain to the end of the pass. */
static void add_tail(struct costing *out, const struct job_request *job)
{
    const double items = (double)job->accesses;
    const uint32_t reads = job->dependent_reads;
    double touches = 0;

    out->chain_ns = out->bank_ns = 0;
    if (job->accesses == 0)
        return;
    if (reads > DEPENDENT_IN_LAUNCH)
        out->chain_ns = (reads - DEPENDENT_IN_LAUNCH) * latency_ns(out->fp) / items;
    if (job->access != ACCESS_READ)
        return;
    for (uint32_t i = 0; i < out->sizes->layout.count; i++)
        touches += touches_of(out, i);
    if (out->sizes->layout.count == 1 && job->lines > 0)
        touches *= fmin(1, job->lines);
    out->bank_ns = job->busiest_bank_ns * sqrt(touches * items) / items;
}

/* Returns the cost of the tails of passes that share the accesses. */
static double tails_ns(const struct costing *c, uint64_t passes)
{
    return c->chain_ns * (double)passes + (c->cached ? 0 : c->bank_ns * sqrt((double)passes));
}

/* Computes all costs of an item except the cost of its accesses. */
static void add_streams(struct costing *out, const struct job_request *job)
{
    const double computed = job->input_bytes > 0 ? job->input_bytes : POSITION_BYTES;
    const double partitioned = job->partition_bytes > 0 ? job->partition_bytes : computed;
    const double stream = out->access_cost.stream_ns;
    const double launch_us = job->launch_us > 0 ? job->launch_us : STRATEGY_LAUNCH_US;

    out->streams_known = stream > 0;
    out->local = !(job->input_gbps > 0);
    out->step_ns = job->accesses > 0 ? launch_us * NS_PER_US / (double)job->accesses : 0;
    out->first_ns = job->accesses > 0 && job->first_launch_us > 0
                        ? job->first_launch_us * NS_PER_US / (double)job->accesses
                        : out->step_ns;
    out->scan_ns = job->scan_gps > 0 ? 1 / job->scan_gps : 0;
    out->host_ns = out->local ? 0 : job->input_bytes / job->input_gbps;
    out->read_ns = job->input_bytes * stream;
    out->keep_ns = out->local ? 0 : out->read_ns;
    out->partition_ns = partitioned * stream * out->access_cost.write_factor;
    out->partitioned_ns = partitioned * stream;
    out->add_ns = job->output_bytes * stream * MOVES_TO_ADD;
}

/* Replaces the cost of accesses by the measured cost of a set of this length, if caches may keep a
 * part of the set. The new cost may be lower than the cost of memory. It includes translation, so
 * the set must be within the reach. */
static void add_cached(struct costing *c, const struct strategy_answer *sizes)
{
    const bool fits = !c->limit.observed || c->bytes <= c->limit.usable_bytes;
    const struct maybe_f64 ns =
        set_cost_ns(c->fp, SET_SAME,
                    sizes->allocations[first_touched(&sizes->layout)].transaction_bytes, c->bytes);

    if (!fits || sizes->layout.count > 1 || c->job->access != ACCESS_READ ||
        c->job->in_reach_gbps > 0 || c->job->lines > 0 || c->job->line_concentration > 0 ||
        !IS_KNOWN(ns) || !IS_KNOWN(c->access))
        return;
    c->access.v = ns.v * touches_of(c, 0);
    c->cached = true;
}

/* Returns the nanoseconds of an access whose lines are in the L2 and may also be in the L1. Each SM
 * makes its share of the accesses, and its L1 is empty when a launch begins. `missed` is the share
 * that misses in the L2, and `reuse` describes the L2. */
static double hit_ns(const struct costing *c, double missed, struct line_reuse reuse)
{
    const struct fingerprint *const fp = c->fp;
    const struct cache_facts *const l1 = &fp->caches[CACHE_L1];
    const struct maybe_u64 l1_keeps = cache_kept_bytes(l1->fits_bytes, l1->size_bytes);
    const double lines = c->access_cost.lines;
    const double l2_ns =
        set_cost_ns(fp, SET_SAME, FINGERPRINT_CURVE_BYTES, (uint64_t)reuse.cache_bytes).v;
    const double l1_ns =
        set_cost_ns(fp, SET_SAME, FINGERPRINT_CURVE_BYTES, set_cost_shortest(fp, SET_SAME)).v;
    double further; /* misses of the L1 that hit in the L2, relative to all hits */

    if (!IS_KNOWN(l1_keeps) || fp->gpu.sm_count == 0 || c->job->accesses == 0 || missed >= 1 ||
        set_cost_shortest(fp, SET_SAME) > l1_keeps.v)
        return l2_ns * lines;
    reuse.cache_bytes = (double)l1_keeps.v;
    reuse.kept_bytes = FINGERPRINT_CURVE_BYTES;
    reuse.other_bytes = c->job->input_bytes / lines;
    reuse.reads = (double)c->job->accesses * lines / fp->gpu.sm_count;
    further = fmax(0, line_reuse_misses(&reuse) - missed) / (1 - missed);
    return (further * l2_ns + (1 - further) * fmin(l1_ns, l2_ns)) * lines;
}

/* Lets reads of one allocation share lines, and hit lines that the caches keep. */
static void add_line_reuse(struct costing *c)
{
    const struct job_request *const job = c->job;
    const struct maybe_u64 keeps = set_cost_l2_keeps(c->fp);
    struct access_cost *const cost = &c->access_cost;
    struct line_reuse reuse;
    double missed;

    if (c->sizes->layout.count > 1 || job->in_reach_gbps > 0 || !IS_KNOWN(c->access) ||
        !(cost->lines > 0))
        return;
    access_cost_share_lines(cost, &c->fp->throughput, job->lines);
    if (job->line_concentration > 0 && IS_KNOWN(keeps)) {
        reuse = (struct line_reuse){.concentration = job->line_concentration,
                                    .lines = fmax(1, (double)c->bytes / FINGERPRINT_CURVE_BYTES),
                                    .kept_bytes = cost->moved_bytes / cost->lines,
                                    .other_bytes =
                                        (job->input_bytes + job->written_bytes) / cost->lines,
                                    .cache_bytes = (double)keeps.v};
        missed = line_reuse_misses(&reuse);
        cost->in_reach_ns.v = missed * cost->in_reach_ns.v +
                              (1 - missed) * fmin(hit_ns(c, missed, reuse), cost->in_reach_ns.v);
        cost->moved_bytes *= missed;
    }
    c->access.v = touches_of(c, 0) * cost->in_reach_ns.v;
}

/* Returns the nanoseconds by which memory is slower because it both reads and writes. Memory that
 * only reads rows of several lines is faster than for reads of one line. Beside writes of the same
 * size it is not, and beside fewer writes it is in proportion. */
static double mixture_ns(const struct costing *c)
{
    const double reads =
        c->access_cost.moved_bytes * touches_of(c, first_touched(&c->sizes->layout));
    const double streams = reads * c->access_cost.stream_ns;

    if (c->sizes->layout.count > 1 || c->job->access != ACCESS_READ || c->cached || !(reads > 0))
        return 0;
    return fmax(0, streams - c->access.v) * fmin(1, c->job->written_bytes / reads);
}

/* Counts the misses of accesses to the first `bytes`. */
static struct misses count_misses(const struct costing *c, uint64_t bytes)
{
    const struct layout *const l = &c->sizes->layout;
    const double concentration = fmax(c->job->concentration, c->job->window_concentration);
    const uint64_t reach = c->limit.reach_bytes;
    struct misses m = {.even_bytes = bytes, .share = 1};
    double even;
    double own;

    if (bytes <= c->limit.usable_bytes)
        return m;
    even = layout_effective_bytes(l, 0, reach, bytes);
    m.even_bytes = (uint64_t)even + c->job->reserve_bytes;
    if (!(concentration > 0) || even <= (double)reach)
        return m;
    own = layout_effective_bytes(l, concentration, reach, bytes);
    m.share = fmin(1, fmax(0, (1 - (double)reach / own) / (1 - (double)reach / even)));
    return m;
}

void costing_begin(const struct fingerprint *fp, const struct job_request *job,
                   const struct reach_limit *limit, struct strategy_answer *sizes,
                   struct costing *out)
{
    const uint32_t first = first_touched(&sizes->layout);
    const bool has_own = job->in_reach_gbps > 0;

    out->fp = fp;
    out->job = job;
    out->sizes = sizes;
    out->bytes = layout_touched_bytes(&sizes->layout);
    out->limit = *limit;
    out->scattered = job->scattered;
    out->misses = count_misses(out, out->bytes);
    access_cost_read(&fp->throughput, limit, job->access,
                     sizes->allocations[first].transaction_bytes, &out->access_cost);
    access_cost_add_lines(&out->access_cost, &fp->throughput, job->access,
                          sizes->allocations[first].element_bytes);
    access_cost_scatter(&out->access_cost, fp, job->scattered);
    add_streams(out, job);
    add_tail(out, job);
    add_accesses(out, sizes);
    add_line_reuse(out);
    sizes->basis = basis_of_origin(fp, out->basis);
    sizes->in_reach_gbps = out->access;
    if (IS_KNOWN(out->access))
        sizes->in_reach_gbps.v = sizes->item_bytes / out->access.v;
    out->cached = false;
    add_cached(out, sizes);
    if (!out->streams_known && ((out->local && job->input_bytes > 0) || job->output_bytes > 0 ||
                                (job->written_bytes > 0 && !has_own)))
        out->access = UNKNOWN_F64(REASON_NOT_MEASURED);
    if (!IS_KNOWN(out->access))
        return;
    /* The job's own measurement includes one reading of the input and the output that is written
     * once. */
    if (!has_own)
        out->access.v += job->written_bytes * out->access_cost.stream_ns + mixture_ns(out);
    else if (out->local)
        out->access.v = out->access.v > out->read_ns ? out->access.v - out->read_ns : 0;
}

void costing_scatter(struct costing *c, double scattered)
{
    c->scattered = scattered;
    access_cost_scatter(&c->access_cost, c->fp, scattered);
}

/* ---- a pass ---- */

double cost_steps(const struct costing *c, uint64_t steps)
{
    return c->first_ns + c->step_ns * (double)(steps - 1);
}

/* Adds the time of the link, which works in parallel with all other resources; the tails of the
 * passes, as far as a longer scan does not hide them; and the time of the launches, which follow
 * one another. */
static struct cost in_all(const struct costing *c, struct cost cost, uint64_t passes,
                          uint64_t steps)
{
    const double launches = cost_steps(c, steps);

    if (cost.known && c->host_ns > cost.ns) {
        cost.ns = c->host_ns;
        cost.bound = BOUND_INPUT;
        cost.launch_ns = 0;
    }
    cost.ns += cost.known ? fmax(0, tails_ns(c, passes) - cost.spare_ns) : 0;
    if (cost.known && launches > cost.ns)
        cost.bound = BOUND_LAUNCH;
    cost.ns += cost.known ? launches : 0;
    cost.launch_ns += cost.known ? launches : 0;
    return cost;
}

/* Returns the time of translation per item over bytes with these misses, with the concentration of
 * the job. */
static struct maybe_f64 concentrated_translation_ns(const struct costing *c,
                                                    const struct misses *misses)
{
    struct maybe_f64 ns = translation_ns(c, misses->even_bytes);

    if (IS_KNOWN(ns))
        ns.v *= misses->share;
    return ns;
}

struct cost cost_naive(const struct costing *c)
{
    const struct maybe_f64 translation = concentrated_translation_ns(c, &c->misses);
    struct load l = {.scan = c->scan_ns,
                     .translation = translation.v,
                     .waits = waits_for_accesses(c->job),
                     .chains = c->job->dependent_reads > 0};

    if (!IS_KNOWN(c->access))
        return unknown(c->access.reason);
    if (!IS_KNOWN(translation))
        return unknown(translation.reason);
    l.memory = c->access.v + (c->local ? c->read_ns : 0);
    return in_all(c, busiest(&l), 1, STEPS_NAIVE);
}

/* ---- scopes ---- */

/* Returns the time of translation per item over all bytes, without the concentration of the job. If
 * the price of scattered memory is unknown, the price of contiguous memory is used. */
static struct maybe_f64 known_translation_ns(const struct costing *c)
{
    const struct maybe_f64 ns = translation_ns(c, c->misses.even_bytes);
    struct costing contiguous;

    if (IS_KNOWN(ns))
        return ns;
    contiguous = *c;
    costing_scatter(&contiguous, 0);
    return translation_ns(&contiguous, c->misses.even_bytes);
}

/* Returns the nanoseconds per item for cold TLBs. At its beginning a pass finds the translations of
 * another scope in the TLBs. Each translation of the new scope costs one miss in the TLB of each
 * group, or in one TLB of a wider level. Nothing hides these misses. There are no more misses than
 * accesses. */
static double cold_ns(const struct costing *c, uint64_t scope_bytes, uint64_t entry_bytes)
{
    const bool by_group = scope_bytes <= c->limit.usable_bytes;
    const uint32_t groups = c->fp->topology.partition.group_count;
    const struct maybe_f64 all = known_translation_ns(c);
    double touches = 0;
    double misses;

    if (c->job->accesses == 0 || !c->limit.observed || c->bytes <= c->limit.reach_bytes ||
        !IS_KNOWN(all))
        return 0;
    for (uint32_t i = 0; i < c->sizes->layout.count; i++)
        touches += touches_of(c, i);
    const uint64_t entries = scope_bytes / entry_bytes + 1;
    misses = (double)entries * (by_group && groups > 0 ? groups : 1);
    misses =
        fmin(misses / (double)c->job->accesses, touches * (double)scope_bytes / (double)c->bytes);
    return misses * all.v / touches / (1 - (double)c->limit.reach_bytes / (double)c->bytes);
}

/* Returns the cost of a pass that makes this share of the accesses and reads all input. */
static struct cost cost_pass(const struct costing *c, double share, double translation_ns,
                             double input_ns)
{
    const struct load l = {.scan = c->scan_ns,
                           .memory = share * c->access.v + input_ns,
                           .translation = share * translation_ns,
                           .waits = waits_for_accesses(c->job),
                           .chains = c->job->dependent_reads > 0};

    return busiest(&l);
}

struct scope_cost cost_scopes(const struct costing *c, uint64_t longest, uint64_t entry_bytes)
{
    const uint64_t bytes = c->bytes;
    const uint64_t least = (bytes - 1) / longest + 1;
    const uint64_t equal = ((bytes - 1) / least / entry_bytes + 1) * entry_bytes;
    struct scope_cost s = {.scope_bytes = equal < longest ? equal : longest};
    struct maybe_f64 translation;
    struct misses misses;
    double each; /* cost that each pass has, independent of its share of the bytes */
    double share;
    double busy;   /* share of the accesses in the busiest pass */
    double cooler; /* accesses to all other bytes, relative to evenly distributed accesses */
    double rest;
    struct cost other;
    struct cost last;

    s.passes = (bytes - 1) / s.scope_bytes + 1;
    misses = count_misses(c, s.scope_bytes);
    translation = concentrated_translation_ns(c, &misses);
    if (!IS_KNOWN(c->access) || !IS_KNOWN(translation)) {
        s.cost = unknown(IS_KNOWN(c->access) ? translation.reason : c->access.reason);
        return s;
    }
    share = (double)s.scope_bytes / (double)bytes;
    each = c->read_ns + c->add_ns * (double)(s.passes - 1) / (double)s.passes;
    busy = pow(share, 1 - c->job->window_concentration);
    cooler = (1 - busy) / (1 - share);
    rest = 1 - share * (double)(s.passes - 1);
    s.cost = cost_pass(c, busy, translation.v, each);
    other = cost_pass(c, share * cooler, translation.v, each);
    last = cost_pass(c, rest * cooler, translation.v, each);
    s.cost.launch_ns = cold_ns(c, s.scope_bytes, entry_bytes) * (double)s.passes;
    s.cost.ns += other.ns * (double)(s.passes - 2) + last.ns + c->keep_ns + s.cost.launch_ns;
    s.cost.spare_ns += other.spare_ns * (double)(s.passes - 2) + last.spare_ns;
    s.cost = in_all(c, s.cost, s.passes, s.passes);
    return s;
}

/* Returns whether `a` ranks before `b`. Known costs rank before unknown costs, low costs before
 * high costs, and few passes before many. */
static bool is_better(const struct scope_cost *a, const struct scope_cost *b)
{
    if (a->cost.known != b->cost.known)
        return a->cost.known;
    if (a->cost.known && a->cost.ns != b->cost.ns)
        return a->cost.ns < b->cost.ns;
    return a->passes < b->passes;
}

bool cost_best_scopes(const struct costing *c, struct scope_cost *out)
{
    const uint64_t reserve = c->job->reserve_bytes;
    bool found = c->limit.usable_bytes > 0 && c->bytes > c->limit.usable_bytes;

    if (found)
        *out = cost_scopes(c, c->limit.usable_bytes, c->limit.entry_bytes);
    for (uint32_t i = 0; i < c->fp->level_count && i < FINGERPRINT_MAX_LEVELS; i++) {
        const struct tlb_level *level = &c->fp->levels[i];
        const uint64_t entry = level->entry_bytes.v;
        struct scope_cost s;
        uint64_t taken;
        if (!IS_KNOWN(level->reach_bytes) || !IS_KNOWN(level->entry_bytes) || entry == 0)
            continue;
        /* Misses of nearer levels are part of the cost of an access within the reach. */
        if (level->reach_bytes.v <= c->limit.reach_bytes)
            continue;
        taken = entry + reach_limit_taken(entry, reserve) +
                layout_alignment_bytes(&c->sizes->layout, entry);
        if (taken >= level->reach_bytes.v || c->bytes <= level->reach_bytes.v - taken)
            continue;
        s = cost_scopes(c, level->reach_bytes.v - taken, entry);
        if (!found || is_better(&s, out))
            *out = s;
        found = true;
    }
    return found;
}

/* ---- windows ---- */

/* Returns the work of the busiest window, relative to the mean work of a window. */
static double imbalance_of(const struct costing *c, const struct placement_answer *w)
{
    return w->imbalance * pow(w->window_count, c->job->window_concentration);
}

/* Returns the nanoseconds of the accesses of an item if all windows take as long as the busiest
 * window. */
static struct maybe_f64 in_windows(const struct costing *c, const struct placement_answer *w)
{
    struct maybe_f64 ns = c->access;

    if (IS_KNOWN(ns))
        ns.v *= c->slowdown * imbalance_of(c, w);
    return ns;
}

struct cost cost_windows(const struct costing *c, const struct placement_answer *windows)
{
    const struct maybe_f64 access = in_windows(c, windows);
    const struct load l = {.scan = c->scan_ns * imbalance_of(c, windows), .memory = access.v};

    return IS_KNOWN(access) ? in_all(c, busiest(&l), 1, STEPS_WINDOWS) : unknown(access.reason);
}

/* Returns the time that the SMs of the smallest window take to scan all positions, relative to the
 * time of all SMs together. */
static double scan_alone(const struct placement_answer *w)
{
    uint32_t all = 0;
    uint32_t least = UINT32_MAX;

    for (uint32_t i = 0; i < w->window_count; i++) {
        all += w->windows[i].sm_count;
        if (w->windows[i].sm_count < least)
            least = w->windows[i].sm_count;
    }
    return least > 0 ? (double)all / least : 1;
}

struct cost cost_by_part(const struct costing *c, double access_ns, double parts)
{
    const struct load l = {.scan = c->scan_ns * parts,
                           .memory = access_ns + c->read_ns + c->keep_ns + c->add_ns};

    return in_all(c, busiest(&l), 1, STEPS_WINDOWS);
}

struct cost cost_filtered(const struct costing *c, const struct placement_answer *windows)
{
    const struct maybe_f64 access = in_windows(c, windows);
    struct load l = {.scan = c->scan_ns * scan_alone(windows),
                     .chains = c->job->dependent_reads > 0};

    if (!IS_KNOWN(access))
        return unknown(access.reason);
    l.memory = access.v + c->read_ns + c->keep_ns + c->add_ns * (windows->window_count - 1);
    return in_all(c, busiest(&l), 1, STEPS_WINDOWS);
}

/* Computes the cost of partitioned windows. All positions are read twice: once to count the
 * positions of each window, and once to write them. */
struct cost cost_partitioned(const struct costing *c, const struct placement_answer *windows)
{
    const struct maybe_f64 access = in_windows(c, windows);
    const double read_ns = c->local ? c->read_ns : 0;
    const struct load counting = {.scan = c->scan_ns, .memory = read_ns};
    const struct load writing = {.scan = c->scan_ns, .memory = read_ns + c->partition_ns};
    struct cost both = busiest(&writing);
    double second;

    if (!IS_KNOWN(access) || !c->streams_known)
        return unknown(IS_KNOWN(access) ? REASON_NOT_MEASURED : access.reason);
    second = access.v + c->partitioned_ns + c->add_ns * (windows->window_count - 1);
    if (second >= both.ns)
        both.bound = BOUND_MEMORY;
    both.ns += second + busiest(&counting).ns;
    both.spare_ns = 0; /* the accesses follow the scan */
    return in_all(c, both, 1, STEPS_PARTITIONED);
}

double cost_extra_bytes(const struct costing *c, enum strategy s, uint64_t readings)
{
    const struct job_request *job = c->job;
    const double added = (double)(readings - 1) * MOVES_TO_ADD * job->output_bytes;
    const double computed = job->input_bytes > 0 ? job->input_bytes : POSITION_BYTES;

    switch (s) {
    case STRATEGY_SCOPES:
    case STRATEGY_SIDES:
    case STRATEGY_FILTERED_WINDOWS: /* input from a link is kept in memory and read from there each
                                       time */
        return (double)(c->local ? readings - 1 : readings + 1) * job->input_bytes + added;
    case STRATEGY_PARTITIONED_WINDOWS:
        return 2 * (job->partition_bytes > 0 ? job->partition_bytes : computed) +
               (c->local ? job->input_bytes : 0) + added;
    default:
        return 0;
    }
}
