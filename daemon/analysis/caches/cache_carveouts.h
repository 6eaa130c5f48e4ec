/* cache_carveouts.h: L1 beside other amounts of shared memory. Pure. */
#ifndef REACH_ANALYSIS_CACHES_CACHE_CARVEOUTS_H
#define REACH_ANALYSIS_CACHES_CACHE_CARVEOUTS_H

#include "analysis/caches/chase.h"

/* Fills in the carveouts of c->out. False: probes are among the asks. */
bool cache_carveouts_find(struct chase *c);

/* What the carveouts of out->caches[CACHE_L1] say beside as much shared memory as the working sets
 * were read with must not be less than half of what those reads kept in L1: else the driver gave
 * the walks another division than they asked for, and none of the carveouts is known
 * (REASON_DISAGREEMENT). Needs out->working_sets and out->shared. */
void cache_carveouts_check(struct fingerprint *out);

#endif
