/* format_number.h: numbers as text in JSON; real ones with the fewest digits that are read as the
 * same number. */
#ifndef REACH_BASE_FORMAT_NUMBER_H
#define REACH_BASE_FORMAT_NUMBER_H

#include <stddef.h>
#include <stdint.h>

enum { FORMAT_DOUBLE_BYTES = 32 };

/* Writes `v`, which is finite, and a NUL to `out`, which has FORMAT_DOUBLE_BYTES; how many without
 * the NUL. A whole number has ".0" after it, so that readers see that it is real. Numbers of at
 * most six decimals take a twentieth of a microsecond, others up to two. */
size_t format_double(double v, char *out);
/* `v` to six significant digits: more than repeats of a measurement agree to, and few enough to
 * read. The double that is nearest to that decimal number. 0 and what is not finite stay. */
double round_six_digits(double v);
/* Writes the decimal digits of `v`, at most twenty, without a NUL; how many. */
size_t format_u64(uint64_t v, char *out);

#endif
