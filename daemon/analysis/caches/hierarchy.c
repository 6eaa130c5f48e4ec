/* hierarchy.c: see hierarchy.h. */
#include "analysis/caches/hierarchy.h"

#include "analysis/caches/sides.h"
#include "analysis/sharing/sharing.h"

#include <string.h>

void hierarchy_estimate(const struct observation_set *set, struct hierarchy_estimate *out)
{
    struct cache_walks *const w = &out->walks;

    memset(out, 0, sizeof *out);
    w->set = set;
    w->sm_count = sharing_sm_ids(set, w->sm_ids);
    for (uint32_t k = 0; k < CACHE_KIND_COUNT; k++)
        cache_unknown(&out->caches[k], (enum cache_kind)k, REASON_NOT_MEASURED);
    latency_unknown(&out->latency, REASON_NOT_MEASURED);
    if (w->sm_count == 0)
        return;
    private_cache(w, CACHE_L1, NULL, &out->caches[CACHE_L1]);
    /* The read-only path is compared with L1, so L1 must be known first. */
    if (w->ask_count == 0)
        private_cache(w, CACHE_READ_ONLY, &out->caches[CACHE_L1], &out->caches[CACHE_READ_ONLY]);
    private_cache(w, CACHE_CONSTANT, NULL, &out->caches[CACHE_CONSTANT]);
    l2_and_memory(w, &out->caches[CACHE_L2], &out->latency);
    out->latency.p1_cycles = out->caches[CACHE_L1].latency_cycles;
    out->latency.evidence.p1_cycles = out->caches[CACHE_L1].evidence.latency_cycles;
}

/* Derives P2 and P3: the latency of the L2 plus the penalties of the first TLB level, and of the
 * first two. */
static void add_translations(struct fingerprint *fp)
{
    const struct maybe_f64 hit = fp->caches[CACHE_L2].latency_cycles;
    struct maybe_f64 *const sums[] = {&fp->latency.p2_cycles, &fp->latency.p3_cycles};
    double cycles = hit.v;

    for (uint32_t k = 0; k < 2; k++) {
        const bool known =
            IS_KNOWN(hit) && k < fp->level_count && IS_KNOWN(fp->levels[k].miss_penalty_cycles);
        if (!known) {
            *sums[k] = UNKNOWN_F64(REASON_TOO_LITTLE_DATA);
            return;
        }
        cycles += fp->levels[k].miss_penalty_cycles.v;
        *sums[k] = KNOWN_F64(cycles);
    }
}

/* Drops the size of an L2 with two sides. An SM fills only its own side, which also holds copies of
 * lines of the other side. */
static void judge_size(const struct observation_set *set, struct cache_facts *l2)
{
    struct sides_estimate sides;

    sides_estimate(set, &sides);
    if (!IS_KNOWN(l2->size_bytes) || !IS_KNOWN(sides.found.sides) || sides.found.sides.v < 2)
        return;
    l2->size_bytes = UNKNOWN_U64(REASON_IRREGULAR);
    l2->evidence.size_bytes = (struct evidence){0};
}

void hierarchy_derive(const struct observation_set *set, struct fingerprint *out)
{
    struct hierarchy_estimate e;

    hierarchy_estimate(set, &e);
    if (e.walks.ask_count > 0 || !observation_next(set, NULL, PROBE_CACHE))
        return;
    memcpy(out->caches, e.caches, sizeof out->caches);
    out->cache_count = CACHE_KIND_COUNT;
    out->latency = e.latency;
    judge_size(set, &out->caches[CACHE_L2]);
    add_translations(out);
}
