/* size_text.h: two sizes in one sentence, told apart. Pure; any thread. Part of placement. */
#ifndef REACH_PLACEMENT_SIZE_TEXT_H
#define REACH_PLACEMENT_SIZE_TEXT_H

#include <stdint.h>

enum { SIZE_TEXT_BYTES = 32 };

/* "137 GiB", "63.97 GiB": exact where that is short, else two digits. Returns `out`, which needs
 * SIZE_TEXT_BYTES. */
char *size_text(uint64_t bytes, char *out);

/* The same for two sizes that a sentence compares: where both would read alike though they differ,
 * both are written in bytes. */
void size_text_pair(uint64_t a, uint64_t b, char *out_a, char *out_b);

#endif
