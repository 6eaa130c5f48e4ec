/* test_entry_misses.c: compares the count of misses with a plain list. TEST_SEED repeats a run. */
#include "clients/profile/entry_misses.h"

#include "base/rng.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 400, PAGE = 64 };

/* Counts the misses of the second run over the addresses, with a list in the order of last use. */
static uint64_t count_plainly(const uint64_t *addresses, uint64_t count, uint64_t entries)
{
    uint64_t list[MOST] = {0};
    uint64_t used = 0;
    uint64_t misses = 0;

    for (uint64_t i = 0; i < 2 * count; i++) {
        const uint64_t page = addresses[i % count] / PAGE;
        uint64_t at = 0;
        while (at < used && list[at] != page)
            at++;
        misses += at == used && i >= count;
        if (at == used && used < entries)
            used++;
        else if (at == used)
            at = used - 1;
        memmove(list + 1, list, at * sizeof(*list));
        list[0] = page;
    }
    return misses;
}

static uint64_t count_translations(const uint64_t *addresses, uint64_t count)
{
    uint64_t sum = 0;

    for (uint64_t i = 0; i < count; i++) {
        uint64_t before = 0;
        while (addresses[before] / PAGE != addresses[i] / PAGE)
            before++;
        sum += before == i;
    }
    return sum;
}

static void misses_equal_those_of_a_list(void **state)
{
    const char *const given = getenv("TEST_SEED");
    struct rng rng = {given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL)};

    (void)state;
    print_message("# TEST_SEED=%llu\n", (unsigned long long)rng.state);
    for (int round = 0; round < 1000; round++) {
        uint64_t addresses[MOST];
        const uint64_t count = rng_below(&rng, MOST) + 1;
        const uint64_t range = (rng_below(&rng, 100) + 1) * PAGE;
        const uint64_t entries = rng_below(&rng, 60) + 1;
        struct entry_misses found;
        for (uint64_t i = 0; i < count; i++)
            addresses[i] = rng_below(&rng, range);
        assert_int_equal(entry_misses_count(addresses, count, PAGE, entries, &found, NULL),
                         STATUS_OK);
        assert_int_equal(found.misses, count_plainly(addresses, count, entries));
        assert_int_equal(found.translations, count_translations(addresses, count));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(misses_equal_those_of_a_list),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
