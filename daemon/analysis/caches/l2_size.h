/* l2_size.h: finds how much of a footprint stays in the L2, which lines are evicted first, and how
 * long a line is. The functions are pure. */
#pragma once

#include "analysis/caches/walks.h"

/* Finds size, replacement and line of `l2`, whose latency is known. Loads of more than `threshold`
 * cycles miss; `noise` is the share of longer loads in a footprint that fits. Returns the reason if
 * there is no size; the other results stay in `l2`. */
enum reason l2_size_find(struct cache_walks *w, double threshold, double noise,
                         struct cache_facts *l2);
