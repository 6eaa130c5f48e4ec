/* frames.h: physical memory in large frames of 512 base pages, for one program that allocates and
 * never frees. The allocators are from Mosaic (Ausavarungnirun et al., MICRO 2017) and its
 * comparison:
 *
 *   FRAMES_BASE   the paper's GPU-MMU. A base page gets any free page. No frame is merged.
 *   FRAMES_LARGE  large pages alone. Each touched 2 MiB of virtual memory takes a frame.
 *   FRAMES_COCOA  Mosaic. Each aligned 2 MiB of an allocation takes a free frame, page i at
 *                 place i, and is merged in place. Other pages of the allocation take single
 *                 pages from frames of the program.
 *
 * A page is the number of a 4 KiB page. Virtual pages count from 0. Physical page p is place
 * p % 512 of frame p / 512. Frame f is in memory channel f % channels. The functions are not
 * thread-safe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    FRAMES_PAGES = 512,
    FRAMES_PAGE_BYTES = 4096,
    FRAMES_LARGE_BYTES = FRAMES_PAGES * FRAMES_PAGE_BYTES
};
#define FRAMES_NONE UINT32_MAX

enum frames_policy { FRAMES_BASE, FRAMES_LARGE, FRAMES_COCOA };

struct frames_config {
    enum frames_policy policy;
    uint32_t frame_count; /* 1..65536 */
    uint32_t channels;    /* 1..frame_count */
    uint32_t pages;       /* virtual pages, a multiple of FRAMES_PAGES */
    bool compact;         /* FRAMES_COCOA: contiguity-aware compaction */
    uint64_t seed;
};

struct frames_counts {
    uint64_t used_pages;    /* pages that the program uses */
    uint64_t reserved;      /* free pages in frames of the program */
    uint64_t most_reserved; /* largest value of `reserved`, in FRAMES_COCOA */
    uint64_t merges;        /* merges in place */
    uint64_t copied_pages;  /* pages that compaction moved within their channel */
    uint64_t mixed_frames;  /* frames with foreign pages in which the program got pages */
    uint64_t refused_pages; /* pages that were refused because memory was full */
};

struct frames;

/* Copies `config`. Returns NULL if out of memory. */
struct frames *frames_new(const struct frames_config *config);
void frames_free(struct frames *take);

/* Fills memory of FRAMES_COCOA with foreign data, before any allocation. The share `index` of the
 * frames is drawn at random. The share `occupancy` of their pages is filled (0..1 each). Foreign
 * data can be moved by compaction, but are never freed. */
void frames_fragment(struct frames *f, double index, double occupancy);

/* Allocates pages [first, first + count), which must not be allocated. Returns false if memory is
 * full. Earlier pages of the range are then allocated. */
bool frames_alloc(struct frames *f, uint32_t first, uint32_t count);

/* Returns the physical page of a virtual page, or FRAMES_NONE. */
uint32_t frames_page(const struct frames *f, uint32_t page);

/* Returns whether the 2 MiB around the page are one large page. */
bool frames_is_large(const struct frames *f, uint32_t page);

struct frames_counts frames_count(const struct frames *f);
