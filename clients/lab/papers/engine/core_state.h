/* core_state.h: the state of one core of the timed engine. Only the engine includes this header. */
#pragma once

#include "clients/lab/papers/engine/compact.h"
#include "clients/lab/papers/engine/events.h"
#include "clients/lab/papers/engine/job.h"
#include "clients/lab/papers/engine/machine_desc.h"
#include "clients/lab/papers/engine/walk.h"

enum { LAB_QUEUE = 4 * LAB_LANES, LAB_MAX_LOADS = LAB_MAX_WALKS * LAB_LEVELS };
/* A core has at most one event per warp, one per walker and one for its queue. */
_Static_assert((int)LAB_MOST_EVENTS > (int)LAB_MAX_WARPS + (int)LAB_MAX_WALKERS,
               "room for all events");
static const uint64_t LAB_NEVER = UINT64_MAX;

/* The code of an event of a core contains its kind, and a warp or a walker. */
enum lab_event_kind { LAB_WARP_READY = 0, LAB_L1_READY, LAB_LOAD_READY };
static inline uint64_t lab_event_code(enum lab_event_kind kind, uint32_t index)
{
    return (uint64_t)kind << 32 | index;
}

static inline uint64_t lab_bit(uint32_t warp)
{
    return (uint64_t)1 << warp;
}

/* Returns a mask of the `count` lowest of 32 bits. */
static inline uint32_t lab_low_bits(uint32_t count)
{
    return count >= LAB_LANES ? UINT32_MAX : (1u << count) - 1;
}

struct lab_warp {
    uint32_t active; /* lanes that are active in the current record */
    uint32_t iteration, gap;
    uint8_t homes[LAB_LANES]; /* home warps of the active lanes, if compaction made the warp */
    /* The current instruction with memory. */
    struct lab_access access;
    uint32_t missed;       /* mask of the pages that missed */
    uint32_t queued_lines; /* lines that wait for the data cache */
    uint64_t ready;        /* time at which the data of all read lines is available */
    bool walking;
};

/* The result of looking up the pages of an instruction. */
struct lab_translation {
    uint32_t missed, hits; /* masks of pages */
    uint16_t cycles;       /* cycles of the lookup */
    uint16_t hit_count;
    uint16_t slots[LAB_LANES + 1]; /* slots of the hits */
};

/* A line that waits for the data cache. */
struct lab_line {
    uint64_t earliest;
    uint32_t line;
    uint8_t warp;
    bool page_missed;
};

/* The walks of one warp. A core walks for one warp at a time. */
struct lab_walks {
    uint32_t warp;
    uint64_t start;
    uint32_t count;
    uint64_t pages[LAB_MAX_WALKS];
    struct lab_walk_load loads[LAB_MAX_LOADS];
    uint32_t load_count;
    uint32_t next[LAB_MAX_WALKERS]; /* next load of each walker */
    uint32_t walkers_busy;
};

struct lab_block {
    uint32_t running; /* number of running warps */
    uint32_t waiting; /* running warps that wait for the block */
    uint32_t id;
    bool packed; /* warps that compaction made are running */
};

/* The members that every step reads come first, so that they fill few cache lines of the host. */
struct lab_core {
    _Alignas(64) uint64_t now;
    uint64_t next; /* time of the next step; LAB_NEVER if the core is done */
    struct lab_events events;
    /* Masks of warps. `compute`: before an instruction with memory; `memory`: at an instruction
     * with memory; `swapped`: missed while another warp walks; `live`: not ended. */
    uint64_t compute, memory, swapped, live;
    uint64_t waiting;      /* warps that will look up their pages again */
    uint64_t translated;   /* waiting warps with a valid entry in translations[] */
    uint64_t lines_free;   /* time at which the data cache accepts the next line */
    uint64_t lookups_free; /* time at which the TLB accepts the next instruction */
    uint32_t last;         /* warp that issued last */
    uint32_t queue_count;  /* number of lines in `queue` */
    uint32_t id;
    bool queue_event, walks_active;
    const struct lab_machine *machine;
    struct lab_locality_state *locality; /* owned; NULL if the scheduler has no locality */
    struct lab_counts counts;
    struct lab_cache *l1;  /* owned */
    struct lab_cache *tlb; /* owned; NULL if translation is free */
    struct lab_engine *engine;
    const struct lab_job *job;
    uint32_t blocks_started;
    uint32_t mshr_next;
    uint64_t launches;
    uint64_t mshrs[LAB_MSHRS]; /* times at which the miss registers are free; the oldest is at
                                  mshr_next */
    /* Cycles until the lookup of page number i of an instruction is done. They are 0 if there is no
     * TLB. */
    uint16_t wait_of_page[LAB_LANES];
    uint16_t lookup_cycles[LAB_LANES + 1]; /* cycles by number of pages */
    struct lab_translation translations[LAB_MAX_WARPS];
    /* A ring of lines of at most two instructions. The second one is an instruction whose walks
     * ended. */
    uint32_t queue_first;
    struct lab_line queue[LAB_QUEUE];
    struct lab_walks walks;
    struct lab_warp warps[LAB_MAX_WARPS];
    struct lab_block blocks[LAB_MAX_WARPS];
    uint64_t ages[LAB_MAX_WARPS]; /* number of the launch of each block */
    struct lab_matrix matrix;
};

struct lab_engine {
    const struct lab_machine *machine;
    struct lab_memory *memory; /* owned */
    struct lab_core *cores;    /* owned */
    uint32_t blocks;           /* blocks per core */
};
