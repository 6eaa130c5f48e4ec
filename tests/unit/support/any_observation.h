/* any_observation.h: observations drawn at random: each kind of probe with a spec that it takes,
 * the values of that spec, and conditions of which each is known or not. */
#ifndef REACH_TESTS_UNIT_ANY_OBSERVATION_H
#define REACH_TESTS_UNIT_ANY_OBSERVATION_H

#include "base/rng.h"
#include "observe/observe.h"

/* Its values are for the caller to free. */
struct observation any_observation(struct rng *r);

#endif
