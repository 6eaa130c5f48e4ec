/* machine_desc.h: the description of a simulated GPU of a paper. */
#pragma once

#include "clients/lab/papers/engine/sched.h"
#include "clients/lab/papers/engine/shared_memory_system.h"

enum { LAB_MAX_CORES = 64, LAB_MAX_WALKERS = 8, LAB_MSHRS = 32 };

struct lab_tlb_desc {
    uint32_t entries, ways; /* size per core; with 0 entries, translation is free */
    uint32_t ports;         /* pages that are looked up in the same cycle */
    uint32_t hit_cycles;    /* cycles of a lookup that exceed an access to the data cache */
    bool hits_under_misses; /* warps whose pages all hit continue while a miss is pending */
    bool overlap;           /* lines of pages that hit are read while other pages are walked */
    uint32_t walkers;       /* page walkers per core */
    bool scheduled_walks; /* walks are scheduled over all misses of the warp (lab_walk_scheduled) */
};

struct lab_compact_desc {
    bool on;
    uint32_t bits; /* bits per counter of the common page matrix; 0 means no matrix */
};

struct lab_machine {
    uint32_t cores;
    uint32_t warps;        /* warps per core, at most LAB_MAX_WARPS */
    uint32_t issue_cycles; /* cycles per instruction of a warp */
    uint32_t l1_bytes, l1_ways;
    uint32_t l1_cycles; /* cycles from the access to the data, if the line hits */
    uint32_t l1_busy; /* busy cycles of the data cache per line, and of the TLB per page and port */
    struct lab_memory_desc memory;
    struct lab_tlb_desc tlb;
    struct lab_sched_desc sched;
    struct lab_compact_desc compact;
};
