/* strategy_cost.h: the cost of each way to do a job, in nanoseconds of the whole GPU per item.
 * Pure; no allocation; any thread. Part of the planner. docs/planner.md explains the formulas. */
#ifndef REACH_PLANNER_STRATEGY_COST_H
#define REACH_PLANNER_STRATEGY_COST_H

#include "planner/access_cost.h"
#include "planner/layout.h"
#include "planner/strategy.h"

/* A job and the costs of what it does. */
struct costing {
    const struct fingerprint *fp;
    const struct job_request *job;
    const struct strategy_answer *sizes; /* of which the layout and the allocations are set */
    uint64_t bytes;                      /* touched, of all allocations */
    struct reach_limit limit;            /* usable_bytes: the reserve and the margin are off */
    struct access_cost access_cost;      /* of the first allocation that is touched */
    double scattered;                    /* of the memory */
    enum basis basis;
    double step_ns;          /* of a launch, per item */
    double scan_ns;          /* to scan one position */
    double host_ns;          /* to bring the input of one item over the link, beside all else */
    double read_ns;          /* to read it from this GPU's memory */
    bool local;              /* it is there as a whole; otherwise it is kept if it is read again */
    double keep_ns;          /* to keep it there */
    double partition_ns;     /* to write the partitioned input of one item */
    double partitioned_ns;   /* to read that again */
    double add_ns;           /* for one more pass or window to add to the output of one item */
    bool streams_known;      /* all of these but the first three */
    bool cached;             /* `access` is for a set that caches keep a part of */
    double slowdown;         /* of accesses in windows, as measured */
    struct maybe_f64 access; /* ns of the accesses of an item within the reach, with what is written
                                once, its input not counted */
};

/* Launches, resets and waits of each strategy. */
enum {
    STEPS_NAIVE = 1,
    STEPS_WINDOWS = 3, /* the queues are reset; launch; the other windows wait for the slowest */
    STEPS_PARTITIONED = 5, /* and the partition: to count, and to write */
};

/* `known` false: `ns` is 0 and `why` says why. */
struct cost {
    bool known;
    double ns;
    double launch_ns; /* of it: launches and what comes with them */
    enum bound bound;
    enum reason why;
};

/* Passes over scopes. */
struct scope_cost {
    struct cost cost;
    uint64_t scope_bytes; /* of each pass but the last */
    uint64_t passes;
};

/* Computes the costs of a checked job. `limit`: from reach_limit_read, less reserve and margin.
 * `sizes`: layout, allocations and item_bytes are set; their basis is written. */
void costing_begin(const struct fingerprint *fp, const struct job_request *job,
                   const struct reach_limit *limit, struct strategy_answer *sizes,
                   struct costing *out);

/* The share of the memory that is scattered: job->scattered after costing_begin. */
void costing_scatter(struct costing *c, double scattered);

struct cost cost_naive(const struct costing *c);

/* Passes of at most `longest` bytes each, as equal as whole entries of `entry_bytes` allow. */
struct scope_cost cost_scopes(const struct costing *c, uint64_t longest, uint64_t entry_bytes);

/* The cheapest over the levels of the TLB. False if no level leaves room for a scope. */
bool cost_best_scopes(const struct costing *c, struct scope_cost *out);

/* `parts` of the SMs, each of which scans all positions and reads all input, and makes its share of
 * the accesses; these take access_ns of the whole GPU per item. */
struct cost cost_by_part(const struct costing *c, double access_ns, double parts);

struct cost cost_windows(const struct costing *c, const struct placement_answer *windows);
struct cost cost_filtered(const struct costing *c, const struct placement_answer *windows);
struct cost cost_partitioned(const struct costing *c, const struct placement_answer *windows);

/* Bytes moved for an access beyond what naive moves, in the L2 cache or behind it. `readings`:
 * passes or windows. */
double cost_extra_bytes(const struct costing *c, enum strategy s, uint64_t readings);

#endif
