/* fit_facts.c: reads caches, shared memory and loads in flight from a fingerprint (fit.h). */
#include "planner/fit_facts.h"

/* The L1 of an SM beside `shared_bytes` of shared memory. It is taken from the smallest sufficient
 * measured division, which is written to `*out_carveout`. */
static struct maybe_u64 l1_beside(const struct fingerprint *fp, uint64_t shared_bytes,
                                  struct maybe_u64 *out_carveout)
{
    const struct cache_facts *const l1 = &fp->caches[CACHE_L1];
    const struct cache_carveout *const division =
        fp->cache_count > 0 ? cache_carveout_beside(l1, shared_bytes) : NULL;
    const enum reason reason = fp->cache_count == 0 ? REASON_NOT_MEASURED : REASON_TOO_LITTLE_DATA;

    *out_carveout = UNKNOWN_U64(reason);
    if (division) {
        *out_carveout = KNOWN_U64(division->shared_bytes);
        return cache_kept_bytes(division->fits_bytes, division->size_bytes);
    }
    return fp->cache_count > 0 && l1->carveout_count == 0 && shared_bytes == 0
               ? cache_kept_bytes(l1->fits_bytes, l1->size_bytes)
               : UNKNOWN_U64(reason);
}

static struct maybe_u64 as_u64(struct maybe_u32 v)
{
    return (struct maybe_u64){v.known, v.reason, v.v};
}

void fit_facts_read(const struct fingerprint *fp, struct maybe_u64 shared_bytes,
                    struct fit_facts *out)
{
    const struct maybe_u64 set_shared = working_set_shared_bytes(fp);
    struct maybe_u64 carveout;

    *out = (struct fit_facts){.l1_latency_cycles = fp->caches[CACHE_L1].latency_cycles,
                              .l2_latency_cycles = fp->caches[CACHE_L2].latency_cycles,
                              .memory_latency_cycles = fp->latency.p4_cycles,
                              .block_shared_bytes = fp->shared.block_bytes,
                              .bank_bytes = as_u64(fp->shared.bank_bytes),
                              .loads_enough = fp->parallelism.loads_enough,
                              .loads_short = fp->parallelism.loads_short,
                              .sms_enough = fp->parallelism.sms_enough,
                              .sms_short = fp->parallelism.sms_short};
    out->set_l1_bytes = IS_KNOWN(set_shared) ? l1_beside(fp, set_shared.v, &carveout)
                                             : UNKNOWN_U64(set_shared.reason);
    out->l1_bytes = out->set_l1_bytes;
    out->carveout_bytes =
        UNKNOWN_U64(REASON_NOT_APPLICABLE); /* the job's shared memory is unknown */
    if (IS_KNOWN(shared_bytes))
        out->l1_bytes = l1_beside(fp, shared_bytes.v, &out->carveout_bytes);
}

struct maybe_u32 fit_cluster_sms(const struct fingerprint *fp, uint64_t bytes,
                                 struct maybe_u64 block_bytes)
{
    const struct fingerprint_clusters *const c = &fp->clusters;

    if (!IS_KNOWN(block_bytes))
        return UNKNOWN_U32(block_bytes.reason);
    if (bytes <= block_bytes.v)
        return KNOWN_U32(1);
    if (!IS_KNOWN(c->largest))
        return (struct maybe_u32){c->largest.known, c->largest.reason, 0};
    for (uint32_t i = 0; i < c->size_count; i++)
        if (IS_KNOWN(c->sizes[i].clusters) && c->sizes[i].clusters.v > 0 &&
            c->sizes[i].sms * block_bytes.v >= bytes)
            return KNOWN_U32(c->sizes[i].sms);
    return UNKNOWN_U32(REASON_NOT_APPLICABLE); /* more than the largest cluster holds */
}
