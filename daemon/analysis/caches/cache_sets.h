/* cache_sets.h: finds the sets, ways and replacement of a private cache (docs/caches.md). The
 * functions are pure. */
#pragma once

#include "analysis/caches/chase.h"

/* Finds c->sets and c->ways, and the replacement and the trace of c->out. The replacement and the
 * trace may be known without the sets. Needs c->sectors and c->line_bytes. Returns
 * REASON_NOT_MEASURED if probes were requested. */
enum reason cache_sets_find(struct chase *c);

/* Finds the replacement and the trace alone, if it is not clear at which line the cache ends. Needs
 * c->out->fits_bytes and c->line_bytes. Both may still be unknown after REASON_NONE. */
enum reason cache_policy_find(struct chase *c);
