/* gen_mosaic.h: 27 synthetic applications for Mosaic's machine. Each is a row of a table for one
 * generator. The paper names suites and no applications. Names and classes are those of MASK
 * (Ausavarungnirun et al., ASPLOS 2018), and the accesses are those of the programs that come with
 * its simulator. Sizes, the mean loss with base pages (figure 3 of the paper) and the bloat of
 * large pages alone are fitted. */
#ifndef REACH_CLIENTS_LAB_PAPERS_MOSAIC_GEN_MOSAIC_H
#define REACH_CLIENTS_LAB_PAPERS_MOSAIC_GEN_MOSAIC_H

#include "base/rng.h"

#include <stdbool.h>
#include <stdint.h>

enum { GEN_MOSAIC_APPS = 27, GEN_MAX_LINES = 16, GEN_MAX_ARRAYS = 48, GEN_MAX_OPS = 8 };
enum { GEN_LINE_BYTES = 128, GEN_PAGE_LINES = 32, GEN_BLOCK_WARPS = 8 };

enum gen_pattern {
    GEN_STREAM, /* adjacent lines by adjacent warps, then on by the length of the grid */
    GEN_CHUNK,  /* each block reads its own piece, with adjacent lines by adjacent warps */
    GEN_TILE, /* each warp of a block reads one row, and blocks follow each other along the rows */
    GEN_STENCIL,  /* like tile, with the rows before and after */
    GEN_GATHER,   /* random lines of a window that moves, and of the whole array */
    GEN_ZIPF,     /* the same with more frequent low addresses and a fixed window */
    GEN_TREE,     /* a random node of a random level: of the top, or down to the leaves */
    GEN_BUTTERFLY /* like stream, with the partner in the stage */
};

/* One memory instruction in the loop of a warp. */
struct gen_op {
    enum gen_pattern pattern;
    uint8_t array; /* number of the large array */
    uint8_t lines; /* distinct lines, 1..GEN_MAX_LINES; 3 of a stencil, 2 of a butterfly */
};

struct gen_app {
    const char *name;
    const char *class;    /* misses of the first and the second level in MASK's table */
    uint16_t mb;          /* the working set: all arrays */
    uint8_t large_arrays; /* share the memory that the small ones leave */
    uint8_t small_arrays;
    uint16_t small_kb;   /* of each */
    uint16_t window_kb;  /* the window of a gather, or the length of a row of a tile */
    uint8_t far_percent; /* of the lines of a gather are outside of the window */
    uint16_t gap;        /* instructions before a memory instruction */
    uint16_t passes;     /* over the data in a whole run */
    uint8_t op_count;
    struct gen_op ops[GEN_MAX_OPS];
};

/* Application number 0 to GEN_MOSAIC_APPS - 1. */
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
/* Places an application. Its memory is the table's divided by `shrink`, 1 or more. */
void gen_mosaic_place(const struct gen_app *app, uint32_t warps, uint32_t shrink,
                      struct gen_layout *out);
uint32_t gen_mosaic_pages(const struct gen_layout *l); /* needed, base pages */

struct gen_warp {
    uint32_t id;   /* in the grid */
    uint32_t step; /* memory instructions so far */
    struct rng rng;
};

/* Returns the memory instructions in the loop of a warp: all of `ops`, and one for the small arrays
 * if there are any. Writes the distinct lines of one iteration. */
uint32_t gen_mosaic_loop(const struct gen_app *app, uint32_t *out_lines);

/* Writes the virtual lines of the next memory instruction of a warp (GEN_PAGE_LINES per page).
 * Returns their number. */
uint32_t gen_mosaic_next(const struct gen_layout *l, struct gen_warp *w,
                         uint32_t out_lines[GEN_MAX_LINES]);

#endif
