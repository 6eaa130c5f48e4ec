/* mosaic_time.h: runs applications on the cores of Mosaic's machine for a stretch of simulated
 * time. Each core belongs to one application. The result depends only on the arguments. Runs are
 * independent and may be in different threads. */
#ifndef REACH_CLIENTS_LAB_PAPERS_MOSAIC_MOSAIC_TIME_H
#define REACH_CLIENTS_LAB_PAPERS_MOSAIC_MOSAIC_TIME_H

#include "clients/lab/papers/mosaic/gen_mosaic.h"
#include "clients/lab/papers/mosaic/mosaic_mmu.h"

#include "base/status.h"

enum { MOSAIC_CORES = 30, MOSAIC_WARPS = 48, MOSAIC_MAX_APPS = 5 };

struct mosaic_run {
    struct mosaic_mmu_desc mmu;
    uint32_t app_count;
    uint8_t apps[MOSAIC_MAX_APPS];  /* numbers of gen_mosaic_app */
    uint8_t cores[MOSAIC_MAX_APPS]; /* cores of each application; at most MOSAIC_CORES in total */
    /* Cycles from `warm` on are counted. The run ends when each warp has made `quota` memory
     * instructions, or at cycle `end` if quota is 0. */
    uint64_t warm, end;
    uint32_t quota;
    uint32_t shrink;              /* divisor of the applications' memory; 0 means 1 */
    double fragmented, occupancy; /* frames_fragment */
    bool compact;
    uint64_t seed;
};

struct mosaic_result {
    uint64_t instructions[MOSAIC_MAX_APPS]; /* warp instructions that were counted */
    uint64_t cycles[MOSAIC_MAX_APPS];       /* cycles in which they were counted */
    struct mosaic_mmu_counts mmu;
    struct frames_counts frames;
    double bloat;
    bool full; /* the arrays did not fit into memory */
};

/* Returns STATUS_NO_MEMORY if out of memory. */
enum status mosaic_time_run(const struct mosaic_run *run, struct mosaic_result *out,
                            struct err *err);

static inline double mosaic_ipc(const struct mosaic_result *r, uint32_t app)
{
    return r->cycles[app] > 0 ? (double)r->instructions[app] / (double)r->cycles[app] : 0;
}

/* Returns the memory of a run with all arrays allocated, without running it. Returns NULL if out of
 * memory. */
struct frames *mosaic_time_frames(const struct mosaic_run *run, struct gen_layout *layouts,
                                  bool *out_full);

#endif
