/* fit.h: where a working set stays, and what that means for the job. Pure; no allocation; any
 * thread.
 *
 * A job reads `bytes` again and again: every SM all of them (same), or each a part of its own
 * (own). The answer says which cache keeps them, how fast random reads of them are, what it costs
 * if they grow out of it, and what the kernel should ask for. Every number is measured; one that is
 * not says why. docs/planner.md ("Fit").
 */
#ifndef REACH_PLANNER_FIT_H
#define REACH_PLANNER_FIT_H

#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "planner/requests.h"
#include "planner/set_cost.h"

/* Where a set stays, nearest first. */
enum fit_level {
    FIT_UNKNOWN = 0,   /* such sets were not measured */
    FIT_L1,            /* in the L1 of each SM */
    FIT_L2,            /* in the L2 */
    FIT_L2_NEAR,       /* in the L2, if each SM reads only what lives on its own side */
    FIT_MEMORY,        /* in part in the L2; memory answers the rest, translation is no limit */
    FIT_OUT_OF_REACH,  /* translation is a limit */
    FIT_BEYOND_MEMORY, /* more than this GPU has */
    FIT_LEVEL_COUNT
};
/* "unknown", "l1", "l2", "l2-near", "memory", "out-of-reach", "beyond-memory" */
const char *fit_level_name(enum fit_level level);

/* The last set that reads at 95 % of the speed of a cache. */
struct fit_cache {
    struct maybe_u64 size_bytes;  /* of the L1 of an SM as it is then; of the L2 as reported */
    struct maybe_u64 keeps_bytes; /* the longest measured set at its speed, in the way asked for */
    struct maybe_f64 gbps;        /* of random reads that stay there */
    struct maybe_f64 latency_cycles; /* of one load of one thread */
};

enum { FIT_REASON_BYTES = 640, FIT_MAX_BLOCKS = 64 };

struct fit_answer {
    char fingerprint_id[FINGERPRINT_ID_BYTES];
    uint32_t transaction_bytes;
    uint64_t sm_bytes; /* that one SM reads */
    enum fit_level stays;
    struct maybe_f64 gbps;      /* of random reads of this set */
    struct maybe_f64 near_gbps; /* of `same`, if each SM reads only what is on its side of the L2 */
    struct maybe_f64 outside_gbps; /* of a set that grew out of where this one stays */
    struct fit_cache l1;
    struct fit_cache l2;
    struct maybe_u64 near_keeps_bytes; /* of the L2, if each SM reads only near granules */
    struct maybe_u64 reach_bytes;
    struct maybe_f64 memory_latency_cycles;
    struct maybe_u64 carveout_bytes; /* of shared memory to ask for, of one SM */
    struct maybe_u64 padding_bytes;  /* behind each row in shared memory whose length is a multiple
                                        of  all banks, so that a column has no conflict */
    struct maybe_u32 loads_enough;   /* in flight in an SM, for 95 % of the speed of memory */
    struct maybe_u32 loads_short;    /* the next fewer that were probed: less than that */
    struct maybe_u32 sms_enough;     /* for 95 % of the speed of memory */
    struct maybe_u32 sms_short;
    struct maybe_u32 cluster_sms; /* fewest SMs whose shared memory holds what one SM reads */
    char reason[FIT_REASON_BYTES];
};

/* Errors: those of reach_limit_read, but for an unknown reach. */
enum status fit_plan(const struct fingerprint *fp, const struct fit_request *request,
                     struct fit_answer *out, struct err *err);

#endif
