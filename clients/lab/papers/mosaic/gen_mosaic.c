/* gen_mosaic.c: the table of the applications and the generator. The arrays that a loop reads and
 * the passes over the data follow the programs in the released simulator. Rows have the length of a
 * row in a square or cube of the array's size. */
#include "clients/lab/papers/mosaic/gen_mosaic.h"

#include <math.h>

enum {
    SMALL_LINES = 2,
    KB = 1024,
    PAGE_BYTES = GEN_PAGE_LINES * GEN_LINE_BYTES,
    LARGE_PAGES = 512
};
enum { WINDOW_STEPS = 64 }; /* memory instructions of a warp before the window of a gather moves */
static const double ZIPF_POWER = 4;
enum { PERCENT = 100 };

/* Minimum number and size of the allocations of an application. Allocations that are not arrays are
 * small, and the loop does not read them: flags, parameters, sums. The numbers are fitted to the
 * paper's bloat with large pages. */
enum { ALLOCATIONS = 10, LEAST_KB = 16 };

/* clang-format off */
static const struct gen_app apps[GEN_MOSAIC_APPS] = {
    /* name   class         MB  large, small x KB  window far  gap passes  loop */
    {"LUD",   "low low",     10,  1,  0,    0,   200,   0,   8,   33, 2, {{GEN_GATHER, 0, 2}, {GEN_STREAM, 0, 1}}},
    {"NN",    "low low",     12,  1, 20,  500,   400,   0,   8,    1, 2, {{GEN_GATHER, 0, 2}, {GEN_STREAM, 0, 1}}},
    {"BFS2",  "low high",    64,  5,  2,   64,   200,  10,   2,   12, 5, {{GEN_STREAM, 0, 1}, {GEN_STREAM, 1, 1}, {GEN_STREAM, 2, 1}, {GEN_ZIPF, 3, 2}, {GEN_ZIPF, 4, 1}}},
    {"FFT",   "low high",   128,  2,  0,    0,   400,   0,   6,    8, 2, {{GEN_BUTTERFLY, 0, 2}, {GEN_BUTTERFLY, 1, 2}}},
    {"HISTO", "low high",    40,  1,  3,  256,   400,   0,   5,    1, 1, {{GEN_STREAM, 0, 1}}},
    {"NW",    "low high",   100,  2,  1,  100,   400,   2,   5,    2, 2, {{GEN_GATHER, 0, 2}, {GEN_STREAM, 1, 1}}},
    {"QTC",   "low high",    48,  2,  4,  128,   400,   5,   6,   40, 2, {{GEN_STREAM, 0, 1}, {GEN_GATHER, 1, 2}}},
    {"RAY",   "low high",    60,  2,  6,  200,   400,   5,  12,    2, 2, {{GEN_TREE, 0, 2}, {GEN_STREAM, 1, 1}}},
    {"SAD",   "low high",    72,  3,  0,    0,   400,   0,   6,    3, 3, {{GEN_STREAM, 0, 1}, {GEN_GATHER, 1, 2}, {GEN_STREAM, 2, 1}}},
    {"SCP",   "low high",   100,  2,  1,   16,   400,   0,   2,    1, 2, {{GEN_CHUNK, 0, 1}, {GEN_CHUNK, 1, 1}}},
    {"BP",    "high low",    60,  3,  4,  260,  1200,   0,   3,    2, 3, {{GEN_STREAM, 0, 1}, {GEN_STREAM, 1, 1}, {GEN_STREAM, 2, 1}}},
    {"GUP",   "high low",    32,  1,  1,   64,  1200,   0,   2,    4, 1, {{GEN_GATHER, 0, 2}}},
    {"HS",    "high low",    24,  3,  0,    0,     6,   0,  10,    2, 3, {{GEN_STENCIL, 0, 3}, {GEN_TILE, 1, 1}, {GEN_TILE, 2, 1}}},
    {"LPS",   "high low",    36,  2,  0,    0,     1,   0,   6,    1, 2, {{GEN_STENCIL, 0, 3}, {GEN_TILE, 1, 1}}},
    {"3DS",   "high high",  120,  2,  0,    0,     1,   0,   8,    1, 2, {{GEN_STENCIL, 0, 3}, {GEN_STREAM, 1, 1}}},
    {"BLK",   "high high",   80,  5,  0,    0,  1200,   0,   8,    1, 5, {{GEN_STREAM, 0, 1}, {GEN_STREAM, 1, 1}, {GEN_STREAM, 2, 1}, {GEN_STREAM, 3, 1}, {GEN_STREAM, 4, 1}}},
    {"CFD",   "high high",   97,  5,  8,  400,  1200,   0,  10, 2000, 5, {{GEN_STREAM, 0, 1}, {GEN_STREAM, 1, 1}, {GEN_GATHER, 2, 4}, {GEN_STREAM, 3, 1}, {GEN_STREAM, 4, 1}}},
    {"CONS",  "high high",   72,  3,  1,    4,    12,   0,   8,    1, 4, {{GEN_STREAM, 0, 1}, {GEN_STREAM, 1, 1}, {GEN_TILE, 1, 1}, {GEN_TILE, 2, 1}}},
    {"FWT",   "high high",   64,  2,  0,    0,  1200,   0,   4,    7, 2, {{GEN_BUTTERFLY, 0, 2}, {GEN_STREAM, 1, 1}}},
    {"LUH",   "high high",   90, 18, 12,  300,   400,   0,  10,  100, 8, {{GEN_STREAM, 0, 1}, {GEN_STREAM, 3, 1}, {GEN_STREAM, 6, 1}, {GEN_GATHER, 4, 2}, {GEN_GATHER, 5, 1}, {GEN_GATHER, 7, 1}, {GEN_STREAM, 9, 1}, {GEN_STREAM, 14, 1}}},
    {"MM",    "high high",  120,  3,  0,    0,    13,   0,  12,   64, 2, {{GEN_TILE, 0, 1}, {GEN_TILE, 1, 1}}},
    {"MUM",   "high high",  110,  3,  3,  100,  1200,  10,   6,   10, 3, {{GEN_TREE, 0, 4}, {GEN_STREAM, 1, 1}, {GEN_STREAM, 2, 1}}},
    {"RED",   "high high",   64,  1,  1,  256,  1200,   0,   2, 2560, 1, {{GEN_STREAM, 0, 2}}},
    {"SC",    "high high",  101,  2,  6,  150,  1200,   0,   4,   50, 2, {{GEN_GATHER, 0, 1}, {GEN_STREAM, 1, 1}}},
    {"SCAN",  "high high",   64,  2,  2,  128,  1200,   0,   3, 2560, 2, {{GEN_CHUNK, 0, 4}, {GEN_CHUNK, 1, 4}}},
    {"SRD",   "high high",   70,  6,  4,   32,     7,   0,   6,  100, 6, {{GEN_STENCIL, 0, 3}, {GEN_STREAM, 1, 1}, {GEN_STREAM, 2, 1}, {GEN_STREAM, 3, 1}, {GEN_STREAM, 4, 1}, {GEN_STREAM, 5, 1}}},
    {"TRD",   "high high",  362,  3,  0,    0,  1200,   0,   2,   10, 3, {{GEN_STREAM, 0, 1}, {GEN_STREAM, 1, 1}, {GEN_STREAM, 2, 1}}},
};
/* clang-format on */

const struct gen_app *gen_mosaic_app(uint32_t app)
{
    return &apps[app];
}

static void add_array(struct gen_layout *l, double bytes)
{
    const uint32_t at = l->array_count++;
    l->first_page[at] = l->end_page;
    l->pages[at] = (uint32_t)(bytes / PAGE_BYTES) + 1;
    l->end_page += (l->pages[at] + LARGE_PAGES - 1) / LARGE_PAGES * LARGE_PAGES;
}

static uint32_t virtual_line(const struct gen_layout *l, uint32_t array, uint32_t line)
{
    return l->first_page[array] * GEN_PAGE_LINES + line;
}

/* The sizes of the arrays of an application differ by at most half of their mean. They are drawn
 * with the seed of the application. Equal sizes would often be multiples of a large page. */
void gen_mosaic_place(const struct gen_app *app, uint32_t warps, uint32_t shrink,
                      struct gen_layout *out)
{
    struct rng rng = {(uint64_t)app->mb << 32 | (uint64_t)app->small_kb << 16 | app->window_kb};
    double weights[GEN_MAX_ARRAYS] = {0};
    double sum = 0;
    double rest = (double)app->mb * KB * KB;
    const uint32_t count = (uint32_t)app->large_arrays + app->small_arrays;
    uint32_t lines;
    *out = (struct gen_layout){.app = app, .warps = warps, .loop = gen_mosaic_loop(app, &lines)};
    for (uint32_t i = 0; i < count; i++) {
        weights[i] = 0.5 + rng_unit(&rng);
        sum += i < app->large_arrays ? weights[i] : 0;
        rest -= i < app->large_arrays ? 0 : weights[i] * app->small_kb * KB;
    }
    for (uint32_t i = 0; i < app->large_arrays; i++)
        add_array(out, rest * weights[i] / sum / shrink);
    for (uint32_t i = app->large_arrays; i < count; i++)
        add_array(out, weights[i] * app->small_kb * KB / shrink);
    for (uint32_t i = count; i < ALLOCATIONS; i++)
        add_array(out, LEAST_KB * KB);
}

uint32_t gen_mosaic_pages(const struct gen_layout *l)
{
    uint32_t pages = 0;
    for (uint32_t i = 0; i < l->array_count; i++)
        pages += l->pages[i];
    return pages;
}

/* ---- patterns: line numbers in the array, before the remainder by its length ---- */

struct place {
    uint32_t lines;     /* lines of the array */
    uint32_t window;    /* lines */
    uint32_t iteration; /* iteration of the warp's loop */
};

static uint32_t stream_line(const struct gen_layout *l, const struct gen_warp *w,
                            const struct place *p)
{
    return p->iteration * l->warps + w->id;
}

static uint32_t grid_blocks(const struct gen_layout *l)
{
    return (l->warps + GEN_BLOCK_WARPS - 1) / GEN_BLOCK_WARPS;
}

static uint32_t chunk_line(const struct gen_layout *l, const struct gen_warp *w,
                           const struct place *p, uint32_t lines)
{
    const uint32_t piece = p->lines / lines / grid_blocks(l) + 1;
    const uint32_t at = p->iteration * GEN_BLOCK_WARPS + w->id % GEN_BLOCK_WARPS;
    return (w->id / GEN_BLOCK_WARPS * piece + at % piece) * lines;
}

/* A row is as long as the window. Adjacent blocks along a row share its pages. */
static uint32_t tile_line(const struct gen_layout *l, const struct gen_warp *w,
                          const struct place *p, uint32_t below)
{
    const uint32_t block = p->iteration * grid_blocks(l) + w->id / GEN_BLOCK_WARPS;
    const uint32_t row = block / p->window * GEN_BLOCK_WARPS + w->id % GEN_BLOCK_WARPS + below;
    return row * p->window + block % p->window;
}

static bool is_far(const struct gen_layout *l, struct gen_warp *w)
{
    return rng_below(&w->rng, PERCENT) < l->app->far_percent;
}

/* Returns a random line of a moving window, or sometimes any line. The window is never larger than
 * the array. */
static uint32_t gather_line(const struct gen_layout *l, struct gen_warp *w, const struct place *p)
{
    const uint32_t window = p->window < p->lines ? p->window : p->lines;
    const uint32_t first = p->iteration / WINDOW_STEPS * window;
    return is_far(l, w) ? (uint32_t)rng_below(&w->rng, p->lines)
                        : first + (uint32_t)rng_below(&w->rng, window);
}

static uint32_t zipf_line(const struct gen_layout *l, struct gen_warp *w, const struct place *p)
{
    const uint32_t lines = !is_far(l, w) && p->window < p->lines ? p->window : p->lines;
    return (uint32_t)(lines * pow(rng_unit(&w->rng), ZIPF_POWER));
}

/* Returns a node of the top of the tree, or of a path to a leaf. */
static uint32_t tree_line(const struct gen_layout *l, struct gen_warp *w, const struct place *p)
{
    const uint32_t lines = !is_far(l, w) && p->window < p->lines ? p->window : p->lines;
    uint32_t depth = 0;
    while (depth < 31 && 2u << depth <= lines)
        depth++;
    const uint32_t level = (uint32_t)rng_below(&w->rng, depth + 1);
    return (uint32_t)rng_below(&w->rng, 1u << level) + (1u << level) - 1;
}

static uint32_t access_line(const struct gen_layout *l, struct gen_warp *w, const struct gen_op *op,
                            const struct place *p, uint32_t i)
{
    const uint32_t at = stream_line(l, w, p);
    switch (op->pattern) {
    case GEN_STREAM:
        return at * op->lines + i;
    case GEN_CHUNK:
        return chunk_line(l, w, p, op->lines) + i;
    case GEN_TILE:
        return tile_line(l, w, p, 0);
    case GEN_STENCIL:
        return tile_line(l, w, p, i);
    case GEN_GATHER:
        return gather_line(l, w, p);
    case GEN_ZIPF:
        return zipf_line(l, w, p);
    case GEN_TREE:
        return tree_line(l, w, p);
    case GEN_BUTTERFLY:
        return i == 0 ? at : at ^ (1u << (p->iteration / 4 % 16));
    }
    return 0;
}

uint32_t gen_mosaic_loop(const struct gen_app *app, uint32_t *out_lines)
{
    *out_lines = app->small_arrays > 0 ? SMALL_LINES : 0;
    for (uint32_t i = 0; i < app->op_count; i++)
        *out_lines += app->ops[i].lines;
    return app->op_count + (app->small_arrays > 0 ? 1u : 0u);
}

/* Returns a random line of one small array. All warps move from one array to the next. */
static uint32_t small_array_line(const struct gen_layout *l, struct gen_warp *w,
                                 uint32_t *out_lines)
{
    const uint32_t turn = w->step / l->loop / WINDOW_STEPS;
    const uint32_t array = l->app->large_arrays + turn % l->app->small_arrays;
    for (uint32_t i = 0; i < SMALL_LINES; i++)
        out_lines[i] =
            virtual_line(l, array, (uint32_t)rng_below(&w->rng, l->pages[array] * GEN_PAGE_LINES));
    return SMALL_LINES;
}

uint32_t gen_mosaic_next(const struct gen_layout *l, struct gen_warp *w,
                         uint32_t out_lines[GEN_MAX_LINES])
{
    const struct gen_app *app = l->app;
    if (l->loop == 0)
        return 0;
    const uint32_t in_loop = w->step % l->loop;
    if (in_loop == app->op_count) {
        w->step++;
        return small_array_line(l, w, out_lines);
    }
    const struct gen_op *op = &app->ops[in_loop];
    const struct place p = {.lines = l->pages[op->array] * GEN_PAGE_LINES,
                            .window = (uint32_t)app->window_kb * KB / GEN_LINE_BYTES,
                            .iteration = w->step / l->loop};
    w->step++;
    for (uint32_t i = 0; i < op->lines; i++)
        out_lines[i] = virtual_line(l, op->array, access_line(l, w, op, &p, i) % p.lines);
    return op->lines;
}
