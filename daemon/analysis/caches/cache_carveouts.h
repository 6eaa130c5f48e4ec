/* cache_carveouts.h: finds the size of L1 beside other amounts of shared memory. The functions are
 * pure. */
#pragma once

#include "analysis/caches/chase.h"

/* Fills in the carveouts of c->out. Returns false if probes were requested. */
bool cache_carveouts_find(struct chase *c);

/* Compares the carveouts of out->caches[CACHE_L1] with the working sets. Beside the shared memory
 * of those reads, a carveout must keep at least half of what the reads kept in L1. Otherwise the
 * driver gave the walks another division than requested, and all carveouts become unknown
 * (REASON_DISAGREEMENT). Needs out->working_sets and out->shared. */
void cache_carveouts_check(struct fingerprint *out);
