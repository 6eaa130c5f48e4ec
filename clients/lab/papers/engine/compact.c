/* compact.c: see compact.h. */
#include "clients/lab/papers/engine/compact.h"

#include <string.h>

/* A history has two fields of 6 bits. A field contains a warp plus one, or 0 if it is empty. */
enum { WARP_BITS = 6, WARP_MASK = (1 << WARP_BITS) - 1, HISTORY_MASK = (1 << 2 * WARP_BITS) - 1 };

uint32_t lab_compact_block(const uint32_t *lanes, uint32_t warps, lab_may_join *may_join,
                           const void *context, uint32_t out[][LAB_LANES])
{
    uint32_t left[LAB_MAX_BLOCK_WARPS];
    uint32_t count = 0;
    memcpy(left, lanes, warps * sizeof *left);
    for (uint32_t seed = 0; seed < warps; seed++) {
        if (left[seed] == 0)
            continue;
        /* All threads of the seed stay together. Each other lane takes the lowest warp that may
         * join. */
        uint32_t members = 1u << seed;
        for (uint32_t lane = 0; lane < LAB_LANES; lane++) {
            out[count][lane] = LAB_NO_THREAD;
            for (uint32_t home = seed; home < warps; home++) {
                if (!(left[home] >> lane & 1) ||
                    (home != seed && may_join && !may_join(context, home, members)))
                    continue;
                out[count][lane] = home * LAB_LANES + lane;
                left[home] &= ~(1u << lane);
                members |= 1u << home;
                break;
            }
        }
        count++;
    }
    return count;
}

void lab_matrix_hit(struct lab_matrix *m, uint16_t *history, uint32_t warp, uint64_t now)
{
    const uint8_t most = (uint8_t)((1u << m->bits) - 1);
    if (now - m->cleared_at >= LAB_MATRIX_CLEAR_CYCLES) {
        memset(m->count, 0, sizeof m->count);
        m->cleared_at = now - now % LAB_MATRIX_CLEAR_CYCLES;
    }
    for (uint32_t past = *history; past != 0; past >>= WARP_BITS) {
        const uint32_t other = past & WARP_MASK;
        if (other == 0 || other - 1 == warp)
            continue;
        uint8_t *counter = &m->count[warp][other - 1];
        *counter = *counter < most ? (uint8_t)(*counter + 1) : most;
    }
    if ((*history & WARP_MASK) != warp + 1)
        *history = (uint16_t)((*history << WARP_BITS | (warp + 1)) & HISTORY_MASK);
}

bool lab_matrix_agree(const struct lab_matrix *m, uint32_t a, uint32_t b)
{
    return a == b || m->count[a][b] == (1u << m->bits) - 1;
}

uint32_t lab_matrix_size_bits(uint32_t warps, uint32_t bits)
{
    return warps * (warps - 1) * bits;
}
