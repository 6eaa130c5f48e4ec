/* fit.h: the cache in which a working set stays, and its effect on the job. The functions are pure,
 * allocate nothing, and may be called on any thread.
 *
 * A job reads `bytes` again and again: every SM all of them (same), or each a part of its own
 * (own). The answer contains the cache that keeps them, the speed of random reads of them, the cost
 * of outgrowing that cache, and advice for the kernel. Every number is measured; an unknown one has
 * the reason. docs/planner.md ("Fit").
 */
#ifndef REACH_PLANNER_FIT_H
#define REACH_PLANNER_FIT_H

#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "planner/requests.h"
#include "planner/set_cost.h"

/* The place where a set stays, nearest first. */
enum fit_level {
    FIT_UNKNOWN = 0,   /* such sets were not measured */
    FIT_L1,            /* in the L1 of each SM */
    FIT_L2,            /* in the L2 */
    FIT_L2_NEAR,       /* in the L2, if each SM reads only lines of its own side */
    FIT_MEMORY,        /* partly in the L2; memory answers the rest, and translation is no limit */
    FIT_OUT_OF_REACH,  /* translation is a limit */
    FIT_BEYOND_MEMORY, /* more than the memory of this GPU */
    FIT_LEVEL_COUNT
};
/* "unknown", "l1", "l2", "l2-near", "memory", "out-of-reach", "beyond-memory" */
const char *fit_level_name(enum fit_level level);

/* A cache and the longest set that reads at 95 % of its speed. */
struct fit_cache {
    struct maybe_u64 size_bytes;     /* L1 of an SM with this shared memory, or L2 as reported */
    struct maybe_u64 keeps_bytes;    /* the longest measured set at its speed, for this reuse */
    struct maybe_f64 gbps;           /* throughput of random reads that stay there */
    struct maybe_f64 latency_cycles; /* latency of one load of one thread */
};

enum { FIT_REASON_BYTES = 640, FIT_MAX_BLOCKS = 64 };

struct fit_answer {
    char fingerprint_id[FINGERPRINT_ID_BYTES];
    uint32_t transaction_bytes;
    uint64_t sm_bytes; /* bytes that one SM reads */
    enum fit_level stays;
    struct maybe_f64 gbps;         /* random reads of this set */
    struct maybe_f64 near_gbps;    /* likewise, each SM reading its side of the L2 (same) */
    struct maybe_f64 outside_gbps; /* random reads of a set that outgrew this place */
    struct fit_cache l1;
    struct fit_cache l2;
    struct maybe_u64 near_keeps_bytes; /* longest set in the L2 with near reads only */
    struct maybe_u64 reach_bytes;
    struct maybe_f64 memory_latency_cycles;
    struct maybe_u64 carveout_bytes; /* shared memory of one SM to request */
    struct maybe_u64 padding_bytes; /* padding after each row in shared memory with a length that is
                                       a multiple of all banks, so that a column has no conflict */
    struct maybe_u32 loads_enough;  /* loads in flight in an SM for 95 % of the speed of memory */
    struct maybe_u32 loads_short;   /* next fewer probed loads, not sufficient */
    struct maybe_u32 sms_enough;    /* SMs for 95 % of the speed of memory */
    struct maybe_u32 sms_short;
    struct maybe_u32 cluster_sms; /* fewest SMs with shared memory for sm_bytes */
    char reason[FIT_REASON_BYTES];
};

/* Errors are those of reach_limit_read, except for an unknown reach. */
enum status fit_plan(const struct fingerprint *fp, const struct fit_request *request,
                     struct fit_answer *out, struct err *err);

#endif
