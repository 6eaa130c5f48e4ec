/* mosaic_time.h: runs a recorded program on Mosaic's machine. The blocks of the trace are dealt to
 * the cores in turn. The result depends only on the arguments. Runs are independent and may be in
 * different threads. */
#pragma once

#include "clients/lab/papers/mosaic/mosaic_mmu.h"
#include "clients/lab/trace/trace.h"

#include "base/status.h"

enum { MOSAIC_CORES = 30, MOSAIC_WARPS = 48 };

struct mosaic_run {
    const struct trace *trace; /* borrowed */
    enum mosaic_design design;
    uint32_t gap;     /* instructions before each access */
    uint64_t end;     /* cycle in which the run is cut; 0 means no cycle */
    double occupancy; /* MOSAIC_MOSAIC: share of each frame that foreign data hold */
    bool compact;
};

struct mosaic_result {
    uint64_t instructions; /* warp instructions */
    uint64_t cycles;       /* cycle in which the last one ended */
    struct mosaic_mmu_counts mmu;
    struct frames_counts frames;
};

/* All regions of the trace are allocated before the run. Memory is a third larger than all regions,
 * and at least the 3 GB of the paper. Returns STATUS_NO_MEMORY if out of memory. Returns
 * STATUS_NOT_APPLICABLE if the trace touches more than 127 GiB, or if memory has no room. */
enum status mosaic_time_run(const struct mosaic_run *run, struct mosaic_result *out,
                            struct err *err);
