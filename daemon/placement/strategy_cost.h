/* strategy_cost.h: what each way to do a job costs, in nanoseconds of the whole GPU for an access.
 * Pure; no allocation; any thread. Part of placement. docs/planner.md explains the formulas. */
#ifndef REACH_PLACEMENT_STRATEGY_COST_H
#define REACH_PLACEMENT_STRATEGY_COST_H

#include "placement/price.h"
#include "placement/strategy.h"

/* A job and the prices of what it does. */
struct costing {
    const struct fingerprint *fp;
    const struct job_request *job;
    struct limit limit; /* usable_bytes: the reserve is off */
    struct price price;
    double look_ns;          /* to look at one position */
    double host_ns;          /* to bring one access' input over the link, beside all else */
    double read_ns;          /* to read it from this GPU's memory */
    bool local;              /* it lies there as a whole; otherwise it is kept where read again */
    double keep_ns;          /* to keep it there */
    double deal_ns;          /* to write what a partition deals for one access */
    double dealt_ns;         /* to read that again */
    double add_ns;           /* for one more pass or window to add to the output of one access */
    bool streams_known;      /* all of these but the first two */
    struct maybe_f64 access; /* ns of an access inside the reach, its input not counted */
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

/* Are the numbers of the job ones that can be? STATUS_INVALID_ARGUMENT names the one that is not.
 */
enum status costing_check(const struct job_request *job, struct err *err);

/* Prices a checked job. `limit` as limit_read gave it, less the reserve. */
void costing_begin(const struct fingerprint *fp, const struct job_request *job,
                   const struct limit *limit, uint32_t transaction_bytes, struct costing *out);

struct cost cost_naive(const struct costing *c);

/* Passes of at most `longest` bytes each, as equal as whole entries of `entry_bytes` allow. */
struct scope_cost cost_scopes(const struct costing *c, uint64_t longest, uint64_t entry_bytes);

/* The cheapest over the levels of the TLB. False where no level leaves room for a scope. */
bool cost_best_scopes(const struct costing *c, struct scope_cost *out);

struct cost cost_windows(const struct costing *c, const struct placement_answer *windows);
struct cost cost_filtered(const struct costing *c, const struct placement_answer *windows);
struct cost cost_partitioned(const struct costing *c, const struct placement_answer *windows);

/* Bytes moved for an access beyond what naive moves, in the L2 cache or behind it. `readings`:
 * passes or windows. */
double cost_extra_bytes(const struct costing *c, enum strategy s, uint64_t readings);

#endif
