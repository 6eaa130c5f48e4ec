/* mosaic_mmu.h: address translation of Mosaic (MICRO 2017, section 3.1 and table 1). There are TLBs
 * for base pages and for large pages in each core and behind all cores. Misses to the same page are
 * merged, one page walker serves all cores, and far faults go over the bus.
 *
 * A core waits for one translation at a time, because its memory unit works in order, like in the
 * released simulator. Only the warps that touch a page wait for its transfer (section 3.2). Times
 * are cycles of a core. The functions are not thread-safe.
 *
 * The caller has the clock: it provides `post`, and calls mosaic_mmu_due at the posted time. */
#ifndef REACH_CLIENTS_LAB_PAPERS_MOSAIC_MOSAIC_MMU_H
#define REACH_CLIENTS_LAB_PAPERS_MOSAIC_MOSAIC_MMU_H

#include "clients/lab/papers/mosaic/frames.h"
#include "clients/lab/papers/mosaic/mosaic_memory.h"

enum mosaic_design {
    MOSAIC_IDEAL,  /* every lookup hits the first level */
    MOSAIC_BASE,   /* GPU-MMU: base pages */
    MOSAIC_LARGE,  /* large pages alone, in the entries that GPU-MMU has for base pages */
    MOSAIC_MOSAIC, /* base pages and large pages, depending on the frame */
    MOSAIC_DESIGNS
};

/* Maximum number of pages in transfer. At least one warp waits for each page. */
enum { MOSAIC_MAX_FAULTS = 2048 };

struct mosaic_mmu_desc {
    enum mosaic_design design;
    uint32_t cores;
    uint32_t l1_base, l1_large; /* entries, fully associative */
    uint32_t l2_base, l2_large; /* entries; base entries are 16-way */
    uint32_t walk_cache;        /* entries for upper levels, 8-way; 0 means no walk cache */
    bool lazy;                  /* a page comes over the bus at its first access */
};

/* Returns the paper's MMU. A core has 128 + 16 entries, and the second level has 512 + 256. There
 * is no walk cache, and there are no faults. */
struct mosaic_mmu_desc mosaic_mmu_paper(enum mosaic_design design, uint32_t cores);

/* If a walk of another core already fetches the page, the core waits for it. The core then looks up
 * the second level and hits, like in the released simulator. So each miss of the second level is a
 * walk. */
struct mosaic_mmu_counts {
    uint64_t l1_lookups, l1_misses;
    uint64_t l2_lookups, l2_misses;
    uint64_t l2_large_lookups, l2_large_misses; /* lookups and misses of large pages */
    uint64_t walks, faults;
};

/* Borrowed until mosaic_mmu_free. */
struct mosaic_mmu_host {
    void *arg;
    void (*post)(void *arg, uint32_t what, uint64_t at); /* one event per `what` at a time */
    /* The translation that the core waits for is available in cycle `at`. */
    void (*resolved)(void *arg, uint32_t core, uint64_t at);
    /* Called if `lazy` is set and the page that the core waits for is not in memory. The core no
     * longer waits. Its instruction may be repeated after `arrived` with the same `fault`. */
    void (*faulted)(void *arg, uint32_t core, uint32_t fault);
    void (*arrived)(void *arg, uint32_t fault);
    const struct frames *frames;
    struct mosaic_memory *memory;
};

struct mosaic_mmu;

struct mosaic_mmu *mosaic_mmu_new(const struct mosaic_mmu_desc *desc,
                                  const struct mosaic_mmu_host *host);
void mosaic_mmu_free(struct mosaic_mmu *take);

/* Events are numbered from 0 to mosaic_mmu_events - 1. */
uint32_t mosaic_mmu_events(const struct mosaic_mmu *m);

/* Translates virtual page `page` of an application for a core that waits for no other translation.
 * Returns true if the translation is available in cycle *out_at. Otherwise `resolved` or `faulted`
 * is called later. */
bool mosaic_mmu_translate(struct mosaic_mmu *m, uint32_t core, uint32_t app, uint32_t page,
                          uint64_t now, uint64_t *out_at);
void mosaic_mmu_due(struct mosaic_mmu *m, uint32_t what, uint64_t now);

struct mosaic_mmu_counts mosaic_mmu_count(const struct mosaic_mmu *m);

#endif
