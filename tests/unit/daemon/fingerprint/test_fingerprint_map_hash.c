/* test_fingerprint_map_hash.c: the name of a group map depends on the SMs of each group and on
 * nothing else. REACH_SEED repeats a run. */
#include "fingerprint/fingerprint.h"
#include "base/rng.h"
#include "tests/unit/support/paper_gpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { DRAWS = 300 };

/* Makes random SMs, each in one of `groups` groups, whose numbers are in no order. */
static void draw(struct rng *r, struct sm_partition *out)
{
    const uint32_t sms = 2 + (uint32_t)rng_below(r, REACH_MAX_SMS - 2);
    const uint32_t groups = 2 + (uint32_t)rng_below(r, REACH_MAX_GROUPS - 2);

    memset(out, 0xff, sizeof(*out));
    out->group_count = groups;
    for (uint32_t sm = 0; sm < sms; sm++) {
        if (rng_below(r, 8) > 0)
            out->group_of_sm[sm] = (uint16_t)rng_below(r, groups);
    }
}

/* Copies the groups of a map and gives them other numbers. */
static void rename_groups(struct rng *r, struct sm_partition *p)
{
    uint16_t name[REACH_MAX_GROUPS];

    for (uint32_t g = 0; g < REACH_MAX_GROUPS; g++)
        name[g] = (uint16_t)g;
    for (uint32_t g = REACH_MAX_GROUPS - 1; g > 0; g--) {
        const uint64_t k = rng_below(r, g + 1);
        const uint16_t swap = name[g];
        name[g] = name[k];
        name[k] = swap;
    }
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++) {
        if (p->group_of_sm[sm] != FINGERPRINT_NO_GROUP)
            p->group_of_sm[sm] = name[p->group_of_sm[sm]];
    }
}

static void other_names_change_nothing(void **state)
{
    struct rng r = {.state = paper_seed("map hash", 20261121)};

    (void)state;
    for (int i = 0; i < DRAWS; i++) {
        struct sm_partition p;
        char before[FINGERPRINT_MAP_HASH_BYTES];
        char after[FINGERPRINT_MAP_HASH_BYTES];
        draw(&r, &p);
        fingerprint_map_hash(&p, before);
        assert_int_equal(strlen(before), FINGERPRINT_MAP_HASH_BYTES - 1);
        rename_groups(&r, &p);
        assert_string_equal(fingerprint_map_hash(&p, after), before);
    }
}

/* If one SM is moved to another group that has SMs, or is removed, the hash is different. */
static void another_map_has_another_name(void **state)
{
    struct rng r = {.state = paper_seed("map hash", 20261122)};

    (void)state;
    for (int i = 0; i < DRAWS; i++) {
        struct sm_partition p;
        char before[FINGERPRINT_MAP_HASH_BYTES];
        char after[FINGERPRINT_MAP_HASH_BYTES];
        draw(&r, &p);
        p.group_of_sm[0] = p.group_of_sm[1] = 0;
        p.group_of_sm[2] = 1;
        fingerprint_map_hash(&p, before);
        p.group_of_sm[1] = i % 2 ? 1 : FINGERPRINT_NO_GROUP;
        assert_string_not_equal(fingerprint_map_hash(&p, after), before);
    }
}

/* The hash equals a value that was computed separately. The hash is the name of a map in databases
 * and monitoring systems, so a new version must not change it. */
static void names_stay(void **state)
{
    static const uint16_t k80[] = {0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 2, 3, 4};
    struct sm_partition p = {.group_count = 5};
    char name[FINGERPRINT_MAP_HASH_BYTES];

    (void)state;
    memset(p.group_of_sm, 0xff, sizeof(p.group_of_sm));
    memcpy(p.group_of_sm, k80, sizeof(k80));
    assert_string_equal(fingerprint_map_hash(&p, name), "mapc84dcddb9eb737e4");
}

static void no_groups_no_name(void **state)
{
    struct sm_partition p = {.group_count = 0};
    char name[FINGERPRINT_MAP_HASH_BYTES] = "x";

    (void)state;
    assert_string_equal(fingerprint_map_hash(&p, name), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_names_change_nothing),
        cmocka_unit_test(another_map_has_another_name),
        cmocka_unit_test(names_stay),
        cmocka_unit_test(no_groups_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
