/* gen_mosaic.h: work for Mosaic's machine: 27 applications, each a row of one table for one
 * generator with seven knobs. The paper names suites and not applications; names and classes are
 * those of MASK (Ausavarungnirun et al., ASPLOS 2018), whose simulator is the same; what they
 * access is written after the programs that come with it. They are synthetic: their sizes, the mean
 * loss with base pages (paper, figure 3) and the bloat of large pages alone are fitted.
 */
#ifndef REACH_CLIENTS_LAB_PAPERS_MOSAIC_GEN_MOSAIC_H
#define REACH_CLIENTS_LAB_PAPERS_MOSAIC_GEN_MOSAIC_H

#include "base/rng.h"

#include <stdbool.h>
#include <stdint.h>

enum { GEN_MOSAIC_APPS = 27, GEN_MAX_LINES = 16, GEN_MAX_ARRAYS = 48, GEN_MAX_OPS = 8 };
enum { GEN_LINE_BYTES = 128, GEN_PAGE_LINES = 32, GEN_BLOCK_WARPS = 8 };

enum gen_pattern {
    GEN_STREAM,   /* the warps side by side, then on by the length of the grid */
    GEN_CHUNK,    /* each block through a piece of its own, its warps side by side */
    GEN_TILE,     /* each warp of a block a row below the last, the blocks along the rows */
    GEN_STENCIL,  /* as tile, and the rows before and behind */
    GEN_GATHER,   /* anywhere in a window that moves on, or far from it */
    GEN_ZIPF,     /* the same, low addresses far more often, and the window stays */
    GEN_TREE,     /* a level at random, a node of it at random; the top, or down to the leaves */
    GEN_BUTTERFLY /* as stream, and its partner in the stage */
};

/* One memory instruction in the loop of a warp. */
struct gen_op {
    enum gen_pattern pattern;
    uint8_t array; /* which of the large ones */
    uint8_t lines; /* distinct ones: 1..GEN_MAX_LINES; 3 of a stencil, 2 of a butterfly */
};

struct gen_app {
    const char *name;
    const char *class;    /* misses of the first and the second level in MASK's table */
    uint16_t mb;          /* working set: all arrays */
    uint8_t large_arrays; /* that share what the small ones leave */
    uint8_t small_arrays;
    uint16_t small_kb;   /* of each */
    uint16_t window_kb;  /* reuse distance: of a gather's window; of a tile: length of a row */
    uint8_t far_percent; /* of the lines of a gather lie outside the window */
    uint16_t gap;        /* instructions before a memory instruction */
    uint16_t passes;     /* over the data in a whole run */
    uint8_t op_count;
    struct gen_op ops[GEN_MAX_OPS];
};

/* 0 .. GEN_MOSAIC_APPS - 1. */
const struct gen_app *gen_mosaic_app(uint32_t app);

/* An application in its virtual memory: each allocation begins at a large page. */
struct gen_layout {
    const struct gen_app *app;
    uint32_t warps; /* of the whole grid */
    uint32_t array_count;
    uint32_t first_page[GEN_MAX_ARRAYS]; /* base pages */
    uint32_t pages[GEN_MAX_ARRAYS];
    uint32_t end_page; /* a multiple of a large page */
    uint32_t loop;     /* memory instructions in the loop of a warp */
};
/* `shrink`: by how much less memory than it has in the table, 1 or more. */
void gen_mosaic_place(const struct gen_app *app, uint32_t warps, uint32_t shrink,
                      struct gen_layout *out);
uint32_t gen_mosaic_pages(const struct gen_layout *l); /* needed, base pages */

struct gen_warp {
    uint32_t id;   /* in the grid */
    uint32_t step; /* memory instructions so far */
    struct rng rng;
};

/* Memory instructions in the loop of a warp, and distinct lines in one iteration: all of `ops`, and
 * one instruction for the small arrays if there are any. */
uint32_t gen_mosaic_loop(const struct gen_app *app, uint32_t *out_lines);

/* The next memory instruction of a warp: its virtual lines (GEN_PAGE_LINES in a page). Returns how
 * many. */
uint32_t gen_mosaic_next(const struct gen_layout *l, struct gen_warp *w,
                         uint32_t out_lines[GEN_MAX_LINES]);

#endif
