/* cache_line.h: finds the length of a line of a private cache, by two methods (docs/caches.md). The
 * functions are pure. */
#pragma once

#include "analysis/caches/chase.h"

/* Finds c->line_bytes; c->out->line_bytes is known if the length is certain. Needs c->sectors.
 * Returns REASON_NOT_MEASURED if probes were requested. */
enum reason cache_line_find(struct chase *c);
