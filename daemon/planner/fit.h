/* fit.h: the cache in which a working set stays, and its effect on the job. The functions are pure,
 * allocate nothing, and may be called on any thread.
 *
 * A job reads a set of `bytes` again and again. Every SM reads all of the set (same), or a part of
 * its own (own). The answer contains the cache that keeps the set, the speed of random reads, the
 * cost of outgrowing that cache, and advice for the kernel. Every number is measured, and an
 * unknown number has a reason. docs/planner.md ("Fit") has the details.
 */
#pragma once

#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "planner/requests.h"
#include "planner/set_cost.h"

/* The place where a set stays, nearest first. */
enum fit_level {
    FIT_UNKNOWN = 0,   /* such sets were not measured */
    FIT_L1,            /* in the L1 of each SM */
    FIT_L2,            /* in the L2 */
    FIT_L2_NEAR,       /* in the L2 if each SM reads only lines of its own side */
    FIT_MEMORY,        /* partly in the L2 and partly in memory; translation is no limit */
    FIT_OUT_OF_REACH,  /* in memory, and translation is a limit */
    FIT_BEYOND_MEMORY, /* nowhere, because the set exceeds the memory of this GPU */
    FIT_LEVEL_COUNT
};
/* "unknown", "l1", "l2", "l2-near", "memory", "out-of-reach", "beyond-memory" */
const char *fit_level_name(enum fit_level level);

/* A cache and the longest set that is read at 95 % of the speed of the cache. */
struct fit_cache {
    struct maybe_u64 size_bytes;  /* size of the L1 of an SM beside the shared memory of the job, or
                                     size of the L2 as reported */
    struct maybe_u64 keeps_bytes; /* length of the longest measured set of this reuse that is read
                                     at 95 % of the speed of the cache */
    struct maybe_f64 gbps;        /* throughput of random reads that the cache answers */
    struct maybe_f64 latency_cycles; /* latency of one load of one thread */
};

enum { FIT_REASON_BYTES = 640, FIT_MAX_BLOCKS = 64 };

struct fit_answer {
    char fingerprint_id[FINGERPRINT_ID_BYTES];
    uint32_t transaction_bytes;
    uint64_t sm_bytes; /* bytes that one SM reads */
    enum fit_level stays;
    struct maybe_f64 gbps;         /* throughput of random reads of this set */
    struct maybe_f64 near_gbps;    /* throughput if each SM reads only its side of the L2 */
    struct maybe_f64 outside_gbps; /* throughput of random reads of a set that outgrew this place */
    struct fit_cache l1;
    struct fit_cache l2;
    struct maybe_u64 near_keeps_bytes; /* length of the longest set that stays in the L2 if each SM
                                          reads only its side */
    struct maybe_u64 reach_bytes;
    struct maybe_f64 memory_latency_cycles;
    struct maybe_u64 carveout_bytes; /* shared memory of one SM that the job should request */
    struct maybe_u64 padding_bytes;  /* padding after each row of a length that is a multiple of all
                                        banks of shared memory, so that a column has no conflict */
    struct maybe_u32 loads_enough;   /* number of loads in flight in an SM that reaches 95 % of the
                                        speed of memory */
    struct maybe_u32 loads_short;    /* largest probed number of loads that is not sufficient */
    struct maybe_u32 sms_enough;     /* number of SMs that reaches 95 % of the speed of memory */
    struct maybe_u32 sms_short;
    struct maybe_u32 cluster_sms; /* SMs of the smallest cluster that holds sm_bytes */
    char reason[FIT_REASON_BYTES];
};

/* Finds the cache of a set. Returns the errors of reach_limit_read, but an unknown reach is not an
 * error. */
enum status fit_plan(const struct fingerprint *fp, const struct fit_request *request,
                     struct fit_answer *out, struct err *err);
