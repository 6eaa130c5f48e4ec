/* cache_carveouts.h: L1 beside other amounts of shared memory. Pure. */
#ifndef REACH_ANALYSIS_CACHES_CACHE_CARVEOUTS_H
#define REACH_ANALYSIS_CACHES_CACHE_CARVEOUTS_H

#include "analysis/caches/chase.h"

/* Fills in the carveouts of c->out. False: probes are among the asks. */
bool cache_carveouts_find(struct chase *c);

#endif
