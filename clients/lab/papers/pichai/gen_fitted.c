/* gen_fitted.c: jobs that have all inputs in the text of Pichai 2014, but no structure of a
 * program.
 *
 * An instruction of a warp is one of three kinds, selected by a hash:
 *
 *   own  Each thread reads a line of its own record. A record has several lines and is read
 *        repeatedly. The records of adjacent threads are adjacent.
 *   hot  Adjacent lanes read one of a few pages that all warps read.
 *   far  Adjacent lanes read a random page of 1 GiB.
 *
 *                  own                      hot                   far
 *   bfs            edges of a vertex        vertices of hubs      other neighbors
 *   kmeans         features of a point      centers               points that changed
 *   streamcluster  coordinates of a point   centers               tables of centers
 *   mummergpu      query and matches        top of the tree       nodes below
 *   pathfinder     rows of a tile           its halo              the way back
 *   memcached      packet                   frequent keys         other keys
 */
#include "clients/lab/papers/pichai/gen.h"

#include "clients/lab/papers/pichai/gen_hash.h"

#include "base/units.h"

#include <stdbool.h>

enum { PAGE_BYTES = 4096, PAGE_LINES = 32, LINE_BYTES = PAGE_BYTES / PAGE_LINES };
static const uint64_t OWN_AT = 8 * GIB, HOT_AT = 16 * GIB, FAR_AT = 24 * GIB;
static const uint64_t PAGES = GIB / PAGE_BYTES;
/* Distance of hot pages, which places them in different sets. */
enum { HOT_STRIDE_PAGES = 17 };

struct mixture {
    uint8_t own_of_256, hot_of_256; /* shares of 256 instructions; the other instructions are far */
    uint8_t own_lines;              /* lines per record */
    uint8_t own_warps;              /* warps with adjacent records */
    uint8_t hot_pages;
    uint8_t hot_lanes, far_lanes; /* lanes that read the same page */
    uint8_t taken_of_256;         /* share of the threads that take the branch of each iteration */
};

/* The independent random choices of each instruction. */
enum { WHICH_WAY = 0, WHICH_OWN = 100, WHICH_HOT = 200, WHICH_FAR = 300, WHICH_BRANCH = 900 };

static uint64_t own_line(const struct mixture *m, uint64_t warp, uint64_t lane, uint64_t hash)
{
    const uint64_t place = lab_gen_hash(warp / m->own_warps, 5, 5) % PAGES;
    const uint64_t record = warp % m->own_warps * LAB_LANES + lane;
    return OWN_AT + place * PAGE_BYTES + (record * m->own_lines + hash % m->own_lines) * LINE_BYTES;
}

/* Lanes of one page read adjacent lines. */
static uint64_t line_in_page(uint64_t hash, uint64_t lane)
{
    return ((hash >> 32) + lane) % PAGE_LINES * LINE_BYTES;
}

static uint64_t address(const struct mixture *m, uint32_t thread, uint32_t iteration, uint32_t op)
{
    const uint64_t warp = thread / LAB_LANES;
    const uint64_t lane = thread % LAB_LANES;
    const uint64_t way = lab_gen_hash(warp, iteration, op + WHICH_WAY) >> 8 & 255;
    if (way < m->own_of_256)
        return own_line(m, warp, lane, lab_gen_hash(warp, iteration, op + WHICH_OWN));
    const bool hot = way < (uint64_t)m->own_of_256 + m->hot_of_256;
    const uint64_t lanes = hot ? m->hot_lanes : m->far_lanes;
    const uint64_t hash = lab_gen_hash(warp * LAB_LANES * 2 + lane / lanes, iteration,
                                       op + (hot ? WHICH_HOT : WHICH_FAR));
    const uint64_t page = hot ? hash % m->hot_pages * HOT_STRIDE_PAGES : hash % PAGES;
    return (hot ? HOT_AT : FAR_AT) + page * PAGE_BYTES + line_in_page(hash, lane % lanes);
}

static void addresses(const void *context, const uint32_t threads[LAB_LANES], uint32_t lanes,
                      uint32_t iteration, uint32_t op, uint64_t out[LAB_LANES])
{
    for (; lanes != 0; lanes &= lanes - 1) {
        const int lane = __builtin_ctz(lanes);
        out[lane] = address(context, threads[lane], iteration, op);
    }
}

static uint32_t taken(const void *context, const uint32_t threads[LAB_LANES], uint32_t lanes,
                      uint32_t iteration, uint32_t region)
{
    const struct mixture *m = context;
    uint32_t take = 0;
    for (; lanes != 0; lanes &= lanes - 1) {
        const int lane = __builtin_ctz(lanes);
        if ((lab_gen_hash(threads[lane], iteration, region + WHICH_BRANCH) & 255) < m->taken_of_256)
            take |= 1u << lane;
    }
    return take;
}

/* Branches and the instructions between memory instructions are the same as in gen.c. All other
 * numbers were changed at random until the inputs held (docs/papers/pichai.md). The numbers are in
 * the order of the members. */
static const struct mixture mixtures[LAB_JOBS] = {
    [LAB_BFS] = {86, 138, 6, 1, 3, 1, 2, 180},
    [LAB_KMEANS] = {38, 214, 6, 2, 4, 8, 2, 0},
    [LAB_STREAMCLUSTER] = {58, 196, 8, 1, 3, 16, 2, 0},
    [LAB_MUMMERGPU] = {108, 66, 4, 1, 16, 1, 2, 225},
    [LAB_PATHFINDER] = {62, 186, 6, 4, 4, 8, 2, 230},
    [LAB_MEMCACHED] = {60, 188, 4, 4, 4, 32, 2, 40},
};

/* An iteration has three instructions of all threads, then three of the threads that take the
 * branch. */
#define SIX(gap, region)                                                                           \
    {                                                                                              \
        {gap, 0, 0}, {gap, 0, 0}, {gap, 0, 0}, {gap, region, 0}, {gap, region, 0},                 \
            {gap, region, 0},                                                                      \
    }
static const struct lab_op straight[] = SIX(4, 0), branching[] = SIX(4, 1), sparse[] = SIX(31, 1),
                           request[] = SIX(5, 1);

#define JOB(job, title, list, warps)                                                               \
    [job] = {.name = (title),                                                                      \
             .ops = (list),                                                                        \
             .op_count = sizeof(list) / sizeof(list)[0],                                           \
             .iterations = 6,                                                                      \
             .block_warps = (warps),                                                               \
             .context = &mixtures[job],                                                            \
             .addresses = addresses,                                                               \
             .taken = taken}
static const struct lab_work works[LAB_JOBS] = {
    JOB(LAB_BFS, "bfs", branching, 16),
    JOB(LAB_KMEANS, "kmeans", straight, 8),
    JOB(LAB_STREAMCLUSTER, "streamcluster", straight, 16),
    JOB(LAB_MUMMERGPU, "mummergpu", branching, 8),
    JOB(LAB_PATHFINDER, "pathfinder", sparse, 8),
    JOB(LAB_MEMCACHED, "memcached", request, 8),
};

const struct lab_work *lab_gen_fitted(enum lab_job job)
{
    return &works[job];
}
