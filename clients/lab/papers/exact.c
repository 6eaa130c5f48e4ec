/* exact.c: see exact.h. */
#include "clients/lab/papers/exact.h"

#include "clients/lab/exit_status.h"
#include "clients/lab/papers/mosaic/frames.h"
#include "clients/lab/papers/pichai/pichai_exact.h"

#include <stdbool.h>
#include <stdio.h>

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
