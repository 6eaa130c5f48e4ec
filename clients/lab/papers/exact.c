/* exact.c: figures 8 and 19 of Pichai 2014, the size of its common page matrix (section 8.2), and
 * table 2 of Mosaic 2017. */
#include "clients/lab/papers/exact.h"

#include "clients/lab/exit_status.h"
#include "clients/lab/papers/engine/cache.h"
#include "clients/lab/papers/engine/compact.h"
#include "clients/lab/papers/engine/walk.h"
#include "clients/lab/papers/mosaic/frames.h"

#include <stddef.h>
#include <stdio.h>

enum { WARPS = 3, THREADS = 4 };

/* ---- figure 8 ---- */

static void walks_of_figure_8(struct pichai_exact *out)
{
    static const uint64_t upper = (uint64_t)0xb9 << LAB_LEVEL_BITS | 0x0c;
    static const uint64_t lower[WARPS][2] = {{0xac, 0x03}, {0xac, 0x04}, {0xad, 0x05}};
    struct lab_walk_load loads[WARPS * LAB_LEVELS];
    uint64_t pages[WARPS];
    for (uint32_t i = 0; i < WARPS; i++)
        pages[i] = (upper << LAB_LEVEL_BITS | lower[i][0]) << LAB_LEVEL_BITS | lower[i][1];
    out->serial_loads = lab_walk_serial(pages, WARPS, loads);
    out->scheduled_loads = lab_walk_scheduled(pages, WARPS, loads);
}

/* ---- figure 19 ---- */

/* Threads 1 to 12 are in three warps. Threads 2, 3, 5 and 12 take block C, and the other threads
 * take block B. The figure is a picture. With these pages, every statement of the text about the
 * figure holds. */
static const uint32_t to_c[WARPS] = {1 << 1 | 1 << 2, 1 << 0, 1 << 3};
static const uint32_t page_of_thread[WARPS][THREADS] = {{6, 2, 3, 6}, {2, 1, 1, 1}, {4, 4, 5, 3}};

static uint32_t to_b(uint32_t warp)
{
    return ~to_c[warp] & ((1u << THREADS) - 1);
}

static uint32_t count_misses(struct lab_cache *tlb, const uint32_t warp[LAB_LANES])
{
    uint32_t lines[LAB_LANES];
    uint8_t homes[LAB_LANES];
    struct lab_access access;
    uint32_t count = 0;
    uint32_t misses = 0;
    for (uint32_t lane = 0; lane < THREADS; lane++) {
        if (warp[lane] == LAB_NO_THREAD)
            continue;
        homes[count] = (uint8_t)(warp[lane] / LAB_LANES);
        lines[count] = page_of_thread[homes[count]][lane] << (LAB_PAGE_SHIFT - LAB_LINE_SHIFT);
        count++;
    }
    lab_coalesce(lines, homes, count, &access);
    for (uint32_t i = 0; i < access.page_count; i++) {
        uint32_t evicted;
        if (lab_cache_find(tlb, access.pages[i]) != LAB_NO_SLOT)
            continue;
        (void)lab_cache_fill(tlb, access.pages[i], &evicted);
        misses++;
    }
    return misses;
}

/* Queries the matrix. The warps of this example do not share pages often enough. */
static bool joins_by_matrix(const void *matrix, uint32_t home, uint32_t members)
{
    for (uint32_t other = 0; other < WARPS; other++) {
        if ((members >> other & 1) && !lab_matrix_agree(matrix, home, other))
            return false;
    }
    return true;
}

/* Packs the threads of block B, then the threads of block C. Returns the number of warps. */
static uint32_t pack_blocks(lab_may_join *may_join, const void *matrix, uint32_t warps[][LAB_LANES])
{
    const uint32_t b[WARPS] = {to_b(0), to_b(1), to_b(2)};
    const uint32_t count = lab_compact_block(b, WARPS, may_join, matrix, warps);
    return count + lab_compact_block(to_c, WARPS, may_join, matrix, warps + count);
}

static bool warps_of_figure_19(struct pichai_exact *out)
{
    static const struct lab_matrix none_agree = {.bits = 3};
    uint32_t warps[2 * WARPS][LAB_LANES];
    struct lab_cache *tlb = lab_cache_new(1, 1);
    struct lab_cache *again = lab_cache_new(1, 1);
    const bool good = tlb && again;
    if (good) {
        out->stack_fetches = 0;
        for (uint32_t w = 0; w < WARPS; w++)
            out->stack_fetches += (to_b(w) != 0) + (to_c[w] != 0);
        out->packed_fetches = pack_blocks(NULL, NULL, warps);
        for (uint32_t w = 0; w < WARPS; w++)
            out->packed_misses[w] = count_misses(tlb, warps[w]);
        (void)pack_blocks(joins_by_matrix, &none_agree, warps);
        out->aware_misses = count_misses(again, warps[0]) + count_misses(again, warps[1]);
    }
    lab_cache_free(again);
    lab_cache_free(tlb);
    return good;
}

bool pichai_exact(struct pichai_exact *out)
{
    walks_of_figure_8(out);
    out->matrix_bits = lab_matrix_size_bits(LAB_MATRIX_WARPS, 3);
    return warps_of_figure_19(out);
}

/* ---- verdicts ---- */

static const char *verdict(bool holds)
{
    return holds ? "reproduced" : "not reproduced";
}

static bool check_pichai(void)
{
    struct pichai_exact e = {0};
    const bool done = pichai_exact(&e);
    const bool walks = done && e.serial_loads == 12 && e.scheduled_loads == 7;
    const bool packing = done && e.stack_fetches == 6 && e.packed_fetches == 3 &&
                         e.packed_misses[0] == 2 && e.packed_misses[1] == 3 &&
                         e.packed_misses[2] == 2 && e.aware_misses == 2;
    const bool matrix = done && e.matrix_bits == 48 * 47 * 3;
    printf("U1   figure 8: %u loads one walk after the other, %u scheduled; 12 and 7 exactly: %s\n",
           e.serial_loads, e.scheduled_loads, verdict(walks));
    printf("U2   figure 19: %u fetches, packed %u; misses %u+%u+%u, TLB-aware %u in the first two; "
           "equal to the paper's 6, 3, 2+3+2, 2: %s\n",
           e.stack_fetches, e.packed_fetches, e.packed_misses[0], e.packed_misses[1],
           e.packed_misses[2], e.aware_misses, verdict(packing));
    printf("U3   section 8.2: the common page matrix takes %u bits; 48 x 47 x 3 exactly: %s\n",
           e.matrix_bits, verdict(matrix));
    return walks && packing && matrix;
}

/* Returns the bloat of Mosaic for allocations of 1 to 60 x 7 pages if each frame has foreign pages,
 * in percent. Returns -1 if out of memory or if memory is full. */
static double bloat(double occupancy)
{
    enum { ALLOCATIONS = 60, STEP_PAGES = 7, FRAMES = 1536, CHANNELS = 6 };
    const struct frames_config config = {.policy = FRAMES_COCOA,
                                         .frame_count = FRAMES,
                                         .channels = CHANNELS,
                                         .pages = ALLOCATIONS * FRAMES_PAGES,
                                         .compact = true,
                                         .seed = 1};
    struct frames *f = frames_new(&config);
    bool good = f != NULL;
    double percent = -1;
    if (f)
        frames_fragment(f, 1, occupancy);
    for (uint32_t i = 0; good && i < ALLOCATIONS; i++)
        good = frames_alloc(f, i * FRAMES_PAGES, (i + 1) * STEP_PAGES);
    if (good)
        percent =
            100.0 * (double)frames_count(f).most_reserved / (double)frames_count(f).used_pages;
    frames_free(f);
    return percent;
}

static bool check_mosaic(void)
{
    static const double occupancies[] = {0.01, 0.1, 0.25, 0.35, 0.5, 0.75};
    double before = 1e9;
    bool falls = true;
    printf("M14  table 2: Mosaic's bloat at occupancy 1, 10, 25, 35, 50 and 75 %% is");
    for (uint32_t i = 0; i < sizeof occupancies / sizeof occupancies[0]; i++) {
        const double percent = bloat(occupancies[i]);
        printf(" %.2f", percent);
        falls = falls && percent >= 0 && percent < before;
        before = percent;
    }
    printf(" %%; it falls like the paper's 10.66 to 2.22 %%: %s\n", verdict(falls));
    return falls;
}

int exact_check(void)
{
    const bool pichai = check_pichai();
    return check_mosaic() && pichai ? LAB_OK : LAB_DIFFERS;
}
