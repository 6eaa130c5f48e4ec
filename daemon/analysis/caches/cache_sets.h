/* cache_sets.h: the sets, ways and replacement of a private cache (docs/caches.md). Pure. */
#ifndef REACH_ANALYSIS_CACHES_CACHE_SETS_H
#define REACH_ANALYSIS_CACHES_CACHE_SETS_H

#include "analysis/caches/chase.h"

/* Finds c->sets and c->ways, and the replacement and the trace of c->out, which may be known
 * without them. Needs c->sectors and c->line_bytes. REASON_NOT_MEASURED: probes are among the asks.
 */
enum reason cache_sets_find(struct chase *c);

/* The replacement and the trace alone, where it is not clear at which line the cache ends. Needs
 * c->out->fits_bytes and c->line_bytes. REASON_NONE: they may still not be known. */
enum reason cache_policy_find(struct chase *c);

#endif
