/* counts.h: what the timed engine counts, for one core or in all. */
#ifndef REACH_CLIENTS_LAB_PAPERS_ENGINE_COUNTS_H
#define REACH_CLIENTS_LAB_PAPERS_ENGINE_COUNTS_H

#include <stdint.h>

/* Every member is a uint64_t, so that engine.c can add them up. */
struct lab_counts {
    uint64_t instructions; /* of warps */
    uint64_t memory;       /* instructions with memory */
    uint64_t lanes;        /* active in instructions with memory */
    uint64_t pages;        /* in first lookups: the page divergence is pages / memory */
    uint64_t most_pages;   /* of one instruction */
    uint64_t page_misses;  /* of `pages` */
    uint64_t miss_cycles;  /* from a page miss to its translation, summed over misses_walked */
    uint64_t misses_walked;
    uint64_t walk_loads;
    uint64_t walk_hits; /* of walk_loads, in the shared cache */
    uint64_t lines;     /* read */
    uint64_t line_misses;
    uint64_t line_cycles; /* from queueing a line that misses to its data, summed */
    uint64_t idle_cycles; /* in which a core with work issued nothing */
    uint64_t core_cycles; /* in which a core had work */
    uint64_t compacted;   /* warps made by compaction */
};

#endif
