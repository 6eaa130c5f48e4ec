/* pichai_machines.h: the machines of Pichai 2014. The functions are pure. */
#ifndef REACH_CLIENTS_LAB_PAPERS_PICHAI_PICHAI_MACHINES_H
#define REACH_CLIENTS_LAB_PAPERS_PICHAI_PICHAI_MACHINES_H

#include "clients/lab/papers/engine/engine.h"

enum pichai_machine {
    NO_TLB = 0, /* translation is free; base of all speed-ups */
    /* Naive TLBs block and have one walker. The numbers are entries and ports. Larger TLBs are not
     * slower. The paper uses 128 x 3. */
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
    SLOW_256_3, /* larger TLBs are slower */
    SLOW_512_3,
    HITS,      /* 128 x 4 with hits under misses */
    OVERLAP,   /* HITS; lines of pages that hit are read at once */
    AUGMENTED, /* OVERLAP with scheduled walks */
    IDEAL,     /* AUGMENTED with 512 x 32 at the same speed */
    WALKERS_2, /* naive 128 x 4 */
    WALKERS_4,
    WALKERS_8,
    CCWS, /* without TLB */
    CCWS_NAIVE_3,
    CCWS_NAIVE_4,
    CCWS_AUGMENTED,
    TA_CCWS_2,
    TA_CCWS_4,
    TCWS_2, /* augmented; the number is the victim tags per warp */
    TCWS_4,
    TCWS_8,
    TCWS_16,
    DEPTH_1234, /* TCWS_8 with weights for the depth of a hit */
    DEPTH_1248,
    DEPTH_1369,
    TBC, /* without TLB */
    TBC_NAIVE_3,
    TBC_NAIVE_4,
    TBC_AUGMENTED,
    AWARE_1, /* TBC_AUGMENTED with a common page matrix; the number is the bits per counter */
    AWARE_2,
    AWARE_3,
    LARGE_PAGES, /* no TLB and 2 MB pages, for the divergence */
    PICHAI_MACHINES
};

const char *pichai_name(enum pichai_machine which);
void pichai_machine(enum pichai_machine which, struct lab_machine *out);

#endif
