/* pichai.h: Pichai, Hsu and Bhattacharjee, Architectural Support for Address Translation on GPUs
 * (ASPLOS 2014), as data: its machines, its figures as tables of runs, what its text says of them,
 * and when that counts as reproduced. Everything here is simulated. */
#ifndef REACH_CLIENTS_LAB_PAPERS_PICHAI_PICHAI_H
#define REACH_CLIENTS_LAB_PAPERS_PICHAI_PICHAI_H

#include "clients/lab/papers/engine/engine.h"
#include "clients/lab/papers/pichai/gen.h"

enum pichai_machine {
    NO_TLB = 0, /* translation is free: the base of all speed-ups */
    /* Naive: blocking, one walker. Entries x ports; 128 x 3 is the paper's. Access takes no longer.
     */
    NAIVE_64_3,
    NAIVE_128_3,
    NAIVE_256_3,
    NAIVE_512_3,
    NAIVE_64_4,
    NAIVE_128_4,
    NAIVE_256_4,
    NAIVE_512_4,
    NAIVE_64_8,
    NAIVE_128_8,
    NAIVE_256_8,
    NAIVE_512_8,
    NAIVE_64_32,
    NAIVE_128_32,
    NAIVE_256_32,
    NAIVE_512_32,
    SLOW_256_3, /* with the time that access to so many entries takes */
    SLOW_512_3,
    HITS,      /* 128 x 4, hits under misses */
    OVERLAP,   /* and lines of pages that hit at once */
    AUGMENTED, /* and scheduled walks */
    IDEAL,     /* the same with 512 x 32 and no time for access */
    WALKERS_2, /* naive 128 x 4 */
    WALKERS_4,
    WALKERS_8,
    CCWS, /* without TLB */
    CCWS_NAIVE_3,
    CCWS_NAIVE_4,
    CCWS_AUGMENTED,
    TA_CCWS_2,
    TA_CCWS_4,
    TCWS_2, /* augmented; entries of a warp's victim tags */
    TCWS_4,
    TCWS_8,
    TCWS_16,
    DEPTH_1234, /* TCWS_8 and weights of the depth of a hit */
    DEPTH_1248,
    DEPTH_1369,
    TBC, /* without TLB */
    TBC_NAIVE_3,
    TBC_NAIVE_4,
    TBC_AUGMENTED,
    AWARE_1, /* the same with a common page matrix of so many bits a counter */
    AWARE_2,
    AWARE_3,
    LARGE_PAGES, /* no TLB, 2 MB pages: for the divergence */
    PICHAI_MACHINES
};

const char *pichai_name(enum pichai_machine which);
void pichai_machine(enum pichai_machine which, struct lab_machine *out);

/* What is computed of runs of one job. `a`, `b`, `c` are machines. */
enum pichai_metric {
    SPEED,        /* of a, NO_TLB is 1 */
    LOSS,         /* of a against b, % */
    GAIN,         /* of a over b, % */
    GAP,          /* speed of a less that of b, points of NO_TLB's */
    SHARE,        /* how much of the gain of c over b the machine a has, % of the means */
    ORDER,        /* least gain of each of the `count` machines from a on over the one before, % */
    BEST,         /* which of the `count` machines is fastest, from 0 on; c if it is within 1 % */
    MISS_RATE,    /* of TLB lookups, % */
    MEMORY_SHARE, /* of instructions, % */
    DIVERGENCE,   /* distinct pages of an instruction, mean */
    MOST_DIVERGENCE,  /* the same, largest */
    MISS_COST,        /* of a TLB miss of a in L1 misses of b */
    LOADS_SAVED,      /* of each walk, a against b, % */
    HITS_ADDED,       /* of walk loads, a less b, points */
    IDLE,             /* cycles without an issue, % */
    DIVERGENCE_ADDED, /* a less b */
    MISSES_ADDED,     /* TLB miss rate, a less b, points */
};

/* Over which jobs a band holds. */
enum pichai_over { EACH, MEAN, AT_LEAST, ONE_JOB, OTHERS /* all but bfs and mummergpu */ };

enum { PICHAI_PARTS = 5, PICHAI_LIST = 6, PICHAI_COLUMNS = 8 };

struct pichai_part {
    const char *what;
    enum pichai_metric metric;
    enum pichai_machine a, b, c;
    enum pichai_machine list[PICHAI_LIST]; /* of ORDER and BEST */
    uint32_t count;                        /* of them */
    enum pichai_over over;
    uint32_t which;   /* ONE_JOB: the job; AT_LEAST: how many jobs */
    double low, high; /* the band: low <= value <= high */
};

struct pichai_target {
    const char *id;
    uint32_t figure;
    const char *paper; /* what its text says */
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

/* The examples whose results are exact (pichai_exact.c). */
struct pichai_exact {
    uint32_t serial_loads, scheduled_loads; /* figure 8: 12 and 7 */
    uint32_t stack_fetches, packed_fetches; /* figure 19: 6 and 3 */
    uint32_t packed_misses[3];              /* 2, 3, 2 */
    uint32_t aware_misses;                  /* of the first two warps: 2 */
    uint32_t matrix_bits;                   /* section 8.2: 48 x 47 x 3 */
};
/* False: no memory. */
bool pichai_exact(struct pichai_exact *out);

#endif
