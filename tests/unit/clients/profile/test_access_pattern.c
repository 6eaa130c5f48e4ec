/* test_access_pattern.c: finds which accesses of persistent kernels are at random. Such a kernel
 * has about one block for each SM, and some of its blocks are in the trace. TEST_SEED repeats a
 * run. */
#include "clients/profile/access_pattern.h"

#include "base/rng.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <time.h>

enum { LINE = 128, WARPS = 4, LANES = 32, PIECE_LINES = 64 };

/* In a smaller memory, the pieces that all warps have at a time are a considerable part of it. */
enum { LEAST_GIB = 5 };

static const uint64_t base = (uint64_t)1 << 40, gib = (uint64_t)1 << 30;

enum order {
    RANDOM_ROWS,  /* each access reads one random line */
    RANDOM_LANES, /* each lane reads a random line */
    GRID_STRIDE,  /* all warps of the grid read neighboring lines at a time */
    OWN_PART,     /* each warp reads a part of its own */
    TAKEN_PIECES, /* each warp takes the next piece when it has finished one */
    TWO_ARRAYS,   /* each warp reads two halves of the memory in turn, in a grid stride */
    ORDERS
};

static const char *const names[ORDERS] = {"random rows", "random lanes", "grid stride",
                                          "own part",    "taken pieces", "two arrays"};

struct kernel {
    enum order order;
    uint64_t lines;         /* of the memory */
    uint32_t blocks, apart; /* one block of `apart` is in the trace */
    uint32_t accesses;      /* of each warp */
};

static uint64_t line_of(const struct kernel *k, uint64_t warp, uint32_t n, struct rng *rng)
{
    const uint64_t warps = (uint64_t)k->blocks * WARPS;
    const uint64_t rows = k->lines / warps;

    switch (k->order) {
    case GRID_STRIDE:
        return n * (rows / k->accesses) * warps + warp;
    case OWN_PART:
        return warp * rows + n * (rows / k->accesses);
    case TAKEN_PIECES: {
        const uint64_t pieces = k->lines / PIECE_LINES;
        const uint64_t round = n * (pieces / warps / k->accesses);
        return (round * warps + rng_below(rng, warps)) * PIECE_LINES;
    }
    case TWO_ARRAYS:
        return n % 2 * (k->lines / 2) + n / 2 * (rows / k->accesses) * warps + warp;
    default:
        return rng_below(rng, k->lines);
    }
}

static void write_trace(const struct kernel *k, struct rng *rng, FILE *out)
{
    struct rlt_writer *const w = rlt_writer_new(out, LINE);
    const struct rlt_kernel kernel = {.grid = {k->blocks, 1, 1}, .block = {WARPS * LANES, 1, 1}};
    struct rlt_record r = {.mask = RLT_FULL_MASK, .width_log2 = 2};

    (void)rlt_write_app(w, "persistent");
    (void)rlt_write_kernel(w, &kernel);
    for (r.block = 0; r.block < k->blocks; r.block += k->apart) {
        for (r.warp = 0; r.warp < WARPS; r.warp++) {
            for (uint32_t n = 0; n < k->accesses; n++) {
                r.line_count = k->order == RANDOM_LANES ? LANES : 1;
                for (uint32_t i = 0; i < r.line_count; i++)
                    r.lines[i] = base / LINE + line_of(k, r.block * WARPS + r.warp, n, rng);
                rlt_write_record(w, &r);
            }
        }
    }
    assert_int_equal(rlt_writer_end(w, NULL), STATUS_OK);
}

static bool is_random(const struct kernel *k, struct rng *rng)
{
    struct place_region region = {base, k->lines * LINE, 0, PLACE_DEVICE, false};
    const struct place_map map = {1, &region};
    const uint32_t grid[3] = {k->blocks, 1, 1};
    struct access_pattern pattern;
    FILE *const file = tmpfile();

    assert_non_null(file);
    write_trace(k, rng, file);
    rewind(file);
    assert_int_equal(access_pattern_read(file, &map, grid, &pattern, NULL), STATUS_OK);
    assert_int_equal(pattern.class_count, 1);
    const bool random = pattern.classes[0].random;

    access_pattern_free(&pattern);
    assert_int_equal(fclose(file), 0);
    return random;
}

/* At least two blocks are in the trace, however far apart they are. */
static void few_recorded_blocks_show_the_order(void **state)
{
    const char *const given = getenv("TEST_SEED");
    struct rng rng = {given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL)};

    (void)state;
    print_message("# TEST_SEED=%llu\n", (unsigned long long)rng.state);
    for (int round = 0; round < 600; round++) {
        struct kernel k = {.order = (enum order)(round % ORDERS),
                           .lines = (LEAST_GIB + rng_below(&rng, 120)) * gib / LINE,
                           .blocks = 2 + (uint32_t)rng_below(&rng, 300),
                           .accesses = 8 + (uint32_t)rng_below(&rng, 60)};
        k.apart = 1 + (uint32_t)rng_below(&rng, k.blocks - 1);
        const bool expected = k.order == RANDOM_ROWS || k.order == RANDOM_LANES;

        if (is_random(&k, &rng) != expected)
            fail_msg("%s: %llu lines, %u blocks, one of %u, %u accesses", names[k.order],
                     (unsigned long long)k.lines, k.blocks, k.apart, k.accesses);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_recorded_blocks_show_the_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
