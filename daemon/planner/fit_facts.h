/* fit_facts.h: the facts of the fingerprint that fit.h uses besides the speeds of sets. The
 * functions are pure and may be called on any thread. */
#ifndef REACH_PLANNER_FIT_FACTS_H
#define REACH_PLANNER_FIT_FACTS_H

#include "fingerprint/fingerprint.h"

struct fit_facts {
    struct maybe_u64 l1_bytes;       /* L1 of an SM beside this much shared memory */
    struct maybe_u64 set_l1_bytes;   /* L1 of an SM while the working sets were measured */
    struct maybe_u64 carveout_bytes; /* the smallest measured division that is sufficient */
    struct maybe_f64 l1_latency_cycles;
    struct maybe_f64 l2_latency_cycles;
    struct maybe_f64 memory_latency_cycles;
    struct maybe_u64 block_shared_bytes; /* the most shared memory of one block */
    struct maybe_u64 bank_bytes;
    struct maybe_u32 loads_enough, loads_short;
    struct maybe_u32 sms_enough, sms_short;
};

/* Reads the facts. `shared_bytes` is the shared memory of all blocks of an SM. */
void fit_facts_read(const struct fingerprint *fp, struct maybe_u64 shared_bytes,
                    struct fit_facts *out);

/* The fewest SMs of a cluster whose shared memory, `block_bytes` each, holds `bytes`. Only cluster
 * sizes that this GPU was seen to run count. */
struct maybe_u32 fit_cluster_sms(const struct fingerprint *fp, uint64_t bytes,
                                 struct maybe_u64 block_bytes);

#endif
