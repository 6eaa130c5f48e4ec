/* strategy_cost.h: the cost of each way to do a job, in nanoseconds of the whole GPU per access.
 * Pure; no allocation; any thread. Part of placement. docs/planner.md explains the formulas. */
#ifndef REACH_PLANNER_STRATEGY_COST_H
#define REACH_PLANNER_STRATEGY_COST_H

#include "planner/access_cost.h"
#include "planner/strategy.h"

/* A job and the costs of what it does. */
struct costing {
    const struct fingerprint *fp;
    const struct job_request *job;
    struct reach_limit limit; /* usable_bytes: the reserve is off */
    struct access_cost access_cost;
    double scan_ns;          /* to scan one position */
    double host_ns;          /* to bring one access' input over the link, beside all else */
    double read_ns;          /* to read it from this GPU's memory */
    bool local;              /* it is there as a whole; otherwise it is kept if it is read again */
    double keep_ns;          /* to keep it there */
    double partition_ns;     /* to write the partitioned input of one access */
    double partitioned_ns;   /* to read that again */
    double add_ns;           /* for one more pass or window to add to the output of one access */
    bool streams_known;      /* all of these but the first two */
    struct maybe_f64 access; /* ns of an access within the reach, its input not counted */
};

/* `known` false: `ns` is 0 and `why` says why. */
struct cost {
    bool known;
    double ns;
    enum bound bound;
    enum reason why;
};

/* Passes over scopes. */
struct scope_cost {
    struct cost cost;
    uint64_t scope_bytes; /* of each pass but the last */
    uint64_t passes;
};

/* Are the numbers of the job in range? STATUS_INVALID_ARGUMENT names the one that is not. */
enum status costing_check(const struct job_request *job, struct err *err);

/* Computes the costs of a checked job. `limit`: from reach_limit_read, less the reserve. */
void costing_begin(const struct fingerprint *fp, const struct job_request *job,
                   const struct reach_limit *limit, uint32_t transaction_bytes,
                   struct costing *out);

struct cost cost_naive(const struct costing *c);

/* Passes of at most `longest` bytes each, as equal as whole entries of `entry_bytes` allow. */
struct scope_cost cost_scopes(const struct costing *c, uint64_t longest, uint64_t entry_bytes);

/* The cheapest over the levels of the TLB. False if no level leaves room for a scope. */
bool cost_best_scopes(const struct costing *c, struct scope_cost *out);

struct cost cost_windows(const struct costing *c, const struct placement_answer *windows);
struct cost cost_filtered(const struct costing *c, const struct placement_answer *windows);
struct cost cost_partitioned(const struct costing *c, const struct placement_answer *windows);

/* Bytes moved for an access beyond what naive moves, in the L2 cache or behind it. `readings`:
 * passes or windows. */
double cost_extra_bytes(const struct costing *c, enum strategy s, uint64_t readings);

#endif
