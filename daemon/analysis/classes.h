/* classes.h: do numbers fall into classes, with a clear gap between them? Pure. */
#ifndef REACH_ANALYSIS_CLASSES_H
#define REACH_ANALYSIS_CLASSES_H

#include <stdint.h>

enum { CLASSES_MAX = 4, CLASSES_MAX_VALUES = 512 };

/* Writes the class of each of n values, 0 for the lowest, and returns how many classes there are
 * (at least 1, n <= CLASSES_MAX_VALUES). Two values are in different classes only where the gap
 * between them is clear: three times any gap within a class, five times `noise` (the standard error
 * of one value), and with two values at least on either side. One class is the answer where it is
 * not. */
uint32_t classes_split(const double *values, uint32_t n, double noise, uint32_t *out_class);

/* How far that is from other classes: of a clear gap what is more than it takes, of none what it
 * lacks, as a share (0..1). `class` is what classes_split has written. */
double classes_margin(const double *values, uint32_t n, double noise, const uint32_t *class);

#endif
