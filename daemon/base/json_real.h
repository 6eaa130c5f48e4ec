/* json_real.h: numbers as JSON; real ones with as few digits as are read as the same number. */
#ifndef REACH_BASE_JSON_REAL_H
#define REACH_BASE_JSON_REAL_H

#include <stddef.h>
#include <stdint.h>

enum { JSON_REAL_BYTES = 32 };

/* Writes `v`, which is finite, and a NUL to `out`, which has JSON_REAL_BYTES; how many without the
 * NUL. A whole number has ".0" behind it, so that readers see that it is real. Numbers that six
 * decimals say take a twentieth of a microsecond, others up to two. */
size_t json_real_write(double v, char *out);
/* Writes the decimal digits of `v`, at most twenty, without a NUL; how many. */
size_t json_digits_write(uint64_t v, char *out);

#endif
