/* strategy.h: the planner. It takes the description of a job and returns every way to do it,
 * ranked. The functions are pure, allocate nothing, and may be called on any thread. libreach links
 * it too. A call takes some microseconds if the caller passes the id of the fingerprint (see
 * placement.h).
 *
 *   naive        one pass, any SM anywhere
 *   scopes       one pass for each TLB scope (Karnagel 2017, section 5)
 *   windows      groups in windows; each SM draws work of its own window (Walker 2024, section 2.4)
 *   filtered     groups in windows; the SMs of each scan all the input and keep their part
 *   partitioned  the input is partitioned first (read, written, read again), then windows
 *   sides        within the reach: each SM reads lines of its own side of the L2
 *
 * The cost of each is the cost of its bottleneck: the scan of positions, the input, memory or
 * translation. docs/planner.md has the formulas, the measurements and the assumptions.
 */
#ifndef REACH_PLANNER_STRATEGY_H
#define REACH_PLANNER_STRATEGY_H

#include "planner/basis.h"
#include "planner/layout.h"
#include "planner/placement.h"
#include "planner/requests.h"

enum strategy {
    STRATEGY_NAIVE = 0,
    STRATEGY_SCOPES,
    STRATEGY_WINDOWS,
    STRATEGY_FILTERED_WINDOWS,
    STRATEGY_PARTITIONED_WINDOWS,
    STRATEGY_SIDES,
    STRATEGY_COUNT
};
/* "naive", "scopes", "windows", "filtered-windows", "partitioned-windows", "sides" */
const char *strategy_name(enum strategy s);

/* The bottleneck: the resource that is busy while the others wait. */
enum bound {
    BOUND_UNKNOWN = 0,
    BOUND_MEMORY,
    BOUND_TRANSLATION,
    BOUND_INPUT,
    BOUND_SCAN,
    BOUND_LAUNCH /* launches and their side effects take longer than the work */
};
const char *bound_name(enum bound b); /* "unknown", "memory", "translation", ... */

enum { STRATEGY_MAX_TRANSACTION = 1 << 20, STRATEGY_WHY_BYTES = 320 };

/* The largest input_, output_ and partition_bytes, and the largest rates (10^6 GB/s). */
#define STRATEGY_MAX_INPUT_BYTES 1048576.0
#define STRATEGY_MAX_RATE        1000000.0

/* The most touches of an allocation per item. */
#define STRATEGY_MAX_TOUCHES 1000000.0

/* This is assumed, not measured. Launching a kernel and running its last blocks take microseconds
 * each; ten if the host works between two launches. */
#define STRATEGY_LAUNCH_US 10.0

/* One way to do the job. If it is not possible, its numbers are 0 or unknown. */
struct strategy_option {
    enum strategy strategy;
    bool possible;         /* if false, `why` has the reason */
    struct maybe_f64 gbps; /* prediction: item bytes (below) of useful items over the whole time */
    struct maybe_f64 times_naive; /* gbps relative to the gbps of naive */
    double launch_ns;             /* nanoseconds of launches, cold TLBs and waits, for one item */
    uint64_t passes;              /* passes over all the input; 1 except for scopes */
    uint32_t windows;             /* 0 means none */
    uint64_t scope_bytes; /* bytes of each pass, except perhaps the last; 0 means no scopes */
    double extra_bytes;   /* bytes for one item beyond those that naive moves */
    struct maybe_f64 extra_bytes_total; /* unknown if the number of items is */
    enum bound bound;                   /* bottleneck of most passes or windows */
    char why[STRATEGY_WHY_BYTES];       /* explanation in one sentence */
};

/* One allocation with defaults filled in. */
struct strategy_allocation {
    uint32_t element_bytes;
    uint32_t transaction_bytes;
    enum basis basis;
};

struct strategy_answer {
    char fingerprint_id[FINGERPRINT_ID_BYTES];
    struct layout layout; /* layout of the allocations */
    struct strategy_allocation allocations[LAYOUT_MAX];
    double item_bytes;              /* transaction bytes of one item, weighted by touches */
    enum basis basis;               /* weakest basis among the costs of items */
    struct maybe_f64 in_reach_gbps; /* such accesses within the reach, without other limits */
    /* Speed of naive if all of the memory were contiguous, and if none of it were. */
    struct maybe_f64 naive_contiguous_gbps;
    struct maybe_f64 naive_scattered_gbps;
    /* The options, best first, by predicted throughput. Options within STRATEGY_WORTH of one
     * another are ordered by simplicity (naive, windows, sides, filtered, scopes, partitioned).
     * Impossible options are last. If the cost of naive was not measured, it is assumed to be as
     * low as possible; only windows, which are free, come before it. options[0] is always
     * possible. */
    struct strategy_option options[STRATEGY_COUNT];
    /* The scopes; both are 0 if scopes are not possible. Scope k begins at position k scope_bytes
     * of the layout. */
    uint64_t scope_bytes;
    uint64_t passes;
    /* The windows of the options windows, filtered and partitioned; set if one of them is possible.
     * The bounds of the windows are positions of the layout: bytes of the allocation, if there is
     * only one. */
    bool has_placement;
    struct placement_answer placement;
    char reason[STRATEGY_WHY_BYTES + 320]; /* reason for the first option: the compared numbers */
};

/* A smaller gain is within the error of the predictions. */
#define STRATEGY_WORTH 0.03

/* Fills in the defaults for sizes of 0. Returns STATUS_INVALID_ARGUMENT above
 * STRATEGY_MAX_TRANSACTION. */
enum status strategy_sizes(uint32_t element_bytes, uint32_t transaction_bytes,
                           uint32_t *out_element, uint32_t *out_transaction, struct err *err);

/* Errors are those of placement_plan. After an error `*out` is not valid. */
enum status strategy_plan(const struct fingerprint *fp, const struct job_request *job,
                          struct strategy_answer *out, struct err *err);

#endif
