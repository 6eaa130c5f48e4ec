/* classes.h: divides numbers into classes with a clear gap between them. The functions are pure. */
#pragma once

#include <stdint.h>

enum { CLASSES_MAX = 4, CLASSES_MAX_VALUES = 512 };

/* Writes the class of each of n values, 0 for the lowest, and returns the number of classes (at
 * least 1, n <= CLASSES_MAX_VALUES). Two values are in different classes only if the gap between
 * them is clear. A clear gap is more than three times as wide as any gap within a class. It is also
 * more than five times `noise`, the standard error of one value. Each class has at least two
 * values. Without a clear gap there is one class. */
uint32_t classes_split(const double *values, uint32_t n, double noise, uint32_t *out_class);

/* Returns the distance of the result from another division, as a share (0..1). With several
 * classes, it is the excess of the narrowest gap between classes. With one class, it is the width
 * that the widest gap lacks. `class` is the output of classes_split. */
double classes_margin(const double *values, uint32_t n, double noise, const uint32_t *class);
