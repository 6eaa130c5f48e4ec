/* format_size.h: sizes for sentences, two of which differ in text if they differ in bytes. Pure;
 * any thread. */
#ifndef REACH_PLANNER_FORMAT_SIZE_H
#define REACH_PLANNER_FORMAT_SIZE_H

#include <stdint.h>

enum { FORMAT_SIZE_BYTES = 32 };

/* "137 GiB", "63.97 GiB": at most two decimals. Returns `out`, which needs
 * FORMAT_SIZE_BYTES. */
char *format_size(uint64_t bytes, char *out);

/* The same for two sizes that a sentence compares: if they differ but would read alike, both are
 * written in bytes. */
void format_size_pair(uint64_t a, uint64_t b, char *out_a, char *out_b);

#endif
