/* machine_desc.h: the description of a simulated GPU of a paper. */
#ifndef REACH_CLIENTS_LAB_PAPERS_ENGINE_MACHINE_DESC_H
#define REACH_CLIENTS_LAB_PAPERS_ENGINE_MACHINE_DESC_H

#include "clients/lab/papers/engine/sched.h"
#include "clients/lab/papers/engine/shared_memory_system.h"

enum { LAB_MAX_CORES = 64, LAB_MAX_WALKERS = 8, LAB_MSHRS = 32 };

struct lab_tlb_desc {
    uint32_t entries, ways; /* of each core; with 0 entries, translation is free */
    uint32_t ports;         /* pages looked up in the same cycle */
    uint32_t hit_cycles;    /* of a lookup, beyond an access to the data cache beside it */
    bool hits_under_misses; /* warps whose pages all hit continue while a miss is pending */
    bool overlap;           /* lines of pages that hit are read while other pages are walked */
    uint32_t walkers;       /* of each core */
    bool scheduled_walks;   /* over all misses of the warp (lab_walk_scheduled) */
    bool remembers;         /* keeps the last entry read of each of the two upper levels */
};

struct lab_compact_desc {
    bool on;
    bool aware;    /* uses the common page matrix */
    uint32_t bits; /* of a counter of the matrix */
};

struct lab_machine {
    uint32_t cores;
    uint32_t warps;        /* of each core, at most LAB_MAX_WARPS */
    uint32_t issue_cycles; /* of an instruction of a warp */
    uint32_t page_shift;
    uint32_t l1_bytes, l1_ways;
    uint32_t l1_cycles; /* from the access of a line to its data, if it hits */
    uint32_t l1_busy;   /* of the data cache, per line; of the TLB, per page and port */
    struct lab_memory_desc memory;
    struct lab_tlb_desc tlb;
    struct lab_sched_desc sched;
    struct lab_compact_desc compact;
};

#endif
