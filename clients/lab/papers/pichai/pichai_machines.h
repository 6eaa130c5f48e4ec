/* pichai_machines.h: the machines of Pichai 2014. The functions are pure. */
#pragma once

#include "clients/lab/papers/engine/engine.h"

enum pichai_machine {
    NO_TLB = 0,     /* translation is free; base of all speed-ups */
    NAIVE_128_3,    /* blocking TLB with 128 entries, 3 ports and one walker */
    WALKERS_8,      /* naive 128 x 4 with 8 walkers */
    AUGMENTED,      /* 128 x 4 with hits under misses, overlap and scheduled walks */
    CCWS,           /* without TLB */
    CCWS_AUGMENTED, /* the machines below are augmented, except TBC */
    TA_CCWS_4,      /* a line whose page missed too counts four times */
    TCWS,
    DEPTH_1248, /* TCWS with weights for the depth of a hit */
    TBC,        /* without TLB */
    TBC_AUGMENTED,
    AWARE_3, /* TBC_AUGMENTED with a common page matrix of 3 bits per counter */
    PICHAI_MACHINES
};

void pichai_machine(enum pichai_machine which, struct lab_machine *out);
