/* test_huge_pages.c: the share of memory in huge pages, from texts like /proc/PID/smaps. */
#include "clients/profile/inject/huge_pages.h"

#include "base/rng.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MIB = 1 << 20, PIECES = 20, ROUNDS = 1000 };

static double share_of(const char *text, uint64_t address, uint64_t bytes)
{
    FILE *const smaps = fmemopen((void *)(uintptr_t)text, strlen(text), "r");

    assert_non_null(smaps);
    const double share = huge_pages_share(smaps, address, bytes);
    assert_int_equal(fclose(smaps), 0);
    return share;
}

static void each_kind_of_huge_page_counts(void **state)
{
    static const struct {
        const char *line;
        double share;
    } cases[] = {{"AnonHugePages:      2048 kB\n", 0.5},  {"ShmemPmdMapped:     4096 kB\n", 1},
                 {"FilePmdMapped:      1024 kB\n", 0.25}, {"Shared_Hugetlb:     2048 kB\n", 0.5},
                 {"Private_Hugetlb:    4096 kB\n", 1},    {"Rss:                4096 kB\n", 0},
                 {"AnonHugePages:         0 kB\n", 0},    {"AnonHugePages:\n", 0},
                 {"KernelPageSize:     2048 kB\n", 0}};
    char text[300];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        (void)snprintf(text, sizeof(text),
                       "7f0000000000-7f0000400000 rw-p 00000000 00:00 0 \nSize: 4096 kB\n%s"
                       "VmFlags: rd wr mr mw me ac hg \n",
                       cases[i].line);
        assert_float_equal(share_of(text, 0x7f0000000000, 4 * MIB), cases[i].share, 1e-12);
    }
    assert_float_equal(share_of("", 0, 1), 0, 0);
    assert_float_equal(share_of("not a mapping\nAnonHugePages: 4 kB\n", 0, 1), 0, 0);
}

/* Mappings side by side, some of them huge, and a range over some of them. */
static void mappings_that_overlap_count(void **state)
{
    struct rng rng = {7};
    char text[PIECES * 100];

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t first = rng_below(&rng, PIECES),
                       last = first + rng_below(&rng, PIECES - first);
        uint64_t at = 0x10000000, begin = 0, end = 0;
        double huge = 0;
        size_t length = 0;
        for (uint64_t i = 0; i < PIECES; i++) {
            const uint64_t bytes = (1 + rng_below(&rng, 8)) * MIB;
            const uint64_t in_huge = rng_below(&rng, 2) * bytes;
            length += (size_t)snprintf(text + length, sizeof(text) - length,
                                       "%llx-%llx rw-p 0 00:00 0 /a b\nAnonHugePages: %llu kB\n",
                                       (unsigned long long)at, (unsigned long long)(at + bytes),
                                       (unsigned long long)(in_huge >> 10));
            begin = i == first ? at : begin;
            end = i == last ? at + bytes : end;
            huge += i >= first && i <= last ? (double)in_huge : 0;
            at += bytes;
        }
        const double whole = (double)(end - begin);
        begin += rng_below(&rng, MIB); /* a part of a mapping counts as the whole */
        end -= rng_below(&rng, MIB);
        if (end > begin)
            assert_float_equal(share_of(text, begin, end - begin), huge / whole, 1e-12);
    }
}

static void memory_of_this_process_is_found(void **state)
{
    FILE *const smaps = fopen("/proc/self/smaps", "re");
    char *const memory =
        mmap(NULL, 8 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_non_null(smaps);
    assert_true(memory != MAP_FAILED);
    assert_int_equal(madvise(memory, 8 * MIB, MADV_NOHUGEPAGE), 0);
    memset(memory, 1, 8 * MIB);
    assert_float_equal(huge_pages_share(smaps, (uintptr_t)memory, 8 * MIB), 0, 0);
    assert_int_equal(fclose(smaps), 0);
    assert_int_equal(munmap(memory, 8 * MIB), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_of_huge_page_counts),
        cmocka_unit_test(mappings_that_overlap_count),
        cmocka_unit_test(memory_of_this_process_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
