/* gen.c: see gen.h. Each address is a hash of the thread, the iteration and the operation. So a
 * thread may run in any warp at any time, and all machines run the same work.
 *
 *   bfs            a graph in compressed rows: coalesced flags and offsets, ragged runs of edges,
 *                  and visited[] at a target that follows a power law over 1 GiB
 *   mummergpu      each lane descends its own path of a suffix tree over 1 GiB, with nodes of
 *                  32 bytes and 16 times more of them on each level; lanes stop at a mismatch
 *   kmeans         rows of features, one row per thread, read feature by feature for each center
 *   streamcluster  points, streamed by groups of dimensions and compared with a few hot centers
 *   memcached      packets that are read and written coalesced; for keys of a Zipf law the bucket,
 *                  the item and its words
 *   pathfinder     rows of a grid, one after another, with a halo on each side
 */
#include "clients/lab/papers/pichai/gen.h"

#include "clients/lab/papers/pichai/gen_hash.h"

#include "base/units.h"

#include <stdbool.h>

/* Parameters that follow from inputs in the paper. */
enum {
    BFS_FRONTIER_OF_256 = 180, /* share of the threads in the frontier */
    BFS_DEGREES = 5,           /* maximum number of edges that a thread reads */
    BFS_POWER = 16,            /* exponent of the power law of targets */
    BFS_ROW_BYTES = 32,        /* mean bytes of edges per row */
    MUMMER_LEVELS = 9,
    MUMMER_FANOUT_SHIFT = 4,
    MUMMER_ALIVE_OF_256 = 225, /* share of the lanes that match another level */
    MUMMER_HOT_OF_256 = 110,   /* share of the visited nodes that are hot */
    MUMMER_HOT_PAGES = 6,
    MUMMER_NODE_BYTES = 32,
    MUMMER_QUERY_BYTES = 64,
    KMEANS_FEATURES = 80,
    KMEANS_CENTERS = 5,
    CLUSTER_CENTERS = 12,
    CLUSTER_WARPS_SHARE = 1, /* number of warps with adjacent points */
    CLUSTER_GROUP = 1,       /* adjacent dimensions */
    CACHED_ASKED_OF_256 = 40,
    CACHED_KEYS_LOG2 = 11,
    CACHED_PLACES_LOG2 = 22,
    CACHED_PACKET_BYTES = 64,
    PATH_OTHERS = 31,     /* instructions of the kernel's loop per row */
    PATH_WARPS_SHARE = 2, /* number of warps with adjacent tiles */
};

static const uint64_t FOOTPRINT = GIB;
/* The arrays begin at different addresses. No address is a multiple of a large power of two. */
#define ARRAY(i) ((uint64_t)(i)*4 * GIB + (uint64_t)(i)*1234 * 4096 + MIB)

static bool of_256(uint64_t hash, uint32_t share)
{
    return (hash & 255) < share;
}

/* Returns a number in [0, bound), for bounds below 2^32. */
static uint64_t number_below(uint64_t hash, uint64_t bound)
{
    return (hash >> 32) * bound >> 32;
}

/* Returns u^power for a uniform u, with 32 bits. */
static uint64_t power_law(uint64_t hash, uint32_t power)
{
    const uint64_t u = hash >> 32;
    uint64_t product = u;
    for (uint32_t i = 1; i < power; i++)
        product = product * u >> 32;
    return product;
}

/* Returns a rank from 1 to 2^log2. The probability of a rank is about 1 / rank. */
static uint64_t zipf_rank(uint64_t hash, uint32_t log2)
{
    const uint64_t x = (hash >> 40) * log2; /* 24 bits of fraction */
    const uint64_t octave = x >> 24;
    return ((uint64_t)1 << octave) + ((x & 0xffffff) << octave >> 24);
}

/* ---- bfs ---- */

enum { FLAGS, OFFSETS, FIRST_EDGE }; /* operations */
static const struct lab_op bfs_ops[] = {
    {5, 0, 0}, {4, 1, 0}, {4, 2, 0}, {4, 2, 0}, {4, 3, 0}, {4, 3, 0},
    {4, 4, 0}, {4, 4, 0}, {4, 5, 0}, {4, 5, 0}, {4, 6, 0}, {4, 6, 0},
};

static void bfs_addresses(const void *context, const uint32_t threads[LAB_LANES], uint32_t lanes,
                          uint32_t iteration, uint32_t op, uint64_t out[LAB_LANES])
{
    (void)context;
    for (; lanes != 0; lanes &= lanes - 1) {
        const int lane = __builtin_ctz(lanes);
        const uint64_t t = threads[lane];
        const uint32_t edge = (op - FIRST_EDGE) / 2;
        if (op == FLAGS)
            out[lane] = ARRAY(1) + t * sizeof(uint32_t);
        else if (op == OFFSETS)
            out[lane] = ARRAY(2) + t * sizeof(uint64_t);
        else if ((op - FIRST_EDGE) % 2 == 0)
            out[lane] = ARRAY(3) + t * BFS_ROW_BYTES + (lab_gen_hash(t, 1, 0) & 7) * 4 + edge * 4;
        else
            out[lane] = ARRAY(4) +
                        (power_law(lab_gen_hash(t, iteration, 2 + edge), BFS_POWER) >> 2 & ~3ull);
    }
}

static uint32_t bfs_taken(const void *context, const uint32_t threads[LAB_LANES], uint32_t lanes,
                          uint32_t iteration, uint32_t region)
{
    uint32_t taken = 0;
    (void)context;
    for (; lanes != 0; lanes &= lanes - 1) {
        const int lane = __builtin_ctz(lanes);
        const uint64_t hash = lab_gen_hash(threads[lane], iteration, 100);
        const uint64_t degree = 1 + number_below(hash, BFS_DEGREES);
        if (of_256(hash, BFS_FRONTIER_OF_256) && (region == 1 || degree > region - 2))
            taken |= 1u << lane;
    }
    return taken;
}

/* ---- mummergpu ---- */

static const struct lab_op mummer_ops[] = {
    {4, 0, 0}, {4, 0, 0}, {4, 1, 0}, {4, 2, 0}, {4, 3, 0},
    {4, 4, 0}, {4, 5, 0}, {4, 6, 0}, {4, 7, 0}, {4, 8, 0},
};

static void mummer_addresses(const void *context, const uint32_t threads[LAB_LANES], uint32_t lanes,
                             uint32_t iteration, uint32_t op, uint64_t out[LAB_LANES])
{
    (void)context;
    for (; lanes != 0; lanes &= lanes - 1) {
        const int lane = __builtin_ctz(lanes);
        const uint64_t t = threads[lane];
        if (op == 0) {
            out[lane] = ARRAY(1) + t * MUMMER_QUERY_BYTES + iteration * sizeof(uint32_t);
            continue;
        }
        uint64_t nodes = (uint64_t)1 << (MUMMER_FANOUT_SHIFT * (op - 1));
        if (nodes > FOOTPRINT / MUMMER_NODE_BYTES)
            nodes = FOOTPRINT / MUMMER_NODE_BYTES;
        const uint64_t hash = lab_gen_hash(t, iteration, op);
        uint64_t node = number_below(hash, nodes);
        if (of_256(hash, MUMMER_HOT_OF_256))
            node -= node % (nodes > MUMMER_HOT_PAGES ? nodes / MUMMER_HOT_PAGES : 1);
        out[lane] = ARRAY(2) + op * GIB + node * MUMMER_NODE_BYTES;
    }
}

static bool matches_level(uint32_t thread, uint32_t iteration, uint32_t level)
{
    return of_256(lab_gen_hash(thread, iteration, 100 + level), MUMMER_ALIVE_OF_256);
}

static uint32_t mummer_taken(const void *context, const uint32_t threads[LAB_LANES], uint32_t lanes,
                             uint32_t iteration, uint32_t region)
{
    uint32_t taken = 0;
    (void)context;
    for (; lanes != 0; lanes &= lanes - 1) {
        const int lane = __builtin_ctz(lanes);
        bool alive = true;
        for (uint32_t level = 1; level <= region && alive; level++)
            alive = matches_level(threads[lane], iteration, level);
        taken |= alive ? 1u << lane : 0;
    }
    return taken;
}

static uint32_t mummer_taken_too(const void *context, const uint32_t threads[LAB_LANES],
                                 uint32_t lanes, uint32_t iteration, uint32_t region)
{
    uint32_t taken = 0;
    (void)context;
    for (; lanes != 0; lanes &= lanes - 1) {
        const int lane = __builtin_ctz(lanes);
        taken |= (uint32_t)matches_level(threads[lane], iteration, region) << lane;
    }
    return taken;
}

/* ---- kmeans ---- */

static const struct lab_op kmeans_ops[] = {{4, 0, 0}, {4, 0, 0}};

static void kmeans_addresses(const void *context, const uint32_t threads[LAB_LANES], uint32_t lanes,
                             uint32_t iteration, uint32_t op, uint64_t out[LAB_LANES])
{
    const uint64_t row = KMEANS_FEATURES * sizeof(float);
    const uint64_t feature = iteration % KMEANS_FEATURES * sizeof(float);
    const uint64_t center = iteration / KMEANS_FEATURES % KMEANS_CENTERS;
    (void)context;
    for (; lanes != 0; lanes &= lanes - 1) {
        const int lane = __builtin_ctz(lanes);
        out[lane] =
            op == 0 ? ARRAY(1) + threads[lane] * row + feature : ARRAY(2) + center * row + feature;
    }
}

/* ---- streamcluster ---- */

static const struct lab_op cluster_ops[] = {{4, 0, 0}, {4, 0, 0}, {4, 0, 0}};

/* Returns the number of a thread's point. The points of `share` warps are adjacent. */
static uint64_t scattered_point(uint64_t thread, uint32_t share, uint64_t points)
{
    const uint64_t tile = (uint64_t)share * LAB_LANES;
    return number_below(lab_gen_hash(thread / tile, 7, 7), points / tile) * tile + thread % tile;
}

static void cluster_addresses(const void *context, const uint32_t threads[LAB_LANES],
                              uint32_t lanes, uint32_t iteration, uint32_t op,
                              uint64_t out[LAB_LANES])
{
    const uint64_t points = 1 << 20;
    const uint64_t group = iteration / CLUSTER_GROUP;
    const uint64_t within = iteration % CLUSTER_GROUP * sizeof(float);
    const uint64_t row = CLUSTER_GROUP * sizeof(float);
    (void)context;
    for (; lanes != 0; lanes &= lanes - 1) {
        const int lane = __builtin_ctz(lanes);
        const uint64_t t = threads[lane];
        if (op < 2)
            out[lane] = ARRAY(1 + op) +
                        (group * points + scattered_point(t, CLUSTER_WARPS_SHARE, points)) * row +
                        within;
        else
            out[lane] = ARRAY(3) + number_below(lab_gen_hash(t, 3, 3), CLUSTER_CENTERS) * KIB +
                        iteration * 4;
    }
}

/* ---- memcached ---- */

static const struct lab_op cached_ops[] = {
    {5, 0, 0}, {5, 0, 0}, {5, 0, 0}, {5, 0, 0}, {5, 1, 0},
    {5, 1, 0}, {4, 1, 0}, {4, 1, 0}, {5, 0, 0}, {5, 0, 0},
};

static void cached_addresses(const void *context, const uint32_t threads[LAB_LANES], uint32_t lanes,
                             uint32_t iteration, uint32_t op, uint64_t out[LAB_LANES])
{
    enum { BUCKET = 4, ITEM = 5, ANSWER = 8, BUCKET_BYTES = 16, ITEM_BYTES = 256 };
    (void)context;
    for (; lanes != 0; lanes &= lanes - 1) {
        const int lane = __builtin_ctz(lanes);
        const uint64_t t = threads[lane];
        const uint64_t packet = (t + (uint64_t)iteration * (1 << 20)) * CACHED_PACKET_BYTES;
        const uint64_t key = zipf_rank(lab_gen_hash(t, iteration, 5), CACHED_KEYS_LOG2);
        const uint64_t place = number_below(lab_gen_hash(key, 11, 11), 1 << CACHED_PLACES_LOG2);
        if (op < BUCKET)
            out[lane] = ARRAY(1) + packet + op * sizeof(uint64_t);
        else if (op == BUCKET)
            out[lane] = ARRAY(2) + place * BUCKET_BYTES;
        else if (op < ANSWER)
            out[lane] = ARRAY(3) + place * ITEM_BYTES + (op - ITEM) * sizeof(uint64_t);
        else
            out[lane] = ARRAY(4) + packet + (op - ANSWER) * sizeof(uint64_t);
    }
}

static uint32_t cached_taken(const void *context, const uint32_t threads[LAB_LANES], uint32_t lanes,
                             uint32_t iteration, uint32_t region)
{
    uint32_t taken = 0;
    (void)context;
    (void)region;
    for (; lanes != 0; lanes &= lanes - 1) {
        const int lane = __builtin_ctz(lanes);
        if (of_256(lab_gen_hash(threads[lane], iteration, 9), CACHED_ASKED_OF_256))
            taken |= 1u << lane;
    }
    return taken;
}

/* ---- pathfinder ---- */

/* In Rodinia's kernel, all data except the wall are in registers and shared memory. */
static const struct lab_op path_ops[] = {{PATH_OTHERS, 1, 0}};

static void path_addresses(const void *context, const uint32_t threads[LAB_LANES], uint32_t lanes,
                           uint32_t iteration, uint32_t op, uint64_t out[LAB_LANES])
{
    const uint64_t columns = 100000;
    (void)context;
    (void)op;
    for (; lanes != 0; lanes &= lanes - 1) {
        const int lane = __builtin_ctz(lanes);
        const uint64_t column = scattered_point(threads[lane], PATH_WARPS_SHARE, columns);
        out[lane] = ARRAY(1) + (iteration * columns + column) * sizeof(uint32_t);
    }
}

/* Each row has one lane less with a result on each side of a tile. Then a new tile begins. */
static uint32_t path_taken(const void *context, const uint32_t threads[LAB_LANES], uint32_t lanes,
                           uint32_t iteration, uint32_t region)
{
    enum { TILE = 256, ROWS = 20 };
    uint32_t taken = 0;
    (void)context;
    (void)region;
    for (; lanes != 0; lanes &= lanes - 1) {
        const int lane = __builtin_ctz(lanes);
        const uint32_t x = threads[lane] % TILE;
        if (x > iteration % ROWS && x < TILE - 1 - iteration % ROWS)
            taken |= 1u << lane;
    }
    return taken;
}

/* ---- all ---- */

#define OPS(a) .ops = (a), .op_count = sizeof(a) / sizeof(a)[0]
/* Blocks have 512 threads in bfs and streamcluster and 256 in the other jobs, like in Rodinia. */
static const struct lab_work works[LAB_JOBS] = {
    [LAB_BFS] = {.name = "bfs",
                 OPS(bfs_ops),
                 .iterations = 4,
                 .block_warps = 16,
                 .addresses = bfs_addresses,
                 .taken = bfs_taken,
                 .taken_too = bfs_taken},
    [LAB_KMEANS] = {.name = "kmeans",
                    OPS(kmeans_ops),
                    .iterations = 40,
                    .block_warps = 8,
                    .addresses = kmeans_addresses},
    [LAB_STREAMCLUSTER] = {.name = "streamcluster",
                           OPS(cluster_ops),
                           .iterations = 24,
                           .block_warps = 16,
                           .addresses = cluster_addresses},
    [LAB_MUMMERGPU] = {.name = "mummergpu",
                       OPS(mummer_ops),
                       .iterations = 5,
                       .block_warps = 8,
                       .addresses = mummer_addresses,
                       .taken = mummer_taken,
                       .taken_too = mummer_taken_too},
    [LAB_PATHFINDER] = {.name = "pathfinder",
                        OPS(path_ops),
                        .iterations = 40,
                        .block_warps = 8,
                        .addresses = path_addresses,
                        .taken = path_taken},
    [LAB_MEMCACHED] = {.name = "memcached",
                       OPS(cached_ops),
                       .iterations = 5,
                       .block_warps = 8,
                       .addresses = cached_addresses,
                       .taken = cached_taken},
};

const struct lab_work *lab_gen_work(enum lab_job job)
{
    return &works[job];
}
