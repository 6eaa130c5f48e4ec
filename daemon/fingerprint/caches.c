/* caches.c: see caches.h. */
#include "fingerprint/caches.h"

const struct cache_carveout *cache_carveout_beside(const struct cache_facts *l1,
                                                   uint64_t shared_bytes)
{
    for (uint32_t i = 0; i < l1->carveout_count; i++)
        if (l1->carveouts[i].shared_bytes >= shared_bytes)
            return &l1->carveouts[i];
    return NULL;
}

struct maybe_u64 cache_kept_bytes(struct maybe_u64 fits, struct maybe_u64 size)
{
    return IS_KNOWN(fits) ? fits : size;
}
