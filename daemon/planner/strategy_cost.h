/* strategy_cost.h: the cost of each way to do a job. The unit is a nanosecond of the whole GPU per
 * item. The functions are pure, allocate nothing, and may be called on any thread. Part of the
 * planner. docs/planner.md explains the formulas. */
#ifndef REACH_PLANNER_STRATEGY_COST_H
#define REACH_PLANNER_STRATEGY_COST_H

#include "planner/access_cost.h"
#include "planner/layout.h"
#include "planner/strategy.h"

/* A job and the costs of its parts. */
struct costing {
    const struct fingerprint *fp;
    const struct job_request *job;
    const struct strategy_answer *sizes; /* only the layout and the allocations are set */
    uint64_t bytes;                      /* touched bytes of all allocations */
    struct reach_limit limit;            /* usable_bytes is without reserve and margin */
    struct access_cost access_cost;      /* costs for the first allocation that is touched */
    double scattered;                    /* scattered share of the memory */
    enum basis basis;
    double step_ns;      /* cost of a launch, per item */
    double scan_ns;      /* cost of scanning one position */
    double host_ns;      /* cost of the input of one item over the link, in parallel */
    double read_ns;      /* cost of reading it from this GPU's memory */
    bool local;          /* all input is in this GPU's memory; if not, it is kept when read again */
    double keep_ns;      /* cost of keeping the input there */
    double partition_ns; /* cost of writing the partitioned input of one item */
    double partitioned_ns; /* cost of reading the partitioned input */
    double add_ns;         /* cost of one more pass or window that adds to the output of one item */
    bool streams_known;    /* all costs from read_ns on are known */
    bool cached;           /* `access` describes a set that caches keep a part of */
    double slowdown;       /* measured slowdown of accesses in windows */
    struct maybe_f64 access; /* cost of the accesses of an item within the reach, with the output
                                that is written once, without its input */
};

/* Numbers of launches, resets and waits of each strategy. */
enum {
    STEPS_NAIVE = 1,
    STEPS_WINDOWS = 3, /* a reset of the queues, a launch, and the wait for the slowest window */
    STEPS_PARTITIONED = 5, /* two more for the partition: counting and writing */
};

/* If `known` is false, `ns` is 0 and `why` has the reason. */
struct cost {
    bool known;
    double ns;
    double launch_ns; /* part of `ns` for launches and their side effects */
    enum bound bound;
    enum reason why;
};

/* Passes over scopes. */
struct scope_cost {
    struct cost cost;
    uint64_t scope_bytes; /* bytes of each pass except the last */
    uint64_t passes;
};

/* Computes the costs of a checked job. `limit` comes from reach_limit_read, less reserve and
 * margin. `sizes` has layout, allocations and item_bytes; their basis is written. */
void costing_begin(const struct fingerprint *fp, const struct job_request *job,
                   const struct reach_limit *limit, struct strategy_answer *sizes,
                   struct costing *out);

/* Sets the share of the memory that is scattered. After costing_begin it is job->scattered. */
void costing_scatter(struct costing *c, double scattered);

struct cost cost_naive(const struct costing *c);

/* The cost of passes of at most `longest` bytes each, as equal as whole entries of `entry_bytes`
 * allow. */
struct scope_cost cost_scopes(const struct costing *c, uint64_t longest, uint64_t entry_bytes);

/* The cheapest scopes over the levels of the TLB. Returns false if no level leaves room for a
 * scope. */
bool cost_best_scopes(const struct costing *c, struct scope_cost *out);

/* The cost for `parts` of the SMs. Each part scans all positions, reads all input, and makes its
 * share of the accesses, which take access_ns of the whole GPU per item. */
struct cost cost_by_part(const struct costing *c, double access_ns, double parts);

struct cost cost_windows(const struct costing *c, const struct placement_answer *windows);
struct cost cost_filtered(const struct costing *c, const struct placement_answer *windows);
struct cost cost_partitioned(const struct costing *c, const struct placement_answer *windows);

/* Bytes moved for an access beyond those that naive moves, in the L2 cache or behind it. `readings`
 * is the number of passes or windows. */
double cost_extra_bytes(const struct costing *c, enum strategy s, uint64_t readings);

#endif
