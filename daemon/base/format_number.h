/* format_number.h: writes numbers as text in JSON. Real numbers have the fewest digits that are
 * read as the same number. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { FORMAT_DOUBLE_BYTES = 32 };

/* Writes `v`, which is finite, and a NUL to `out`, which has FORMAT_DOUBLE_BYTES; returns the
 * number of characters without the NUL. A whole number ends in ".0", so that readers see that it is
 * real. A number of at most six decimals takes 0.05 microseconds, and any other number takes up to
 * 2. */
size_t format_double(double v, char *out);
/* Returns the double nearest to `v` rounded to six significant digits. Repeats of a measurement
 * agree to fewer digits than that. 0, infinities and NaN are returned unchanged. */
double round_six_digits(double v);
/* Writes the decimal digits of `v`, at most twenty, without a NUL. Returns their number. */
size_t format_u64(uint64_t v, char *out);
