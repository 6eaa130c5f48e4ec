/* depth.h: the depths of a measurement. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Depth memory is depth full with more time and host memory for the kinds of memory. Depth matrix
 * is depth full with the pair matrix. */
enum depth { DEPTH_QUICK = 0, DEPTH_FULL, DEPTH_MEMORY, DEPTH_MATRIX, DEPTH_COUNT };
const char *depth_name(enum depth d); /* "quick", "full", "memory", "matrix" */
bool depth_from_name(const char *name, enum depth *out);
/* The longest region that is read of a kind of memory other than device memory, at depths full and
 * matrix. */
#define DEPTH_FULL_REGION_BYTES ((uint64_t)8 << 30)
