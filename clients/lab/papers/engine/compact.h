/* compact.h: thread block compaction (Fung and Aamodt 2011) and the common page matrix of Pichai,
 * Hsu and Bhattacharjee 2014, section 8. At a divergent branch, the threads of a block that take
 * the same side are packed into new warps. Each thread keeps its lane. The functions do no I/O, and
 * only one thread may use a matrix at a time. */
#pragma once

#include "clients/lab/papers/engine/coalescer.h"

#include <stdbool.h>

enum { LAB_MAX_BLOCK_WARPS = 32, LAB_NO_THREAD = UINT32_MAX };

/* Returns whether a thread of warp `home` of the block may join a new warp, which already has
 * threads of the warps in `members` (one bit each). */
typedef bool lab_may_join(const void *context, uint32_t home, uint32_t members);

/* Packs threads into new warps, the lowest warp first. Each thread keeps its lane. lanes[w] are the
 * lanes of warp w that take this side of the branch. A thread that may not join a new warp is
 * packed into a later one. If `may_join` is NULL, every thread may join. Writes the thread of each
 * new warp and lane (warp x LAB_LANES + lane, or LAB_NO_THREAD). Returns the number of new warps,
 * at most `warps`. */
uint32_t lab_compact_block(const uint32_t *lanes, uint32_t warps, lab_may_join *may_join,
                           const void *context, uint32_t out[][LAB_LANES]);

/* The common page matrix of a core: a saturating counter for each pair of warps. */
enum { LAB_MATRIX_WARPS = 48, LAB_MATRIX_CLEAR_CYCLES = 500 };
struct lab_matrix {
    uint32_t bits; /* bits per counter, 1 to 8 */
    uint64_t cleared_at;
    uint8_t count[LAB_MATRIX_WARPS][LAB_MATRIX_WARPS];
};

/* Updates the matrix after `warp` hit a TLB entry. `*history` contains the last two warps that used
 * the entry, and is updated. */
void lab_matrix_hit(struct lab_matrix *m, uint16_t *history, uint32_t warp, uint64_t now);
/* Returns whether the counter of the two warps is at its maximum, or the warps are the same. */
bool lab_matrix_agree(const struct lab_matrix *m, uint32_t a, uint32_t b);
/* Returns the size of all counters in bits. */
uint32_t lab_matrix_size_bits(uint32_t warps, uint32_t bits);
