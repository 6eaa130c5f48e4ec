/* host_batch.c: see host_batch.h. */
#include "planner/host_batch.h"

#include "planner/strategy.h"

#include <math.h>

/* Another strategy must be faster than one launch by this factor. The times of passes were
 * predicted within some 10 % (tests/bench/bench_host_strategies.py). */
static const double WORTH = 1.1;

/* The share of a miss that a miss costs while a scope is loaded. The entries of a scope share few
 * lines of page tables, which stay close to the page walker. In eight batches on an H200 the share
 * was 0.68 to 0.86 (docs/planner.md). */
static const double LOADING = 0.72;

/* Returns the nanoseconds of a miss of one entry: a read of 128 bytes in the first region that is
 * mostly out of reach, or in the largest region, divided by the share of reads that miss. */
static double miss_ns(const struct memory_facts *m)
{
    enum { MOSTLY = 4 }; /* times the reach */
    const struct curve_point *p = NULL;

    for (uint32_t i = 0; i < m->curve_count; i++) {
        if (IS_KNOWN(m->curve[i].naive_gbps) && m->curve[i].naive_gbps.v > 0)
            p = &m->curve[i];
        if (p && p->region_bytes >= MOSTLY * m->reach_bytes.v)
            break;
    }
    if (!p || p->region_bytes <= m->reach_bytes.v)
        return 0;
    return FINGERPRINT_CURVE_BYTES / p->naive_gbps.v /
           (1 - (double)m->reach_bytes.v / (double)p->region_bytes);
}

/* Returns the entries that rows in `bytes` touch: E (1 - exp(-rows / E)) of E entries on
 * average. */
static double touched(const struct memory_facts *m, uint64_t bytes, double rows)
{
    const double entries = (double)bytes / (double)m->entry_bytes.v;

    return entries * (1 - exp(-rows / entries));
}

/* Returns the nanoseconds of the rows of a pass, whose TLB contains nothing of the scope at first.
 * Within the reach each entry is loaded once, and the other rows hit. In a longer scope each row
 * misses until the TLB is full. Then rows take `row_ns`, the time of a job that stays in the
 * scope. */
static double rows_ns(const struct memory_facts *m, uint64_t scope, double rows, double row_ns)
{
    const double entries = (double)scope / (double)m->entry_bytes.v;
    const double reached = (double)m->reach_bytes.v / (double)scope;

    if (reached >= 1) {
        const double loads = touched(m, scope, rows);
        return fmax(rows * row_ns, loads * LOADING * miss_ns(m) + (rows - loads) * row_ns);
    }
    const double until_full = fmin(rows, -entries * log(1 - reached));
    return fmax(rows * row_ns, until_full * miss_ns(m) + (rows - until_full) * row_ns);
}

/* Returns the nanoseconds of a launch, or of its scan of the whole input if that takes longer. */
static double scan_ns(const struct host_batch *b)
{
    const struct memory_request *const r = b->request;
    const double launch = (r->launch_us > 0 ? r->launch_us : STRATEGY_LAUNCH_US) * 1000;

    return b->stream_gbps > 0 ? fmax(launch, (double)r->accesses * r->input_bytes / b->stream_gbps)
                              : launch;
}

/* Returns the nanoseconds of a batch in `passes` passes, or 0 if the cost of such a scope is not
 * known. A pass scans the whole input and accesses its share of the rows. */
static double passes_ns(const struct host_batch *b, uint64_t passes)
{
    const uint64_t scope = (b->request->bytes - 1) / passes + 1;
    const double rows = (double)b->request->accesses / (double)passes;
    const struct maybe_f64 row = access_cost_naive_ns(b->cost, scope);

    if (!IS_KNOWN(row))
        return 0;
    return (double)passes * (rows_ns(b->memory, scope, rows, row.v) + scan_ns(b));
}

/* Returns the nanoseconds below which another strategy is worth its effort, or 0 if they are not
 * known: the time of one launch, divided by WORTH. If one launch was not measured over all memory,
 * its time over the longest region counts. */
static double worth_ns(const struct host_batch *b)
{
    const uint64_t bytes = b->request->bytes;
    const struct maybe_f64 naive =
        access_cost_naive_ns(b->cost, bytes < b->longest_bytes ? bytes : b->longest_bytes);

    return IS_KNOWN(naive) ? naive.v * (double)b->request->accesses / WORTH : 0;
}

uint64_t host_batch_passes(const struct host_batch *b, double *out_ns)
{
    const uint64_t bytes = b->request->bytes;
    uint64_t best = 0;

    *out_ns = worth_ns(b);
    for (uint64_t passes = 2; passes <= bytes && bytes / passes >= b->memory->reach_bytes.v / 4;
         passes *= 2) {
        const double ns = bytes / passes < b->longest_bytes ? passes_ns(b, passes) : 0;
        if (ns > 0 && ns < *out_ns) {
            *out_ns = ns;
            best = passes;
        }
    }
    return best;
}

double host_batch_sorted_ns(const struct host_batch *b)
{
    const double rows = (double)b->request->accesses;
    const double loads = touched(b->memory, b->request->bytes, rows) * miss_ns(b->memory);
    const double ns = fmax(rows * b->cost->in_reach_ns.v, loads) + scan_ns(b);

    return IS_KNOWN(b->cost->in_reach_ns) && ns < worth_ns(b) ? ns : 0;
}
