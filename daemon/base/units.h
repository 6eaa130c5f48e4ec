/* units.h: reads and writes sizes and durations as people write them. Units have the same meaning
 * as in dd: KiB and K are 1024 bytes, kB is 1000 bytes, and so on up to T. */
#pragma once

#include "base/status.h"

#include <stdint.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

/* Parses "137438953472", "137GiB", "80G", "1.5GiB", "2 MiB": a decimal number, an optional blank,
 * an optional unit (B, K, kB, KiB, ... T, TB, TiB; case does not matter). The result is in bytes
 * and must be a whole number below 2^63. Errors: STATUS_INVALID_ARGUMENT with the reason (empty,
 * negative, not a number, a comma, an exponent, unknown unit, not a whole number of bytes, too
 * large). */
enum status units_parse_bytes(const char *text, uint64_t *out_bytes, struct err *err);

/* Parses "90s", "30m", "1h", "7d": a whole number and a unit (s, m, h, d). Errors:
 * STATUS_INVALID_ARGUMENT with the reason. */
enum status units_parse_seconds(const char *text, uint64_t *out_seconds, struct err *err);

/* Writes the shortest text that units_parse_seconds reads back as exactly `seconds`, with the
 * largest unit. `out` needs 24 bytes. Returns `out`. */
char *units_print_seconds(uint64_t seconds, char *out, size_t out_size);

/* Writes the shortest text that units_parse_bytes reads back as exactly `bytes`: "128K", "2M",
 * "64G", "1000". The text has no blank. `out` needs 24 bytes. Returns `out`. */
char *units_print_bytes(uint64_t bytes, char *out, size_t out_size);
