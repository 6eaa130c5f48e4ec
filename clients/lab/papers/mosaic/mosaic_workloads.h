/* mosaic_workloads.h: the 235 workloads of Mosaic (MICRO 2017, section 5) and what a run of one
 * says: many runs on all processors, weighted speed-up, whole runs with their transfers.
 */
#ifndef REACH_CLIENTS_LAB_PAPERS_MOSAIC_MOSAIC_WORKLOADS_H
#define REACH_CLIENTS_LAB_PAPERS_MOSAIC_MOSAIC_WORKLOADS_H

#include "clients/lab/papers/mosaic/mosaic_time.h"

enum {
    MOSAIC_HOMOGENEOUS = GEN_MOSAIC_APPS * MOSAIC_MAX_APPS, /* 135: 1..5 copies of each */
    MOSAIC_MIXES = 25,                                      /* of each size from 2 on */
    MOSAIC_WORKLOADS = MOSAIC_HOMOGENEOUS + MOSAIC_MIXES * (MOSAIC_MAX_APPS - 1)
};

struct mosaic_workload {
    uint32_t app_count;
    uint8_t apps[MOSAIC_MAX_APPS];
};

/* Workload 0..MOSAIC_WORKLOADS - 1: the homogeneous ones, one copy first; then mixes of different
 * applications, drawn by a fixed seed. */
struct mosaic_workload mosaic_workload(uint32_t index);

/* A run of it: cores shared evenly (the rest of the division to the first), the paper's machine. */
struct mosaic_run mosaic_run_of(const struct mosaic_workload *w, enum mosaic_design design);

struct mosaic_case {
    struct mosaic_run run;
    struct mosaic_result result;
};

/* Runs all, a thread for each processor. The results do not depend on how many that are. */
enum status mosaic_run_cases(struct mosaic_case *cases, uint32_t count, struct err *err);

/* How the data come to the GPU. */
enum mosaic_launch {
    MOSAIC_NO_TRANSFER, /* it is there */
    MOSAIC_COPIED,      /* each array is copied before the application starts */
    MOSAIC_PAGED        /* base page by base page over the bus, when it is launched */
};

/* Instructions per cycle of one application over a whole run: all its passes at the speed of the
 * simulated stretch, after the transfers of all applications of the workload over one bus, and
 * `stall` cycles in which nothing ran. */
double mosaic_whole_ipc(const struct mosaic_case *c, uint32_t app, enum mosaic_launch launch,
                        double stall);

/* Cycles of that whole run. */
double mosaic_whole_cycles(const struct mosaic_case *c, uint32_t app, enum mosaic_launch launch,
                           double stall);

/* Memory instructions of a warp in one pass over the application's data. */
uint32_t mosaic_pass_steps(const struct gen_layout *l);

/* GPU-MMU with each application alone, on any number of cores it can get; of whole runs. */
struct mosaic_alone {
    double ipc[GEN_MOSAIC_APPS][MOSAIC_CORES + 1];
};
enum status mosaic_run_alone(struct mosaic_alone *out, struct err *err);

/* Sum of IPC together over IPC alone. */
double mosaic_weighted(const struct mosaic_case *c, const struct mosaic_alone *alone,
                       enum mosaic_launch launch, double stall);

#endif
