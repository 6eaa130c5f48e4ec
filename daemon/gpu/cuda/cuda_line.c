/* cuda_line.c: see cuda_line.h. */
#include "gpu/cuda/cuda_line.h"

#include "base/stats.h"

#define HIGH_QUANTILE 0.9

uint32_t cuda_line_choose(const uint32_t *cycles)
{
    double best_cycles = 0;
    uint32_t best = 0;

    for (uint32_t line = 0; line < CUDA_LINES; line++) {
        uint32_t mine[CUDA_LINE_LAPS];
        for (uint32_t lap = 0; lap < CUDA_LINE_LAPS; lap++)
            mine[lap] = cycles[lap * CUDA_LINES + line];
        const double high = stats_quantile_u32(mine, CUDA_LINE_LAPS, HIGH_QUANTILE);
        if (line == 0 || high < best_cycles) {
            best = line;
            best_cycles = high;
        }
    }
    return best;
}
