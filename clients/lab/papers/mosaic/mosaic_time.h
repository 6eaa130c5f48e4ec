/* mosaic_time.h: runs recorded programs on the cores of Mosaic's machine. Each core belongs to one
 * program and runs the blocks of its trace in turn. The result depends only on the arguments. Runs
 * are independent and may be in different threads. */
#ifndef REACH_CLIENTS_LAB_PAPERS_MOSAIC_MOSAIC_TIME_H
#define REACH_CLIENTS_LAB_PAPERS_MOSAIC_MOSAIC_TIME_H

#include "clients/lab/papers/mosaic/mosaic_mmu.h"
#include "clients/lab/trace/trace.h"

#include "base/status.h"

enum { MOSAIC_CORES = 30, MOSAIC_WARPS = 48, MOSAIC_MAX_APPS = 5 };

struct mosaic_run {
    struct mosaic_mmu_desc mmu;
    uint32_t app_count;
    const struct trace *apps[MOSAIC_MAX_APPS]; /* borrowed */
    uint8_t cores[MOSAIC_MAX_APPS]; /* cores of each program; at most MOSAIC_CORES in total */
    uint32_t gap;                   /* instructions before each access */
    uint64_t end;                   /* cycle in which the run is cut; 0 means no cycle */
    double fragmented, occupancy;   /* frames_fragment */
    bool compact;
    uint64_t seed;
};

struct mosaic_result {
    uint64_t instructions[MOSAIC_MAX_APPS]; /* warp instructions */
    uint64_t cycles[MOSAIC_MAX_APPS];       /* cycle in which the last one ended */
    struct mosaic_mmu_counts mmu;
    struct frames_counts frames;
    double bloat;
    bool full; /* the allocations did not fit into memory */
};

/* Returns the run of one program alone on the paper's machine. */
struct mosaic_run mosaic_time_alone(const struct trace *trace, enum mosaic_design design,
                                    uint32_t gap);

/* Returns STATUS_NO_MEMORY if out of memory. Returns STATUS_NOT_APPLICABLE if a trace touches more
 * than 127 GiB. */
enum status mosaic_time_run(const struct mosaic_run *run, struct mosaic_result *out,
                            struct err *err);

/* Returns the memory of a run with all regions of its traces allocated, without running it. Memory
 * is a third larger than all regions, and at least the 3 GB of the paper. Returns NULL if out of
 * memory. */
struct frames *mosaic_time_frames(const struct mosaic_run *run, bool *out_full);

#endif
