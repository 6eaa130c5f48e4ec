/* mosaic_workloads.h: the 235 workloads of Mosaic (MICRO 2017, section 5), parallel runs of them,
 * whole runs with their transfers, and weighted speed-up. */
#ifndef REACH_CLIENTS_LAB_PAPERS_MOSAIC_MOSAIC_WORKLOADS_H
#define REACH_CLIENTS_LAB_PAPERS_MOSAIC_MOSAIC_WORKLOADS_H

#include "clients/lab/papers/mosaic/mosaic_time.h"

enum {
    MOSAIC_HOMOGENEOUS =
        GEN_MOSAIC_APPS * MOSAIC_MAX_APPS, /* 135: 1 to 5 copies of each application */
    MOSAIC_MIXES = 25,                     /* number of mixes of each size from 2 to 5 */
    MOSAIC_WORKLOADS = MOSAIC_HOMOGENEOUS + MOSAIC_MIXES * (MOSAIC_MAX_APPS - 1)
};

struct mosaic_workload {
    uint32_t app_count;
    uint8_t apps[MOSAIC_MAX_APPS];
};

/* Returns workload 0 to MOSAIC_WORKLOADS - 1. Homogeneous workloads come first, in the order of
 * their copies. Mixes of different applications follow, drawn with a fixed seed. */
struct mosaic_workload mosaic_workload(uint32_t index);

/* Returns a run on the paper's machine. Applications share the cores evenly. The first applications
 * get the remainder. */
struct mosaic_run mosaic_workload_run(const struct mosaic_workload *w, enum mosaic_design design);

struct mosaic_case {
    struct mosaic_run run;
    struct mosaic_result result;
};

/* Runs all cases, with one thread per processor. Results do not depend on the number of threads. */
enum status mosaic_run_cases(struct mosaic_case *cases, uint32_t count, struct err *err);

/* The way in which the data come to the GPU. */
enum mosaic_launch {
    MOSAIC_NO_TRANSFER, /* data are on the GPU before the launch */
    MOSAIC_COPIED,      /* each array is copied before the application starts */
    MOSAIC_PAGED        /* base pages are transferred one by one at the launch */
};

/* Returns the instructions per cycle of one application over a whole run. The transfers of all
 * applications of the workload over one bus come first. Then all passes run at the speed of the
 * simulated stretch, plus `stall` cycles in which nothing runs. */
double mosaic_whole_ipc(const struct mosaic_case *c, uint32_t app, enum mosaic_launch launch,
                        double stall);

/* Returns the cycles of the whole run. */
double mosaic_whole_cycles(const struct mosaic_case *c, uint32_t app, enum mosaic_launch launch,
                           double stall);

/* Returns the memory instructions of a warp in one pass over the application's data. */
uint32_t mosaic_pass_steps(const struct gen_layout *l);

/* Speed of each application alone on GPU-MMU in a whole run, by the number of cores. */
struct mosaic_alone {
    double ipc[GEN_MOSAIC_APPS][MOSAIC_CORES + 1];
};
enum status mosaic_run_alone(struct mosaic_alone *out, struct err *err);

/* Returns the sum over all applications of IPC together divided by IPC alone. */
double mosaic_weighted(const struct mosaic_case *c, const struct mosaic_alone *alone,
                       enum mosaic_launch launch, double stall);

#endif
