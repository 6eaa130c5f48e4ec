/* test_hash.c: FNV-1a compared with its published values. */
#include "base/hash.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static uint64_t hash_text(const char *s)
{
    return hash_bytes(HASH_START, s, strlen(s));
}

/* These values are from the test vectors of the authors of FNV. */
static void published_values(void **state)
{
    (void)state;
    assert_true(hash_text("") == 0xcbf29ce484222325u);
    assert_true(hash_text("a") == 0xaf63dc4c8601ec8cu);
    assert_true(hash_text("b") == 0xaf63df4c8601f1a5u);
    assert_true(hash_text("foobar") == 0x85944171f73967e8u);
}

static void cutting_changes_nothing(void **state)
{
    const char text[] = "one value in several parts";

    (void)state;
    for (size_t cut = 0; cut <= sizeof(text); cut++) {
        const uint64_t first = hash_bytes(HASH_START, text, cut);
        assert_true(hash_bytes(first, text + cut, sizeof(text) - cut) ==
                    hash_bytes(HASH_START, text, sizeof(text)));
    }
}

static void every_bit_counts(void **state)
{
    unsigned char row[64] = {0};
    const uint64_t clean = hash_bytes(HASH_START, row, sizeof(row));

    (void)state;
    for (size_t bit = 0; bit < 8 * sizeof(row); bit++) {
        row[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_true(hash_bytes(HASH_START, row, sizeof(row)) != clean);
        row[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
}

/* Every bit and every length changes the hash, even if all bytes are zero. */
static void the_quick_one_tells_apart(void **state)
{
    unsigned char row[64] = {0};
    uint64_t seen[sizeof(row) + 1];

    (void)state;
    for (size_t n = 0; n <= sizeof(row); n++) {
        seen[n] = hash_quick(row, n);
        for (size_t i = 0; i < n; i++)
            assert_true(seen[i] != seen[n]);
        for (size_t bit = 0; bit < 8 * n; bit++) {
            row[bit / 8] ^= (unsigned char)(1u << bit % 8);
            assert_true(hash_quick(row, n) != seen[n]);
            row[bit / 8] ^= (unsigned char)(1u << bit % 8);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_values),
        cmocka_unit_test(cutting_changes_nothing),
        cmocka_unit_test(every_bit_counts),
        cmocka_unit_test(the_quick_one_tells_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
