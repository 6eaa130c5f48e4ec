/* gen.h: six jobs with the structure of those of Pichai, Hsu and Bhattacharjee 2014, section 5.1.
 * They are synthetic: their knobs were set by inputs that the paper gives (share of memory
 * instructions, TLB miss rate, page divergence with 4 KB and 2 MB pages) and by nothing that a
 * machine makes of them. Pure.
 */
#ifndef REACH_CLIENTS_LAB_GEN_H
#define REACH_CLIENTS_LAB_GEN_H

#include "clients/lab/work.h"

enum lab_job {
    LAB_BFS = 0,
    LAB_KMEANS,
    LAB_STREAMCLUSTER,
    LAB_MUMMERGPU,
    LAB_PATHFINDER,
    LAB_MEMCACHED,
    LAB_JOBS
};

/* What the paper says of each job's input, and what docs/lab.md assumes where its figure 3 is a
 * picture. */
struct lab_job_input {
    double miss_low, miss_high;   /* TLB miss rate with 128 entries, 0..1 */
    double pages_low, pages_high; /* mean page divergence, 4 KB pages */
};

const struct lab_work *lab_gen_work(enum lab_job job);
const struct lab_job_input *lab_gen_input(enum lab_job job);

#endif
