/* strategy_cost.h: computes the cost of each strategy, as a part of strategy_plan.c. The unit is a
 * nanosecond of the whole GPU per item. The functions are pure, allocate nothing, and may be called
 * on any thread. docs/planner.md explains the formulas. */
#pragma once

#include "planner/access_cost.h"
#include "planner/layout.h"
#include "planner/strategy.h"

/* The misses of the job's accesses to the first bytes of its allocations. */
struct misses {
    uint64_t even_bytes; /* evenly touched bytes that miss as often without the concentration of the
                            job, and the reserve; all bytes if they are usable */
    double share;        /* misses with the concentration, relative to those without it */
};

/* A job and the costs of its parts, in nanoseconds per item. */
struct costing {
    const struct fingerprint *fp;
    const struct job_request *job;
    const struct strategy_answer *sizes; /* only its layout and its allocations are set */
    uint64_t bytes;                      /* touched bytes of all allocations */
    struct reach_limit limit; /* limit whose usable_bytes exclude the reserve and the margin */
    struct misses misses;     /* of accesses to `bytes` */
    struct access_cost access_cost; /* costs of accesses to the first allocation that is touched */
    double scattered;               /* scattered share of the memory */
    enum basis basis;
    double step_ns;  /* cost of one launch, divided by the number of items */
    double first_ns; /* cost of the first launch of a batch, divided by the number of items */
    double chain_ns; /* cost of the dependent reads of one pass that its launch does not include,
                        divided by the number of items */
    double bank_ns;  /* cost of the wait for the busiest bank in one pass over all memory, divided
                        by the number of items */
    double scan_ns;  /* cost of scanning one position */
    double host_ns;  /* cost of the input over the link, which works in parallel */
    double read_ns;  /* cost of reading the input from this GPU's memory */
    bool local;     /* all input is in this GPU's memory; if false, input that is read again is kept
                       there */
    double keep_ns; /* cost of keeping the input in this GPU's memory */
    double partition_ns;     /* cost of writing the partitioned input */
    double partitioned_ns;   /* cost of reading the partitioned input */
    double add_ns;           /* cost of an additional pass or window that adds to the output */
    bool streams_known;      /* all costs from read_ns on are known */
    bool cached;             /* `access` is the cost of a set that caches keep in part */
    double slowdown;         /* measured slowdown of accesses in windows */
    struct maybe_f64 access; /* cost of the accesses within the reach, including the output that is
                                written once, excluding the input */
};

/* The number of steps of each strategy: launches, resets and waits. */
enum {
    STEPS_NAIVE = 1,
    STEPS_WINDOWS = 3, /* a reset of the queues, a launch, and the wait for the slowest window */
    STEPS_PARTITIONED = 5, /* two more launches for the partition, which count and write */
};

/* The cost of one strategy. If `known` is false, `ns` is 0 and `why` has the reason. */
struct cost {
    bool known;
    double ns;
    double launch_ns; /* part of `ns` for launches and their side effects */
    double spare_ns;  /* part of `ns` that the scan adds to the other resources */
    enum bound bound;
    enum reason why;
};

/* The cost, the length and the number of passes over scopes. */
struct scope_cost {
    struct cost cost;
    uint64_t scope_bytes; /* bytes of each pass except the last */
    uint64_t passes;
};

/* Computes the costs of a checked job. `limit` comes from reach_limit_read, less reserve and
 * margin. `sizes` must have layout, allocations and item_bytes; the function writes the basis of
 * each allocation. */
void costing_begin(const struct fingerprint *fp, const struct job_request *job,
                   const struct reach_limit *limit, struct strategy_answer *sizes,
                   struct costing *out);

/* Sets the share of the memory that is scattered. After costing_begin the share is
 * job->scattered. */
void costing_scatter(struct costing *c, double scattered);

struct cost cost_naive(const struct costing *c);

/* Returns the cost of passes of at most `longest` bytes each. Passes are as equal as whole entries
 * of `entry_bytes` allow. */
struct scope_cost cost_scopes(const struct costing *c, uint64_t longest, uint64_t entry_bytes);

/* Writes the cheapest scopes over all levels of the TLB to `*out`. Returns false if no level has
 * room for a scope. */
bool cost_best_scopes(const struct costing *c, struct scope_cost *out);

/* Returns the cost if the SMs work in `parts` parts. Each part scans all positions, reads all
 * input, and makes its share of the accesses. The accesses take `access_ns` of the whole GPU per
 * item. */
struct cost cost_by_part(const struct costing *c, double access_ns, double parts);

struct cost cost_windows(const struct costing *c, const struct placement_answer *windows);
struct cost cost_filtered(const struct costing *c, const struct placement_answer *windows);
struct cost cost_partitioned(const struct costing *c, const struct placement_answer *windows);

/* Returns the nanoseconds per item of this number of launches, resets and waits, at least 1. */
double cost_steps(const struct costing *c, uint64_t steps);

/* Returns the bytes per item that the strategy moves in the L2 cache or behind it and that naive
 * does not move. `readings` is the number of passes or windows. */
double cost_extra_bytes(const struct costing *c, enum strategy s, uint64_t readings);
