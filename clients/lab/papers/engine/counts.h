/* counts.h: the counts of the timed engine, for one core or for all cores. */
#ifndef REACH_CLIENTS_LAB_PAPERS_ENGINE_COUNTS_H
#define REACH_CLIENTS_LAB_PAPERS_ENGINE_COUNTS_H

#include <stdint.h>

/* Every member is a uint64_t, so that engine.c can add them up. */
struct lab_counts {
    uint64_t instructions; /* warp instructions */
    uint64_t memory;       /* instructions with memory */
    uint64_t lanes;        /* active lanes of instructions with memory */
    uint64_t pages;        /* pages in first lookups; pages / memory is the page divergence */
    uint64_t page_misses;  /* number of `pages` that missed */
    uint64_t miss_cycles;  /* cycles from page misses to translations */
    uint64_t walk_loads;
    uint64_t walk_hits; /* number of walk_loads that hit the shared cache */
    uint64_t lines;     /* lines that were read */
    uint64_t line_misses;
    uint64_t line_cycles; /* cycles from queueing to the data, over line_misses */
    uint64_t idle_cycles; /* cycles in which a core with work issued nothing */
    uint64_t core_cycles; /* cycles in which a core had work */
    uint64_t compacted;   /* warps that compaction made */
};

#endif
