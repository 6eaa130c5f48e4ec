/* l2_size.h: how much of a footprint stays in the L2, which lines go first, and how long a line is.
 * Pure.
 */
#ifndef REACH_ANALYSIS_CACHES_L2_SIZE_H
#define REACH_ANALYSIS_CACHES_L2_SIZE_H

#include "analysis/caches/walks.h"

/* Size, replacement and line of `l2`, whose latency is known. Loads of more than `threshold` cycles
 * miss; `noise`: the share of such loads where none misses. Why there is no size; what was found
 * besides stands in `l2`. */
enum reason l2_size_find(struct cache_walks *w, double threshold, double noise,
                         struct cache_facts *l2);

#endif
