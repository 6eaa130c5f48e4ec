/* fit_facts.c: what a fingerprint knows of caches, shared memory and loads in flight (fit.h). */
#include "planner/fit.h"

void fit_facts_read(const struct fingerprint *fp, bool has_shared, uint64_t shared_bytes,
                    struct fit_facts *out)
{
    (void)fp;
    (void)has_shared;
    (void)shared_bytes;
    *out = (struct fit_facts){.l1_bytes = UNKNOWN_U64(REASON_NOT_MEASURED),
                              .set_l1_bytes = UNKNOWN_U64(REASON_NOT_MEASURED),
                              .carveout_bytes = UNKNOWN_U64(REASON_NOT_MEASURED),
                              .l1_latency_cycles = UNKNOWN_F64(REASON_NOT_MEASURED),
                              .l2_latency_cycles = UNKNOWN_F64(REASON_NOT_MEASURED),
                              .l2_far_latency_cycles = UNKNOWN_F64(REASON_NOT_MEASURED),
                              .memory_latency_cycles = UNKNOWN_F64(REASON_NOT_MEASURED),
                              .block_shared_bytes = UNKNOWN_U64(REASON_NOT_MEASURED),
                              .bank_bytes = UNKNOWN_U64(REASON_NOT_MEASURED),
                              .loads_enough = UNKNOWN_U32(REASON_NOT_MEASURED),
                              .loads_short = UNKNOWN_U32(REASON_NOT_MEASURED),
                              .sms_enough = UNKNOWN_U32(REASON_NOT_MEASURED),
                              .sms_short = UNKNOWN_U32(REASON_NOT_MEASURED)};
}

struct maybe_u32 fit_cluster_sms(const struct fingerprint *fp, uint64_t bytes,
                                 struct maybe_u64 block_bytes)
{
    (void)fp;
    (void)bytes;
    return UNKNOWN_U32(block_bytes.reason);
}
