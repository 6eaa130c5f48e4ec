/* test_place.c: the touched bytes of generated launches and maps of memory. */
#include "clients/profile/place.h"

#include "base/rng.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <time.h>

enum { ALLOCATIONS = 8, RUNS = 8, PAGE = 1 << RECORDING_PAGE_SHIFT, CASES = 2000 };

/* Returns the bytes that a region shares with the pages, page by page. */
static uint64_t count_region(const struct place_region *r, const struct recording_launch *l)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < l->page_run_count; i++) {
        for (uint64_t k = 0; k < l->pages[i].count; k++) {
            const uint64_t page = (l->pages[i].first + k) * PAGE;
            const uint64_t high = r->address + r->bytes;
            const uint64_t begin = page > r->address ? page : r->address;
            const uint64_t end = page + PAGE < high ? page + PAGE : high;
            sum += end > begin ? end - begin : 0;
        }
    }
    return sum;
}

static void touched_bytes_of_regions_add_up(void **state)
{
    const char *const given = getenv("TEST_SEED");
    struct rng rng = {given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL)};

    (void)state;
    print_message("# TEST_SEED=%llu\n", (unsigned long long)rng.state);
    for (int n = 0; n < CASES; n++) {
        struct recording_allocation allocations[ALLOCATIONS];
        struct recording_pages pages[RUNS];
        const struct recording r = {.allocation_count = (uint32_t)rng_below(&rng, ALLOCATIONS + 1),
                                    .allocations = allocations};
        const struct recording_launch l = {.page_run_count = (uint32_t)rng_below(&rng, RUNS + 1),
                                           .pages = pages};
        uint64_t at = rng_below(&rng, 4 * PAGE);
        uint64_t first = 0;
        uint64_t sum = 0;
        uint64_t touched[PLACE_COUNT] = {0};
        struct place_map map;
        for (uint32_t i = 0; i < r.allocation_count; i++) {
            allocations[i] = (struct recording_allocation){
                .kind = (enum recording_kind)rng_below(&rng, RECORDING_MANAGED),
                .address = at,
                .bytes = 1 + rng_below(&rng, 3 * PAGE)};
            at += rng_below(&rng, 4 * PAGE); /* allocations may overlap */
        }
        for (uint32_t i = 0; i < l.page_run_count; i++) {
            first += rng_below(&rng, 4);
            pages[i] = (struct recording_pages){first, 1 + rng_below(&rng, 4)};
            first += pages[i].count;
        }
        assert_int_equal(place_map_make(&r, 0, &map, NULL), STATUS_OK);
        place_map_touched(&map, &l, touched);
        for (uint32_t i = 0; i < map.count; i++) {
            const uint64_t bytes = place_map_region_touched(&map, i, &l);
            assert_int_equal(bytes, count_region(&map.regions[i], &l));
            sum += bytes;
        }
        for (uint32_t place = 0; place < PLACE_UNKNOWN; place++)
            sum -= touched[place];
        assert_int_equal(sum, 0);
        place_map_free(&map);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(touched_bytes_of_regions_add_up)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
