/* mosaic_mmu.h: translation as Mosaic (MICRO 2017, section 3.1 and table 1) has it: TLBs for base
 * and for large pages in each core and behind all of them, misses to the same page merged, one page
 * walker for all cores, far faults over the bus. A core waits for one translation at a time: its
 * memory unit works in order, as that of the released simulator does. For a page that has to come
 * over the bus only the warps wait that touch it (section 3.2). Times are cycles of a core. Not
 * thread safe.
 *
 * Who drives it keeps the clock: it is given `post`, and calls mosaic_mmu_due when the time has
 * come.
 */
#ifndef REACH_CLIENTS_LAB_PAPERS_MOSAIC_MOSAIC_MMU_H
#define REACH_CLIENTS_LAB_PAPERS_MOSAIC_MOSAIC_MMU_H

#include "clients/lab/papers/mosaic/frames.h"
#include "clients/lab/papers/mosaic/mosaic_memory.h"

enum mosaic_design {
    MOSAIC_IDEAL,  /* every lookup hits the first level */
    MOSAIC_BASE,   /* GPU-MMU: base pages */
    MOSAIC_LARGE,  /* large pages alone, in as many entries as GPU-MMU has for base pages */
    MOSAIC_MOSAIC, /* both, as the frames say */
    MOSAIC_DESIGNS
};

/* Pages on their way over the bus at a time. For each of them one warp waits at least. */
enum { MOSAIC_MAX_FAULTS = 2048 };

struct mosaic_mmu_desc {
    enum mosaic_design design;
    uint32_t cores;
    uint32_t l1_base, l1_large; /* entries, fully associative */
    uint32_t l2_base, l2_large; /* entries; the base ones 16-way */
    uint32_t walk_cache;        /* entries for upper levels, 8-way; 0: none */
    bool lazy;                  /* a page comes over the bus when it is touched first */
};

/* The paper's: 128 + 16 entries in a core, 512 + 256 behind, no walk cache, no faults. */
struct mosaic_mmu_desc mosaic_mmu_paper(enum mosaic_design design, uint32_t cores);

/* A core whose page another core's walk is fetching waits for it, then looks up the second level
 * and hits, as in the released simulator: a miss of the second level is a walk. */
struct mosaic_mmu_counts {
    uint64_t l1_lookups, l1_misses;
    uint64_t l2_lookups, l2_misses;
    uint64_t l2_large_lookups, l2_large_misses; /* of these, for large pages */
    uint64_t walks, faults;
};

/* Borrowed by the MMU while it lives. */
struct mosaic_mmu_host {
    void *arg;
    void (*post)(void *arg, uint32_t what, uint64_t at); /* one event per `what` at a time */
    /* The core has the translation that it waits for, in cycle `at`. */
    void (*resolved)(void *arg, uint32_t core, uint64_t at);
    /* If lazy: the page that the core waits for is not there. The core waits no more; its
     * instruction may ask again when page number `fault` on its way has arrived. */
    void (*faulted)(void *arg, uint32_t core, uint32_t fault);
    void (*arrived)(void *arg, uint32_t fault);
    const struct frames *frames;
    struct mosaic_memory *memory;
};

struct mosaic_mmu;

struct mosaic_mmu *mosaic_mmu_new(const struct mosaic_mmu_desc *desc,
                                  const struct mosaic_mmu_host *host);
void mosaic_mmu_free(struct mosaic_mmu *take);

/* Events are numbered 0 .. mosaic_mmu_events - 1. */
uint32_t mosaic_mmu_events(const struct mosaic_mmu *m);

/* A core needs virtual page `page` of an application in cycle `now`, and waits for nothing else.
 * True: the translation is there in cycle *out_at. False: `resolved` or `faulted` will be called.
 */
bool mosaic_mmu_translate(struct mosaic_mmu *m, uint32_t core, uint32_t app, uint32_t page,
                          uint64_t now, uint64_t *out_at);
void mosaic_mmu_due(struct mosaic_mmu *m, uint32_t what, uint64_t now);

struct mosaic_mmu_counts mosaic_mmu_count(const struct mosaic_mmu *m);

#endif
