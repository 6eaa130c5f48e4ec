/* engine.h: the timed engine: the cores of a GPU run a job, from instruction to instruction, with
 * TLBs, page walks and caches on the way of each load. Machines of papers, not of measured chips:
 * all its numbers are simulated.
 *
 * Nothing steps through cycles: each core has a heap of what ends when, and the core whose turn is
 * earliest goes next. Instructions without memory touch nothing shared, so a core may issue them
 * ahead of the others. A warp issues in order and waits for each of its loads. Times are cycles of
 * the cores, integers. The result depends on the arguments alone. One thread a run; runs are
 * independent.
 */
#ifndef REACH_CLIENTS_LAB_ENGINE_H
#define REACH_CLIENTS_LAB_ENGINE_H

#include "clients/lab/sched.h"
#include "clients/lab/serve.h"
#include "clients/lab/work.h"

#include "base/status.h"

enum { LAB_MAX_CORES = 64, LAB_MAX_WALKERS = 8, LAB_MSHRS = 32 };

struct lab_tlb_desc {
    uint32_t entries, ways; /* of each core; 0 entries: none, translation is free */
    uint32_t ports;         /* pages looked up at once */
    uint32_t hit_cycles;    /* by which a lookup is longer than an access to the cache beside it */
    bool hits_under_misses; /* warps whose pages all hit go on while a miss is outstanding */
    bool overlap;           /* lines of pages that hit are read while the others are walked */
    uint32_t walkers;       /* of each core */
    bool scheduled_walks;   /* over all misses of the warp (lab_walk_scheduled) */
    bool remembers;         /* the entry read last of each of the upper two levels */
};

struct lab_compact_desc {
    bool on;
    bool aware;    /* asks the common page matrix */
    uint32_t bits; /* of its counters */
};

struct lab_machine {
    uint32_t cores;
    uint32_t warps;        /* of each core, at most LAB_MAX_WARPS */
    uint32_t issue_cycles; /* of a warp's instruction */
    uint32_t page_shift;
    uint32_t l1_bytes, l1_ways;
    uint32_t l1_cycles; /* from a line's access to its data, if it hits */
    uint32_t l1_busy; /* of the data cache, by a line; of the TLB beside it, by one page for each of
                       * its ports */
    struct lab_memory_desc memory;
    struct lab_tlb_desc tlb;
    struct lab_sched_desc sched;
    struct lab_compact_desc compact;
};

/* Counts of one core, or their sum. */
struct lab_counts {
    uint64_t instructions;  /* of warps */
    uint64_t memory;        /* of these, with memory */
    uint64_t lanes;         /* active in instructions with memory */
    uint64_t pages;         /* looked up first: the page divergence is pages / memory */
    uint64_t most_pages;    /* of one instruction */
    uint64_t page_misses;   /* of `pages` */
    uint64_t miss_cycles;   /* from a page miss to its translation, summed */
    uint64_t misses_walked; /* that are in miss_cycles */
    uint64_t walk_loads;
    uint64_t walk_hits; /* of these, in the shared cache */
    uint64_t lines;     /* read */
    uint64_t line_misses;
    uint64_t line_cycles; /* from when a line that misses waits for the cache until it is there */
    uint64_t idle_cycles; /* in which a core with work issued nothing */
    uint64_t core_cycles; /* in which a core had work */
    uint64_t compacted;   /* warps that compaction made */
};

struct lab_result {
    uint64_t cycles; /* until the last core is done */
    struct lab_counts all;
    uint64_t core_done[LAB_MAX_CORES]; /* the cycle in which each is done */
    uint64_t core_instructions[LAB_MAX_CORES];
};

/* Runs `blocks` blocks of the job on each core; core c gets the blocks c, c + cores, ..
 * `work_of_core` has an entry for each core. STATUS_NO_MEMORY; STATUS_INVALID_ARGUMENT if the warps
 * of a core are no multiple of those of a block. */
enum status lab_engine_run(const struct lab_machine *machine,
                           const struct lab_work *const *work_of_core, uint32_t blocks,
                           struct lab_result *out, struct err *err);

#endif
