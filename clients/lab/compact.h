/* compact.h: thread block compaction (Fung and Aamodt 2011) and the common page matrix of Pichai,
 * Hsu and Bhattacharjee 2014, section 8: at a divergent branch the threads of a block that go the
 * same way are packed into new warps, each in its own lane. No I/O. One thread at a time. */
#ifndef REACH_CLIENTS_LAB_COMPACT_H
#define REACH_CLIENTS_LAB_COMPACT_H

#include "clients/lab/front.h"

#include <stdbool.h>

enum { LAB_MAX_BLOCK_WARPS = 32, LAB_NO_THREAD = UINT32_MAX };

/* May the thread of `home` (a warp of the block) and `lane` join a warp that already has threads of
 * the warps in `members` (a bit for each)? */
typedef bool lab_may_join(const void *context, uint32_t home, uint32_t lane, uint32_t members);

/* lanes[w]: the lanes of warp w of the block that go this way. Packs them, in each lane the lowest
 * warp first; a thread that may not join waits for a later warp. `may_join` NULL: all may. Writes
 * for each new warp and lane the number of its thread, warp x LAB_LANES + lane, or LAB_NO_THREAD;
 * returns the number of new warps, at most `warps`. */
uint32_t lab_compact(const uint32_t *lanes, uint32_t warps, lab_may_join *may_join,
                     const void *context, uint32_t out[][LAB_LANES]);

/* The matrix of a core: a row for each warp, a saturating counter in it for each other warp. */
enum { LAB_MATRIX_WARPS = 48, LAB_MATRIX_CLEAR_CYCLES = 500 };
struct lab_matrix {
    uint32_t bits; /* of a counter, 1 to 8 */
    uint64_t cleared_at;
    uint8_t count[LAB_MATRIX_WARPS][LAB_MATRIX_WARPS];
};

/* `warp` hit a TLB entry that `*history` says two other warps used before; updates both. */
void lab_matrix_hit(struct lab_matrix *m, uint16_t *history, uint32_t warp, uint64_t now);
/* Have the two used the same entries often enough? A warp has with itself. */
bool lab_matrix_agree(const struct lab_matrix *m, uint32_t a, uint32_t b);
/* What the counters take, in bits. */
uint32_t lab_matrix_size_bits(uint32_t warps, uint32_t bits);

#endif
