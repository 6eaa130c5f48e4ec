/* frames.h: physical memory in large frames of 512 base pages. The allocators are from Mosaic
 * (Ausavarungnirun et al., MICRO 2017) and its comparison:
 *
 *   FRAMES_BASE   the paper's GPU-MMU. Base pages of all applications share frames and get any
 *                 free page. No frame is merged.
 *   FRAMES_LARGE  large pages alone. Each touched 2 MiB of virtual memory takes a frame.
 *   FRAMES_COCOA  Mosaic. Each aligned 2 MiB of an allocation takes a free frame, page i at
 *                 place i, and is merged in place. Other pages of the allocation take single
 *                 pages from frames of the same application.
 *
 * A page is the number of a 4 KiB page. Virtual pages count from 0 in each application. Physical
 * page p is place p % 512 of frame p / 512. Frame f is in memory channel f % channels. The
 * functions are not thread-safe. */
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
    uint32_t keep_pages;  /* a merged frame with fewer used pages is split, 0..512 */
    bool compact;         /* FRAMES_COCOA: contiguity-aware compaction */
    uint64_t seed;
};

struct frames_counts {
    uint64_t used_pages;    /* pages that applications use now */
    uint64_t reserved;      /* free pages that only one application can get now */
    uint64_t most_reserved; /* largest value of `reserved` */
    uint64_t merges;        /* merges in place */
    uint64_t splinters;     /* split frames; each split flushes one large entry from all TLBs */
    uint64_t copied_pages;  /* pages that compaction moved within their channel */
    uint64_t freed_frames;  /* frames that compaction freed */
    uint64_t emergencies;   /* merged frames that were split because no other page was free */
    uint64_t mixed_frames;  /* frames with foreign pages in which an application got pages */
    uint64_t refused_pages; /* pages that were refused because memory was full */
};

struct frames;

/* Copies `config`. Returns NULL if out of memory. */
struct frames *frames_new(const struct frames_config *config);
void frames_free(struct frames *take);

/* A function that is called for each translation that becomes invalid. The translation is for one
 * base page, or for the large page at `page`. The function may be NULL. */
typedef void frames_forget(void *arg, uint32_t app, uint32_t page, bool large);
void frames_on_change(struct frames *f, frames_forget *forget, void *arg);

/* Fills memory with foreign data, before any allocation. The share `index` of the frames is drawn
 * at random. The share `occupancy` of their pages is filled (0..1 each). Foreign data can be moved
 * by compaction, but are never freed. */
void frames_fragment(struct frames *f, double index, double occupancy);

/* Allocates pages [first, first + count), which must not be allocated. Returns false if memory is
 * full. Earlier pages of the range are then allocated. */
bool frames_alloc(struct frames *f, uint32_t app, uint32_t first, uint32_t count);

/* Frees pages [first, first + count). Pages that are not allocated are skipped. */
void frames_release(struct frames *f, uint32_t app, uint32_t first, uint32_t count);

/* Returns the physical page of a virtual page, or FRAMES_NONE. */
uint32_t frames_page(const struct frames *f, uint32_t app, uint32_t page);

/* Returns whether the 2 MiB around the page are one large page. */
bool frames_is_large(const struct frames *f, uint32_t app, uint32_t page);

struct frames_counts frames_count(const struct frames *f);

/* These functions return reserved free pages divided by used pages, or 0 if no page is used.
 * frames_most_bloat uses the largest number of reserved pages, like the released simulator of
 * Mosaic. */
double frames_bloat(const struct frames *f);
double frames_most_bloat(const struct frames *f);

#endif
