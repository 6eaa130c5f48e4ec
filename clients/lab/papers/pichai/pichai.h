/* pichai.h: the figures and targets of Pichai, Hsu and Bhattacharjee, Architectural Support for
 * Address Translation on GPUs (ASPLOS 2014). A figure is a table of runs. A target has the
 * statement of the paper's text and the bands in which it counts as reproduced. All numbers are
 * simulated. */
#ifndef REACH_CLIENTS_LAB_PAPERS_PICHAI_PICHAI_H
#define REACH_CLIENTS_LAB_PAPERS_PICHAI_PICHAI_H

#include "clients/lab/papers/engine/engine.h"
#include "clients/lab/papers/pichai/gen.h"
#include "clients/lab/papers/pichai/pichai_machines.h"

/* A number of the runs of one job. `a`, `b` and `c` are machines. */
enum pichai_metric {
    SPEED,            /* of a; NO_TLB is 1 */
    LOSS,             /* of a against b, % */
    GAIN,             /* of a over b, % */
    GAP,              /* speed of a minus speed of b, in percent of NO_TLB's */
    SHARE,            /* gain of a over b in percent of the gain of c over b, of the means */
    ORDER,            /* the least gain of a machine of the list over the one before it, % */
    BEST,             /* the index of the fastest machine of the list; of c if c is within 1 % */
    MISS_RATE,        /* of TLB lookups, % */
    MEMORY_SHARE,     /* of instructions, % */
    DIVERGENCE,       /* distinct pages of an instruction, mean */
    MOST_DIVERGENCE,  /* the same, largest */
    MISS_COST,        /* of a TLB miss of a in L1 misses of b */
    LOADS_SAVED,      /* of a walk, a against b, % */
    HITS_ADDED,       /* hits of walk loads, a minus b, points */
    IDLE,             /* cycles without an issue, % */
    DIVERGENCE_ADDED, /* a minus b */
    MISSES_ADDED,     /* TLB miss rate, a minus b, points */
};

/* The jobs that must be within a band. */
enum pichai_over { EACH, MEAN, AT_LEAST, ONE_JOB, OTHERS /* all but bfs and mummergpu */ };

enum { PICHAI_PARTS = 5, PICHAI_LIST = 6, PICHAI_COLUMNS = 8 };

struct pichai_part {
    const char *what;
    enum pichai_metric metric;
    enum pichai_machine a, b, c;
    enum pichai_machine list[PICHAI_LIST]; /* of ORDER and BEST */
    uint32_t count;                        /* of the list */
    enum pichai_over over;
    uint32_t which;   /* ONE_JOB: the job; AT_LEAST: the number of jobs */
    double low, high; /* the band: low <= value <= high */
};

struct pichai_target {
    const char *id;
    uint32_t figure;
    const char *paper; /* the statement of the text */
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
