/* format_size.h: sizes and rates for sentences. Two sizes differ in text if they differ in bytes.
 * The functions are pure and may be called on any thread. */
#pragma once

#include "base/maybe.h"

enum { FORMAT_SIZE_BYTES = 32, FORMAT_RATE_BYTES = 64 };

/* Formats a size with at most two decimals: "137 GiB", "63.97 GiB". Returns `out`, which needs
 * FORMAT_SIZE_BYTES. */
char *format_size(uint64_t bytes, char *out);

/* Formats two sizes that a sentence compares. If two different sizes have the same text, both are
 * written in bytes. */
void format_size_pair(uint64_t a, uint64_t b, char *out_a, char *out_b);

/* Formats a rate: "4211 GB/s", "11.3 GB/s", "not known (not-measured)". Returns `out`, which needs
 * FORMAT_RATE_BYTES. */
char *format_rate(struct maybe_f64 gbps, char *out);
