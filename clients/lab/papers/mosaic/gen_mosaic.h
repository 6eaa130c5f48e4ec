/* gen_mosaic.h: 27 synthetic applications for Mosaic's machine. Each application is a row of a
 * table for one generator. The paper names suites, but no applications. Names and classes are from
 * MASK (Ausavarungnirun et al., ASPLOS 2018). The accesses are from the programs in its simulator.
 * Sizes, the mean loss with base pages (figure 3 of the paper) and the bloat of large pages alone
 * are fitted. */
#ifndef REACH_CLIENTS_LAB_PAPERS_MOSAIC_GEN_MOSAIC_H
#define REACH_CLIENTS_LAB_PAPERS_MOSAIC_GEN_MOSAIC_H

#include "base/rng.h"

#include <stdbool.h>
#include <stdint.h>

enum { GEN_MOSAIC_APPS = 27, GEN_MAX_LINES = 16, GEN_MAX_ARRAYS = 48, GEN_MAX_OPS = 8 };
enum { GEN_LINE_BYTES = 128, GEN_PAGE_LINES = 32, GEN_BLOCK_WARPS = 8 };

enum gen_pattern {
    GEN_STREAM,   /* adjacent warps read adjacent lines, then skip the length of the grid */
    GEN_CHUNK,    /* each block reads its own piece; adjacent warps read adjacent lines */
    GEN_TILE,     /* each warp of a block reads one row; adjacent blocks continue the rows */
    GEN_STENCIL,  /* like GEN_TILE, with the rows before and after */
    GEN_GATHER,   /* random lines of a moving window, and of the whole array */
    GEN_ZIPF,     /* like GEN_GATHER, with more frequent low addresses and a fixed window */
    GEN_TREE,     /* random node of a random level, in the top of the tree or down to the leaves */
    GEN_BUTTERFLY /* like GEN_STREAM, with the partner in the stage */
};

/* One memory instruction in the loop of a warp. */
struct gen_op {
    enum gen_pattern pattern;
    uint8_t array; /* number of the large array */
    uint8_t lines; /* distinct lines, 1..GEN_MAX_LINES; a stencil has 3, a butterfly 2 */
};

struct gen_app {
    const char *name;
    const char *class;    /* misses of the first and second level in MASK's table */
    uint16_t mb;          /* working set: all arrays */
    uint8_t large_arrays; /* arrays that share the memory beside the small arrays */
    uint8_t small_arrays;
    uint16_t small_kb;   /* size of a small array */
    uint16_t window_kb;  /* window of a gather, or length of a row of a tile */
    uint8_t far_percent; /* percentage of the lines of a gather outside of the window */
    uint16_t gap;        /* instructions before a memory instruction */
    uint16_t passes;     /* passes over the data in a whole run */
    uint8_t op_count;
    struct gen_op ops[GEN_MAX_OPS];
};

/* Returns application 0 to GEN_MOSAIC_APPS - 1. */
const struct gen_app *gen_mosaic_app(uint32_t app);

/* The virtual memory of an application. Each allocation begins at a large page. */
struct gen_layout {
    const struct gen_app *app;
    uint32_t warps; /* warps of the whole grid */
    uint32_t array_count;
    uint32_t first_page[GEN_MAX_ARRAYS]; /* base pages */
    uint32_t pages[GEN_MAX_ARRAYS];
    uint32_t end_page; /* end of all allocations, a multiple of a large page */
    uint32_t loop;     /* memory instructions in the loop of a warp */
};
/* Places an application. Its memory is the size in the table divided by `shrink`, 1 or more. */
void gen_mosaic_place(const struct gen_app *app, uint32_t warps, uint32_t shrink,
                      struct gen_layout *out);
uint32_t gen_mosaic_pages(const struct gen_layout *l); /* number of base pages that are needed */

struct gen_warp {
    uint32_t id;   /* number of the warp in the grid */
    uint32_t step; /* number of memory instructions that were made */
    struct rng rng;
};

/* Returns the number of memory instructions in the loop of a warp. These are all of `ops`, and one
 * for the small arrays if the application has any. Writes the number of distinct lines of one
 * iteration. */
uint32_t gen_mosaic_loop(const struct gen_app *app, uint32_t *out_lines);

/* Writes the virtual lines of the next memory instruction of a warp (GEN_PAGE_LINES per page).
 * Returns their number. */
uint32_t gen_mosaic_next(const struct gen_layout *l, struct gen_warp *w,
                         uint32_t out_lines[GEN_MAX_LINES]);

#endif
