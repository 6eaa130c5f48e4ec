/* paper.h: runs the machines of a paper on its jobs, as many at a time as there are threads, and
 * compares what comes out with the paper. Results do not depend on the number of threads. */
#ifndef REACH_CLIENTS_LAB_PAPER_H
#define REACH_CLIENTS_LAB_PAPER_H

#include "clients/lab/lab.h"
#include "clients/lab/pichai.h"

/* What the text does not say, otherwise; 0: as the machines have it (pichai_machines.c). */
struct paper_variation {
    const char *what;
    uint32_t warps, gap_times;
    uint32_t l1_ways, l1_cycles;
    uint32_t cache_cycles, dram_cycles, dram_busy;
    uint32_t faster; /* ways to memory, its caches and channels take a line so many times as
                      * fast */
    bool fitted;     /* jobs that have more of the text's inputs */
    bool remembers;  /* scheduled walks keep the upper levels' entries read last */
};

/* Which of the machines are needed, and what they did. */
struct paper_runs {
    bool wanted[PICHAI_MACHINES];
    uint32_t blocks; /* of each core */
    struct lab_paper_options options;
    struct paper_variation variation;
    struct lab_result of[PICHAI_MACHINES][LAB_JOBS];
};

/* The usual length of a run, in blocks of each core. */
enum { PAPER_BLOCKS = 12 };

void paper_want_target(struct paper_runs *runs, const struct pichai_target *target);
void paper_want_figure(struct paper_runs *runs, const struct pichai_figure *figure);
enum status paper_run(struct paper_runs *runs, struct err *err);

/* A number of one job, or of all (job LAB_JOBS: the mean). */
double paper_value(const struct paper_runs *runs, const struct pichai_part *part, uint32_t job);
/* A column of a figure as a part without a band. */
struct pichai_part paper_part_of(const struct pichai_column *column);
/* Is it within its band? */
bool paper_part_holds(const struct paper_runs *runs, const struct pichai_part *part);

/* The figure as bars, one group for each job, to stdout (picture.c). */
void paper_print_svg(const struct paper_runs *runs, const struct pichai_figure *figure);

#endif
