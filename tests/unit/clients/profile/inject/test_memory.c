/* test_memory.c: the list of allocations, compared with an array that has a cell for each byte. */
#include "clients/profile/inject/memory.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CELLS = 256, LONGEST = 24, STEPS = 20000, THREADS = 4 };
#define BASE ((uint64_t)1 << 40)

static unsigned seed;
static _Atomic unsigned problems; /* that threads have found */

/* The model: the number of the allocation in each cell; 0 is none. */
struct model {
    uint32_t cells[CELLS];
    struct allocation items[STEPS + 1];
    uint32_t count; /* numbers that were used */
};
static struct model allocated, reserved;

static uint64_t random_below(uint64_t n)
{
    return (uint64_t)rand_r(&seed) % n;
}

static void model_add(struct model *m, const struct allocation *a)
{
    const uint64_t first = a->address - BASE;
    uint32_t covered[LONGEST];
    for (uint64_t i = 0; i < a->bytes; i++)
        covered[i] = m->cells[first + i];
    for (uint64_t i = 0; i < a->bytes; i++) { /* whatever overlaps goes, as a whole */
        for (uint32_t c = 0; covered[i] && c < CELLS; c++)
            m->cells[c] = m->cells[c] == covered[i] ? 0 : m->cells[c];
    }
    m->items[++m->count] = *a;
    for (uint64_t i = 0; i < a->bytes; i++)
        m->cells[first + i] = m->count;
}

/* Returns the allocation that begins at a cell, or NULL. */
static struct allocation *model_find(struct model *m, uint64_t cell)
{
    struct allocation *const a = m->cells[cell] ? &m->items[m->cells[cell]] : NULL;
    return a && a->address == BASE + cell ? a : NULL;
}

static void compare_lists(void)
{
    struct allocation a;
    uint32_t i = 0;
    for (uint32_t c = 0; c < CELLS; c++) {
        const struct allocation *const expected = model_find(&allocated, c);
        assert_int_equal(memory_is_known(BASE + c), allocated.cells[c] != 0);
        assert_int_equal(memory_is_reserved(BASE + c), reserved.cells[c] != 0);
        if (!expected)
            continue;
        assert_true(memory_get(i++, &a));
        assert_int_equal(a.address, expected->address);
        assert_int_equal(a.bytes, expected->bytes);
        assert_int_equal(a.device, expected->device);
        assert_int_equal(a.freed, expected->freed);
        assert_string_equal(a.kind, expected->kind);
        assert_string_equal(a.at, expected->at);
    }
    assert_false(memory_get(i, &a));
    assert_false(memory_is_known(BASE - 1) || memory_is_known(BASE + CELLS));
}

/* Does one random thing to the list and to the model. */
static void step(void)
{
    static const char *const kinds[] = {"device", "pool", "pinned", "managed"};
    const uint64_t cell = random_below(CELLS - LONGEST);
    struct allocation a = {.device = (int)random_below(2),
                           .address = BASE + cell,
                           .bytes = random_below(LONGEST),
                           .kind = kinds[random_below(4)],
                           .at = "unknown"};
    struct allocation *found;

    switch (random_below(6)) {
    case 0:
    case 1:
        memory_allocated(a.device, a.address, a.bytes, a.kind);
        if (a.bytes)
            model_add(&allocated, &a);
        break;
    case 2:
        memory_freed(a.address);
        found = model_find(&allocated, cell);
        if (found)
            found->freed = true;
        break;
    case 3:
        memory_locate(a.address, "managed", "host");
        found = model_find(&allocated, cell);
        if (found) {
            found->kind = "managed";
            found->at = "host";
        }
        break;
    case 4:
        memory_reserved(a.address, a.bytes);
        if (a.bytes)
            model_add(&reserved, &a);
        break;
    default:
        memory_released(a.address);
        if (model_find(&reserved, cell)) {
            const uint32_t number = reserved.cells[cell];
            for (uint32_t c = 0; c < CELLS; c++)
                reserved.cells[c] = reserved.cells[c] == number ? 0 : reserved.cells[c];
        }
        break;
    }
}

static void random_calls_do_what_the_model_does(void **state)
{
    (void)state;
    for (int i = 0; i < STEPS; i++) {
        step();
        if (i % 16 == 0)
            compare_lists();
    }
    compare_lists();
}

/* The list grows; memory that was freed stays known. */
static void many_allocations_are_kept(void **state)
{
    enum { MANY = 5000 };
    struct allocation a;
    uint32_t found = 0;

    (void)state;
    for (uint64_t i = 0; i < MANY; i++)
        memory_allocated(7, 2 * BASE + (MANY - i) * 4096, 4096, "pool");
    for (uint64_t i = 1; i <= MANY; i++) {
        assert_true(memory_is_known(2 * BASE + i * 4096 + 4095));
        memory_freed(2 * BASE + i * 4096);
    }
    for (uint32_t i = 0; memory_get(i, &a); i++)
        found += a.device == 7 && a.freed;
    assert_int_equal(found, MANY);
}

static void *allocate_and_free(void *number)
{
    const uint64_t base = 4 * BASE + ((uint64_t)(uintptr_t)number << 32);
    struct allocation a;
    for (uint64_t i = 0; i < 2000; i++) {
        memory_reserved(base + i * 64, 64);
        memory_allocated(0, base + i * 64, 64, "device");
        (void)memory_get((uint32_t)i, &a);
        memory_locate(base + i * 64, "managed", "device");
        if (!memory_is_known(base + i * 64) || !memory_is_reserved(base + i * 64))
            atomic_fetch_add(&problems, 1);
        memory_freed(base + i * 64);
        memory_released(base + i * 64);
    }
    return NULL;
}

static void threads_share_the_list(void **state)
{
    pthread_t threads[THREADS];

    (void)state;
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_and_free, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(problems, 0);
    assert_false(memory_is_reserved(4 * BASE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_calls_do_what_the_model_does),
        cmocka_unit_test(many_allocations_are_kept),
        cmocka_unit_test(threads_share_the_list),
    };
    const char *const text = getenv("TEST_SEED");

    seed = text ? (unsigned)strtoul(text, NULL, 10) : (unsigned)time(NULL);
    printf("# TEST_SEED=%u\n", seed);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
