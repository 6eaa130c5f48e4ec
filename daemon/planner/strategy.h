/* strategy.h: ranks the strategies of a job. The planner takes the description of a job and returns
 * an option for each strategy. The functions are pure, allocate nothing, and may be called on any
 * thread. libreach links this module too. A call takes some microseconds if the caller passes the
 * id of the fingerprint (see placement.h), and some tens more for concentrated accesses to one
 * allocation.
 *
 *   naive        one pass, any SM anywhere
 *   scopes       one pass for each TLB scope (Karnagel 2017, section 5)
 *   windows      groups in windows; each SM draws work of its own window (Walker 2024, section 2.4)
 *   filtered     groups in windows; the SMs of each window scan all input and keep their part
 *   partitioned  the input is partitioned first (read, written, read again), then windows
 *   sides        within the reach: each SM reads lines of its own side of the L2
 *
 * The cost of a strategy is the cost of its bottleneck: the scan of positions, the input, memory or
 * translation. docs/planner.md has the formulas, the measurements and the assumptions.
 */
#pragma once

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
    STRATEGY_COUNT, /* of a plan; only answers about other kinds of memory have the next ones */
    STRATEGY_SORTED = STRATEGY_COUNT, /* one launch after a sort of the input by address */
    STRATEGY_CPU_GATHER,              /* threads of the CPU gather, and then the rows are copied */
    STRATEGY_ALL_COUNT
};
/* "naive", "scopes", "windows", "filtered-windows", "partitioned-windows", "sides", "sorted",
 * "cpu-gather" */
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

enum {
    STRATEGY_MAX_TRANSACTION = 1 << 20,
    STRATEGY_MAX_DEPENDENT = 1 << 20, /* reads in sequence */
    STRATEGY_WHY_BYTES = 320
};

/* The largest input_bytes, output_bytes and partition_bytes, and the largest rate (10^6 GB/s). */
#define STRATEGY_MAX_INPUT_BYTES 1048576.0
#define STRATEGY_MAX_RATE        1000000.0

/* The largest number of touches of an allocation per item. */
#define STRATEGY_MAX_TOUCHES 1000000.0

/* The default time of a launch, which is an assumption and not a measurement. Launching a kernel
 * and running its last blocks take microseconds each. Together they take ten microseconds if the
 * host works between two launches. */
#define STRATEGY_LAUNCH_US 10.0

/* One strategy for the job. If it is not possible, its numbers are 0 or unknown. */
struct strategy_option {
    enum strategy strategy;
    bool possible;                /* if false, `why` has the reason */
    struct maybe_f64 gbps;        /* predicted speed: item_bytes of useful items over the time */
    struct maybe_f64 times_naive; /* gbps relative to the gbps of naive */
    double launch_ns;             /* nanoseconds of launches, cold TLBs and waits per item */
    uint64_t passes;              /* passes over all the input; 1 except for scopes */
    uint32_t windows;             /* number of windows; 0 means no windows */
    uint64_t scope_bytes; /* length of each scope, except perhaps the last; 0 means no scopes */
    double extra_bytes;   /* bytes per item that the strategy moves and naive does not */
    struct maybe_f64 extra_bytes_total; /* extra bytes of all items, if their number is known */
    enum bound bound;                   /* bottleneck of most of the passes or windows */
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
    enum basis basis;               /* weakest basis among the costs of the accesses of an item */
    struct maybe_f64 in_reach_gbps; /* speed within the reach, without other limits */
    /* Speed of naive if all of the memory were physically contiguous, and if all of it were
     * physically scattered. */
    struct maybe_f64 naive_contiguous_gbps;
    struct maybe_f64 naive_scattered_gbps;
    /* The options, best first, by predicted throughput. Options within STRATEGY_WORTH of one
     * another are ordered by simplicity (naive, windows, sides, filtered, scopes, partitioned).
     * Impossible options are last. If the cost of naive was not measured, the lowest possible cost
     * is assumed. Only windows, which are free, then come before naive. At least options[0] is
     * possible. */
    struct strategy_option options[STRATEGY_COUNT];
    /* The length and the number of scopes; both are 0 if scopes are not possible. Scope k begins at
     * position k * scope_bytes of the layout. */
    uint64_t scope_bytes;
    uint64_t passes;
    /* The windows of the strategies windows, filtered and partitioned, if one of these is possible.
     * The bounds of windows are positions of the layout. If there is only one allocation, they are
     * bytes of it. */
    bool has_placement;
    struct placement_answer placement;
    char reason[STRATEGY_WHY_BYTES +
                320]; /* reason for the first option, with the compared numbers */
};

/* The least gain that counts, as a share. A smaller gain is within the error of the predictions. */
#define STRATEGY_WORTH 0.03

/* Replaces sizes of 0 by their defaults. Returns STATUS_INVALID_ARGUMENT if a size is above
 * STRATEGY_MAX_TRANSACTION. */
enum status strategy_sizes(uint32_t element_bytes, uint32_t transaction_bytes,
                           uint32_t *out_element, uint32_t *out_transaction, struct err *err);

/* Plans a job. Returns the errors of placement_plan. After an error `*out` is not valid. */
enum status strategy_plan(const struct fingerprint *fp, const struct job_request *job,
                          struct strategy_answer *out, struct err *err);
