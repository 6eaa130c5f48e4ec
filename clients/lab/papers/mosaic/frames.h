/* frames.h: physical memory in large frames of 512 base pages, and who gets which page of it: the
 * allocators of Mosaic (Ausavarungnirun et al., MICRO 2017) and those it is compared with.
 *
 *   FRAMES_BASE    the paper's GPU-MMU: base pages of all applications share frames, any free page
 *                  of memory is as good as another; nothing is ever merged
 *   FRAMES_LARGE   large pages alone: each 2 MiB of virtual memory that is touched takes a frame
 *   FRAMES_COCOA   Mosaic: an aligned 2 MiB of an allocation takes a whole free frame, page i at
 *                  place i, and is merged in place; the rest takes single pages from frames of the
 *                  same application
 *
 * Pages are numbers of 4 KiB pages: virtual ones count from 0 in each application, physical page p
 * is place p % 512 of frame p / 512. Frame f lies in memory channel f % channels. Not thread safe.
 */
#ifndef REACH_CLIENTS_LAB_PAPERS_MOSAIC_FRAMES_H
#define REACH_CLIENTS_LAB_PAPERS_MOSAIC_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

enum { FRAMES_PAGES = 512, FRAMES_MAX_APPS = 8 };
enum { FRAMES_PAGE_BYTES = 4096, FRAMES_LARGE_BYTES = FRAMES_PAGES * FRAMES_PAGE_BYTES };
#define FRAMES_NONE UINT32_MAX

enum frames_policy { FRAMES_BASE, FRAMES_LARGE, FRAMES_COCOA };

struct frames_config {
    enum frames_policy policy;
    uint32_t frame_count; /* 1..65536 */
    uint32_t channels;    /* 1..frame_count */
    uint32_t app_count;   /* 1..FRAMES_MAX_APPS */
    uint32_t app_pages;   /* virtual pages of each application, a multiple of FRAMES_PAGES */
    uint32_t keep_pages;  /* a merged frame with fewer used pages is splintered, 0..512 */
    bool compact;         /* FRAMES_COCOA: contiguity-aware compaction */
    uint64_t seed;
};

struct frames_counts {
    uint64_t used_pages;    /* of applications, now */
    uint64_t reserved;      /* free pages that only their application can get, now */
    uint64_t most_reserved; /* at any time between two allocations of a page */
    uint64_t merges;        /* in place */
    uint64_t splinters;     /* each flushes one large entry from all TLBs */
    uint64_t copied_pages;  /* moved by compaction, all within a channel */
    uint64_t freed_frames;  /* by compaction */
    uint64_t emergencies;   /* merged frames splintered because nothing else was free */
    uint64_t mixed_frames;  /* frames with foreign pages that an application got pages of */
    uint64_t refused_pages; /* memory was full */
};

struct frames;

/* NULL: no memory. Copies `config`. */
struct frames *frames_new(const struct frames_config *config);
void frames_free(struct frames *take);

/* Is told of each translation that is no longer true: of one base page, or of the large page at
 * `page`. May be NULL. */
typedef void frames_forget(void *arg, uint32_t app, uint32_t page, bool large);
void frames_on_change(struct frames *f, frames_forget *forget, void *arg);

/* Before any allocation: `index` of the frames, drawn at random, get `occupancy` of their pages
 * filled with foreign data (0..1 each) that compaction may move but nobody frees. */
void frames_fragment(struct frames *f, double index, double occupancy);

/* One allocation of pages [first, first + count), none of which is there. False if memory ran out;
 * the pages before that are there. */
bool frames_alloc(struct frames *f, uint32_t app, uint32_t first, uint32_t count);

/* Frees pages [first, first + count); those that are not there are skipped. */
void frames_release(struct frames *f, uint32_t app, uint32_t first, uint32_t count);

/* Where a page lies, FRAMES_NONE if nowhere. */
uint32_t frames_page(const struct frames *f, uint32_t app, uint32_t page);

/* Is the page's 2 MiB one large page? */
bool frames_is_large(const struct frames *f, uint32_t app, uint32_t page);

struct frames_counts frames_count(const struct frames *f);

/* Bytes taken over bytes needed, less 1: what is free but reserved over what is used; now, or with
 * as much reserved as there ever was (what the released simulator of Mosaic counts). 0 if nothing
 * is used. */
double frames_bloat(const struct frames *f);
double frames_most_bloat(const struct frames *f);

#endif
