/* pichai.h: the figures and targets of Pichai, Hsu and Bhattacharjee, Architectural Support for
 * Address Translation on GPUs (ASPLOS 2014). A figure is a table of runs. A target has a statement
 * of the paper's text, and bands in which the statement counts as reproduced. All numbers are
 * simulated. */
#ifndef REACH_CLIENTS_LAB_PAPERS_PICHAI_PICHAI_H
#define REACH_CLIENTS_LAB_PAPERS_PICHAI_PICHAI_H

#include "clients/lab/papers/engine/engine.h"
#include "clients/lab/papers/pichai/gen.h"
#include "clients/lab/papers/pichai/pichai_machines.h"

/* A number of the runs of one job. `a`, `b` and `c` are machines. */
enum pichai_metric {
    SPEED,            /* speed of a; NO_TLB has 1 */
    LOSS,             /* loss of a relative to b, % */
    GAIN,             /* gain of a relative to b, % */
    GAP,              /* speed of a minus speed of b, in percent of the speed of NO_TLB */
    SHARE,            /* mean gain of a over b in percent of the mean gain of c over b */
    ORDER,            /* least gain of a machine of the list over the machine before it, % */
    BEST,             /* index of the fastest machine of the list, or of c if c is within 1 % */
    MISS_RATE,        /* misses in TLB lookups, % */
    MEMORY_SHARE,     /* share of instructions with memory, % */
    DIVERGENCE,       /* mean number of distinct pages per instruction */
    MOST_DIVERGENCE,  /* maximum number of distinct pages per instruction */
    MISS_COST,        /* cost of a TLB miss of a in L1 misses of b */
    LOADS_SAVED,      /* loads of a walk that a saves relative to b, % */
    HITS_ADDED,       /* hit rate of walk loads, a minus b, points */
    IDLE,             /* cycles without an issue, % */
    DIVERGENCE_ADDED, /* divergence, a minus b */
    MISSES_ADDED,     /* TLB miss rate, a minus b, points */
};

/* The jobs that must be within a band. */
enum pichai_over { EACH, MEAN, AT_LEAST, ONE_JOB, OTHERS /* all but bfs and mummergpu */ };

enum { PICHAI_PARTS = 5, PICHAI_LIST = 6, PICHAI_COLUMNS = 8 };

struct pichai_part {
    const char *what;
    enum pichai_metric metric;
    enum pichai_machine a, b, c;
    enum pichai_machine list[PICHAI_LIST]; /* machines of ORDER and BEST */
    uint32_t count;                        /* length of the list */
    enum pichai_over over;
    uint32_t which;   /* ONE_JOB: the job; AT_LEAST: the number of jobs */
    double low, high; /* band: low <= value <= high */
};

struct pichai_target {
    const char *id;
    uint32_t figure;
    const char *paper; /* statement of the text */
    uint32_t part_count;
    struct pichai_part parts[PICHAI_PARTS];
};
const struct pichai_target *pichai_targets(uint32_t *out_count);

struct pichai_column {
    const char *title;
    enum pichai_metric metric;
    enum pichai_machine a, b;
};
struct pichai_figure {
    uint32_t number;
    const char *title;
    uint32_t column_count;
    struct pichai_column columns[PICHAI_COLUMNS];
};
const struct pichai_figure *pichai_figures(uint32_t *out_count);

#endif
