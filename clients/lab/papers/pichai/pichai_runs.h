/* pichai_runs.h: runs the machines of Pichai 2014 on its jobs, one run per thread at a time, and
 * computes the numbers of its figures. Results do not depend on the number of threads. */
#ifndef REACH_CLIENTS_LAB_PAPERS_PICHAI_PICHAI_RUNS_H
#define REACH_CLIENTS_LAB_PAPERS_PICHAI_PICHAI_RUNS_H

#include "clients/lab/papers/pichai/pichai.h"

/* Options of the commands. Numbers are 0 for the default. */
struct pichai_options {
    bool json, svg;
    bool fitted;        /* run the jobs of lab_gen_fitted */
    uint32_t warps;     /* of a core: 48 as in section 6.2 by default */
    uint32_t gap_times; /* a factor of the instructions between those with memory */
    uint32_t threads;   /* runs at the same time; one per processor by default */
};

/* A parameter that the text does not give, with another value. 0 keeps the value of
 * pichai_machines.c.
 */
struct pichai_variation {
    const char *what;
    uint32_t warps, gap_times;
    uint32_t l1_ways, l1_cycles;
    uint32_t cache_cycles, dram_cycles, dram_busy;
    uint32_t faster; /* a factor of the bandwidth of ports, shared cache and channels */
    bool fitted;     /* run the jobs of lab_gen_fitted */
    bool remembers;  /* scheduled walks keep the last entry of each upper level */
};

/* The machines that are needed, and their results. */
struct pichai_runs {
    bool wanted[PICHAI_MACHINES];
    uint32_t blocks; /* of each core */
    struct pichai_options options;
    struct pichai_variation variation;
    struct lab_result of[PICHAI_MACHINES][LAB_JOBS];
};

/* The default length of a run, in blocks of each core. */
enum { PICHAI_BLOCKS = 12 };

void pichai_runs_want_target(struct pichai_runs *runs, const struct pichai_target *target);
void pichai_runs_want_figure(struct pichai_runs *runs, const struct pichai_figure *figure);
enum status pichai_runs_execute(struct pichai_runs *runs, struct err *err);

/* A number of one job, or the mean of all if job is LAB_JOBS. */
double pichai_value(const struct pichai_runs *runs, const struct pichai_part *part, uint32_t job);
/* A column of a figure as a part without a band. */
struct pichai_part pichai_column_part(const struct pichai_column *column);
/* True if the part is within its band. */
bool pichai_part_holds(const struct pichai_runs *runs, const struct pichai_part *part);

#endif
