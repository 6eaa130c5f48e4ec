/* core.h: the state of one core of the timed engine. Private to engine.c, core.c, mmu.c and
 * block.c. */
#ifndef REACH_CLIENTS_LAB_CORE_H
#define REACH_CLIENTS_LAB_CORE_H

#include "clients/lab/compact.h"
#include "clients/lab/engine.h"
#include "clients/lab/events.h"
#include "clients/lab/walk.h"

enum { LAB_QUEUE = 4 * LAB_LANES, LAB_MAX_LOADS = LAB_MAX_WALKS * LAB_LEVELS };
static const uint64_t LAB_NEVER = UINT64_MAX;

/* What an event of a core is: a kind, and a warp or a walker. */
enum lab_kind { LAB_WAKE = 0, LAB_LINES, LAB_WALK };
static inline uint64_t lab_what(enum lab_kind kind, uint32_t index)
{
    return (uint64_t)kind << 32 | index;
}

/* The first `count` of 32. */
static inline uint32_t lab_bits(uint32_t count)
{
    return count >= LAB_LANES ? UINT32_MAX : (1u << count) - 1;
}

struct lab_warp {
    uint32_t threads[LAB_LANES];
    uint32_t lanes;  /* that have a thread */
    uint32_t active; /* in the present operation */
    uint32_t iteration, op, gap;
    uint32_t taken, taken_region; /* the branch as asked last; region 0: not asked */
    /* The present instruction with memory. */
    struct lab_access access;
    uint32_t missed;       /* pages, a bit each */
    uint32_t queued_lines; /* that wait for the data cache */
    uint64_t ready;        /* when all that were read are there */
    bool walking;
    bool packed; /* made by compaction */
};

/* The pages of a warp's instruction as the TLB has them. */
struct lab_translation {
    uint32_t missed, hits; /* a bit each */
    uint16_t cycles;       /* that the lookup takes */
    uint16_t hit_count;
    uint16_t slots[LAB_LANES + 1]; /* of the hits */
};

/* Warps that wait to look up their pages again, a bit each, by two hashes of each of the pages:
 * those in both may want it. They tell whose translations change when an entry of the TLB does. */
enum { LAB_WANTED = 256 };

/* A line that waits for the data cache. */
struct lab_line {
    uint64_t earliest;
    uint32_t line;
    uint8_t warp;
    bool page_missed;
};

/* The misses of one warp, which are all that a core walks at a time. */
struct lab_walks {
    uint32_t warp;
    uint64_t start;
    uint32_t count;
    uint64_t pages[LAB_MAX_WALKS];
    struct lab_walk_load loads[LAB_MAX_LOADS];
    uint32_t load_count;
    uint32_t next[LAB_MAX_WALKERS]; /* which load each walker makes next */
    uint32_t walkers_busy;
    uint64_t kept[2]; /* entries of the upper levels that are remembered, + 1 */
};

struct lab_block {
    uint32_t running; /* warps */
    uint32_t waiting; /* of these, at the branch */
    uint32_t side;    /* of the branch, while packed warps run */
    uint32_t id;
    uint32_t op; /* the first of the branch */
    uint32_t iteration;
    bool packed;
};

/* What each step of a core looks at comes first, so that it takes few lines of the host's cache. */
struct lab_core {
    _Alignas(64) uint64_t now;
    uint64_t next; /* when it goes on; LAB_NEVER: it is done */
    struct lab_events events;
    /* Warps, a bit each: with instructions before memory, at an instruction with memory, missed
     * while others walk, not finished. */
    uint64_t compute, memory, swapped, live;
    uint64_t waiting;      /* warps that will look up their pages again */
    uint64_t translated;   /* of these, those whose translations are true */
    uint64_t lines_free;   /* when the data cache takes the next line */
    uint64_t lookups_free; /* when the TLB takes the next instruction */
    uint32_t last;         /* warp that issued */
    uint32_t queue_count;  /* of `queue` */
    uint32_t id;
    bool queue_event, walks_active;
    const struct lab_machine *machine;
    struct lab_locality_state *locality; /* owned; NULL: none */
    struct lab_counts counts;
    struct lab_cache *l1;  /* owned */
    struct lab_cache *tlb; /* owned; NULL: none */
    struct lab_engine *engine;
    const struct lab_work *work;
    uint32_t blocks_started;
    uint32_t mshr_next;
    uint64_t launches;
    uint64_t mshrs[LAB_MSHRS]; /* until when each is taken, the oldest at mshr_next */
    /* Until a line can be compared: once its page was looked up, with others side by side. 0
     * without a TLB. */
    uint16_t wait_of_page[LAB_LANES];
    uint16_t lookup_cycles[LAB_LANES + 1]; /* that so many pages take */
    struct lab_translation translations[LAB_MAX_WARPS];
    uint64_t wanted[2][LAB_WANTED];
    /* Of one instruction, and of one whose walks ended meanwhile; from the start whenever it was
     * empty. */
    uint32_t queue_first;
    struct lab_line queue[LAB_QUEUE];
    struct lab_walks walks;
    struct lab_warp warps[LAB_MAX_WARPS];
    struct lab_block blocks[LAB_MAX_WARPS];
    uint64_t ages[LAB_MAX_WARPS]; /* of blocks: which launch */
    struct lab_matrix matrix;
};

struct lab_engine {
    const struct lab_machine *machine;
    struct lab_memory *memory; /* owned */
    struct lab_core *cores;    /* owned */
    uint32_t blocks;           /* of each core */
};

/* core.c. Runs the core until its next step that other cores can notice is later than `limit`. */
void lab_core_run(struct lab_core *c, uint64_t limit);

/* lines.c. Lines of the warp's instruction whose page is in `pages` (a bit each) wait for the data
 * cache; the warp wakes when all are there and nothing is walked for it. */
void lab_lines_read(struct lab_core *c, uint32_t warp, uint32_t pages, bool missed, uint64_t now);
/* As many of the waiting lines as have a miss register; the others when the next is free. */
void lab_lines_go_on(struct lab_core *c);

/* mmu.c. The pages of the warp's instruction that miss, a bit each. */
uint32_t lab_mmu_lookup(struct lab_core *c, uint32_t warp, uint64_t now);
/* The warp will look up the same pages again, or, `waits` false, no more. */
void lab_mmu_wait(struct lab_core *c, uint32_t warp, bool waits);
/* Will the warp's instruction only find that it has to wait for walks of another? Then nothing that
 * is shared is touched, and no other core needs to go first. */
bool lab_mmu_swaps(struct lab_core *c, uint32_t warp);
/* Walks for the pages that the warp missed. */
void lab_mmu_walk(struct lab_core *c, uint32_t warp, uint64_t now);
/* A load of this walker is there. */
void lab_mmu_step(struct lab_core *c, uint32_t walker, uint64_t now);

/* block.c */
void lab_block_launch(struct lab_core *c, uint32_t block);
/* The warp has done its operation. */
void lab_block_next(struct lab_core *c, uint32_t warp);

#endif
