/* format_size.h: two sizes in one sentence, told apart. Pure; any thread. Part of placement. */
#ifndef REACH_PLANNER_FORMAT_SIZE_H
#define REACH_PLANNER_FORMAT_SIZE_H

#include <stdint.h>

enum { FORMAT_SIZE_BYTES = 32 };

/* "137 GiB", "63.97 GiB": exact where that is short, else two digits. Returns `out`, which needs
 * FORMAT_SIZE_BYTES. */
char *format_size(uint64_t bytes, char *out);

/* The same for two sizes that a sentence compares: where both would read alike though they differ,
 * both are written in bytes. */
void format_size_pair(uint64_t a, uint64_t b, char *out_a, char *out_b);

#endif
