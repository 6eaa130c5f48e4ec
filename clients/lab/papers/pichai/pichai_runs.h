/* pichai_runs.h: runs the machines of Pichai 2014 on its jobs, one run per thread at a time, and
 * computes the numbers of its figures. Results do not depend on the number of threads. */
#ifndef REACH_CLIENTS_LAB_PAPERS_PICHAI_PICHAI_RUNS_H
#define REACH_CLIENTS_LAB_PAPERS_PICHAI_PICHAI_RUNS_H

#include "clients/lab/papers/pichai/pichai.h"

/* Options of the commands. A number of 0 means the default. */
struct pichai_options {
    bool json, svg;
    bool fitted;        /* run the jobs of lab_gen_fitted */
    uint32_t warps;     /* warps per core; the default is 48 (section 6.2) */
    uint32_t gap_times; /* factor of the instructions between instructions with memory */
    uint32_t threads;   /* number of parallel runs; the default is one per processor */
};

/* Another value of a parameter that the text does not give. A number of 0 keeps the value of
 * pichai_machines.c. */
struct pichai_variation {
    const char *what;
    uint32_t warps, gap_times;
    uint32_t l1_ways, l1_cycles;
    uint32_t cache_cycles, dram_cycles, dram_busy;
    uint32_t faster; /* factor of the bandwidth of ports, shared cache and channels */
    bool fitted;     /* run the jobs of lab_gen_fitted */
    bool remembers;  /* scheduled walks keep the last entry of each upper level */
};

/* The machines that are needed, and their results. */
struct pichai_runs {
    bool wanted[PICHAI_MACHINES];
    uint32_t blocks; /* blocks per core */
    struct pichai_options options;
    struct pichai_variation variation;
    struct lab_result of[PICHAI_MACHINES][LAB_JOBS];
};

/* The default length of a run in blocks per core. */
enum { PICHAI_BLOCKS = 12 };

void pichai_runs_want_target(struct pichai_runs *runs, const struct pichai_target *target);
void pichai_runs_want_figure(struct pichai_runs *runs, const struct pichai_figure *figure);
enum status pichai_runs_execute(struct pichai_runs *runs, struct err *err);

/* Returns a number of one job, or the mean of all jobs if `job` is LAB_JOBS. */
double pichai_value(const struct pichai_runs *runs, const struct pichai_part *part, uint32_t job);
/* Returns a column of a figure as a part without a band. */
struct pichai_part pichai_column_part(const struct pichai_column *column);
/* Returns whether the part is within its band. */
bool pichai_part_holds(const struct pichai_runs *runs, const struct pichai_part *part);

#endif
