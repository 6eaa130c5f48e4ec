/* gen.h: six synthetic jobs with the structure of the jobs of Pichai, Hsu and Bhattacharjee 2014,
 * section 5.1. Their parameters follow from inputs in the paper, and not from results. The inputs
 * are the share of memory instructions, the TLB miss rate, and the page divergence with 4 KB and 2
 * MB pages. The functions are pure. */
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
/* Jobs of the same names that have all inputs of the text, but no structure of a program. There are
 * three additional inputs. Some instructions of each job access many pages (section 4). A TLB miss
 * takes two L1 misses (figure 4). CCWS without TLBs gains 20 % (section 7.1). */
const struct lab_work *lab_gen_fitted(enum lab_job job);

#endif
