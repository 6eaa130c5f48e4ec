/* any_observation.h: random observations: each kind of probe with a valid spec, the values of
 * that spec, and conditions that are each known or not. */
#pragma once

#include "base/rng.h"
#include "observe/observe.h"

/* Makes a random observation. The caller frees its values. */
struct observation any_observation(struct rng *r);
