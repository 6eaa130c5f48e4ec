/* gen_hash.h: the hash of the synthetic jobs of Pichai 2014. The functions are pure. */
#ifndef REACH_CLIENTS_LAB_PAPERS_PICHAI_GEN_HASH_H
#define REACH_CLIENTS_LAB_PAPERS_PICHAI_GEN_HASH_H

#include "base/rng.h"

/* Returns a pseudo-random number that depends only on the arguments. */
static inline uint64_t lab_gen_hash(uint64_t a, uint64_t b, uint64_t c)
{
    struct rng r = {(a - 1) * 0x9e3779b97f4a7c15u + b * 0xd1342543de82ef95u +
                    c * 0xaf251af3b0f025b5u};
    return rng_next(&r);
}

#endif
