/* gen.h: six jobs with the structure of those of Pichai, Hsu and Bhattacharjee 2014, section 5.1.
 * They are synthetic: their knobs were set by inputs that the paper gives (share of memory
 * instructions, TLB miss rate, page divergence with 4 KB and 2 MB pages) and by nothing that a
 * machine makes of them. Pure.
 */
#ifndef REACH_CLIENTS_LAB_PAPERS_PICHAI_GEN_H
#define REACH_CLIENTS_LAB_PAPERS_PICHAI_GEN_H

#include "clients/lab/papers/engine/work.h"

enum lab_job {
    LAB_BFS = 0,
    LAB_KMEANS,
    LAB_STREAMCLUSTER,
    LAB_MUMMERGPU,
    LAB_PATHFINDER,
    LAB_MEMCACHED,
    LAB_JOBS
};

const struct lab_work *lab_gen_work(enum lab_job job);
/* The same names, and no structure of a program, but all inputs that the text has: besides the
 * above that some instructions go to many pages in each job (section 4), that a TLB miss takes two
 * L1 misses (figure 4), and that CCWS without TLBs gains 20 % (section 7.1). They show what of the
 * results depends on the jobs. */
const struct lab_work *lab_gen_fitted(enum lab_job job);

#endif
