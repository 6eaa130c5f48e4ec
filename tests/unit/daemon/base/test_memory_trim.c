/* test_memory_trim.c: a thread frees whole pages of its stack, and none that is in use. */
#include "base/memory_trim.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

/* Page sizes of x86-64 and of ARM. The kernel rounds the end of a range up to a whole page. */
static void the_end_is_a_whole_page_below_the_kept_part(void **state)
{
    const uintptr_t pages[] = {4 << 10, 16 << 10, 64 << 10};
    const uintptr_t top = (uintptr_t)1 << 30;

    (void)state;
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++)
        for (uintptr_t used = top; used < top + 2 * pages[2]; used += 16) {
            const uintptr_t end = memory_trim_end(used, pages[i]);
            assert_int_equal(end % pages[i], 0);
            assert_true(used - end >= MEMORY_TRIM_STACK_KEPT);
            assert_true(used - end < MEMORY_TRIM_STACK_KEPT + pages[i]);
        }
}

enum { DEEP_BYTES = 1 << 20, KEPT_BYTES = 4096 };

/* Dirties a large part of the stack below the caller. */
static void __attribute__((noinline)) use_stack(void)
{
    volatile char deep[DEEP_BYTES];

    for (size_t i = 0; i < sizeof deep; i++)
        deep[i] = 0x5a;
}

static void *trim(void *unused)
{
    char kept[KEPT_BYTES];

    memset(kept, 0x5a, sizeof kept);
    use_stack();
    memory_trim_stack();
    for (size_t i = 0; i < sizeof kept; i++)
        if (kept[i] != 0x5a)
            return NULL;
    use_stack(); /* the freed part can be used again */
    return kept[0] ? unused : NULL;
}

static void frames_in_use_are_kept(void **state)
{
    pthread_t thread;
    void *result = NULL;
    int kept = 1;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, trim, &kept), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, &kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_is_a_whole_page_below_the_kept_part),
        cmocka_unit_test(frames_in_use_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
