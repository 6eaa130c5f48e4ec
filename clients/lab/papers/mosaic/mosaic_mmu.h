/* mosaic_mmu.h: address translation of Mosaic (MICRO 2017, section 3.1 and table 1). There are TLBs
 * for base pages and for large pages in each core and behind all cores. Misses to the same page are
 * merged, and one page walker serves all cores. All pages are in memory, and there is no walk
 * cache.
 *
 * A core waits for one translation at a time, because its memory unit works in order, like in the
 * released simulator. A core has 128 base and 16 large entries, and the second level has 512 and
 * 256. Times are cycles of a core. The functions are not thread-safe.
 *
 * The caller has the clock: it provides `post`, and calls mosaic_mmu_due at the posted time. */
#pragma once

#include "clients/lab/papers/mosaic/frames.h"
#include "clients/lab/papers/mosaic/mosaic_memory.h"

enum mosaic_design {
    MOSAIC_IDEAL,  /* every lookup hits the first level */
    MOSAIC_BASE,   /* GPU-MMU: base pages */
    MOSAIC_LARGE,  /* large pages alone, in the entries that GPU-MMU has for base pages */
    MOSAIC_MOSAIC, /* base pages and large pages, depending on the frame */
    MOSAIC_DESIGNS
};

/* If a walk of another core already fetches the page, the core waits for it. The core then looks up
 * the second level and hits, like in the released simulator. So each miss of the second level is a
 * walk. */
struct mosaic_mmu_counts {
    uint64_t l1_lookups, l1_misses;
    uint64_t l2_lookups, l2_misses;
};

/* Borrowed until mosaic_mmu_free. */
struct mosaic_mmu_host {
    void *arg;
    void (*post)(void *arg, uint32_t what, uint64_t at); /* one event per `what` at a time */
    /* The translation that the core waits for is available in cycle `at`. */
    void (*resolved)(void *arg, uint32_t core, uint64_t at);
    const struct frames *frames;
    struct mosaic_memory *memory;
};

struct mosaic_mmu;

struct mosaic_mmu *mosaic_mmu_new(enum mosaic_design design, uint32_t cores,
                                  const struct mosaic_mmu_host *host);
void mosaic_mmu_free(struct mosaic_mmu *take);

/* Translates virtual page `page` for a core that waits for no other translation. Returns true if
 * the translation is available in cycle *out_at. Otherwise `resolved` is called later. */
bool mosaic_mmu_translate(struct mosaic_mmu *m, uint32_t core, uint32_t page, uint64_t now,
                          uint64_t *out_at);
void mosaic_mmu_due(struct mosaic_mmu *m, uint32_t what, uint64_t now);

struct mosaic_mmu_counts mosaic_mmu_count(const struct mosaic_mmu *m);
