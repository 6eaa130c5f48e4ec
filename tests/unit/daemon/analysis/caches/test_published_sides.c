/* test_published_sides.c: the published numbers of a B300, imported as observations of the sides of
 * its L2.
 *
 * The numbers are from github.com/ademeure/QuickRunCUDA (investigations/c2_l2_partition, 2026): one
 * thread times dependent atomics on 148 SMs. An atomic takes 285 to 360 cycles near (the median is
 * 295) and 670 to 745 far (700). The side of each of the first 32 chunks of 4 KiB is published for
 * two allocations. The sides of the SMs are not published, so the test puts the first half of the
 * SMs on one side. Chunks after the 32nd repeat the published ones. TEST_SEED repeats a run. */
#include "analysis/caches/sides.h"
#include "base/rng.h"
#include "base/units.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SMS = 148, SMS_OF_SIDE = SMS / 2, CHUNKS = 32, CHUNK_BYTES = 4096, MOST_PROBES = 4 };

/* N is near and F is far, as seen by one SM: memory of cudaMalloc and of cudaMallocAsync. */
static const char *const allocations[] = {"NFFNFNNFFNNFNFFNNFFNFNNFFNNFNFFN",
                                          "FNNFNFFNNFFNFNNFFNNFNFFNNFFNFNNF"};

/* Published cycles of near and of far atomics. */
struct cycles {
    uint32_t least, most;
};
static const struct cycles medians[] = {{295, 295}, {700, 700}};
static const struct cycles ranges[] = {{285, 360}, {670, 745}};

static struct rng rng;

static bool is_far(const char *chunks, uint64_t offset, uint16_t sm)
{
    const bool far_of_first = chunks[offset / CHUNK_BYTES % CHUNKS] == 'F';

    return far_of_first != (sm >= SMS_OF_SIDE);
}

static void add(struct observation_set *set, struct observation *o)
{
    o->result.sm_count = SMS;
    for (uint32_t sm = 0; sm < SMS; sm++)
        o->result.sm_ids[sm] = (uint16_t)sm;
    assert_int_equal(observation_set_add(set, o, NULL), STATUS_OK);
}

/* Answers a probe of sides with the published cycles. */
static void answer(struct observation_set *set, const struct probe_spec *spec, const char *chunks,
                   const struct cycles *cycles)
{
    struct observation o = {.spec = *spec};
    size_t n = 0;

    o.result.value_count = probe_value_count(spec, SMS);
    o.result.values = calloc(o.result.value_count, sizeof *o.result.values);
    assert_non_null(o.result.values);
    for (uint32_t repeat = 0; repeat < spec->repeats; repeat++) {
        for (uint32_t i = 0; i < spec->sm_count; i++) {
            for (uint32_t k = 0; k < spec->samples; k++) {
                const struct cycles c =
                    cycles[is_far(chunks, k * spec->stride_bytes, spec->sms[i])];
                o.result.values[n++] = c.least + (uint32_t)rng_below(&rng, c.most - c.least + 1);
            }
        }
    }
    assert_int_equal(n, o.result.value_count);
    add(set, &o);
}

/* Derives the L2 from the published numbers. */
static struct fingerprint_l2 import(const char *chunks, const struct cycles *cycles,
                                    struct maybe_u32 domains)
{
    struct observation_set set = {.gpu = {.origin = ORIGIN_IMPORTED, .sm_count = SMS},
                                  .limits = {.range_bytes = GIB, .sm_count = SMS}};
    struct observation first = {.spec = {.kind = PROBE_CHASE}};
    struct fingerprint fp = {.depth = DEPTH_FULL};
    struct sides_estimate e;
    uint32_t probes = 0;

    add(&set, &first);
    for (sides_estimate(&set, &e); e.asks; sides_estimate(&set, &e)) {
        assert_true(probes++ < MOST_PROBES);
        answer(&set, &e.ask, chunks, cycles);
    }
    sides_derive(&set, &fp);
    fp.l2.locality_domains = domains;
    observation_set_free(&set);
    return fp.l2;
}

static void check_structure(const struct fingerprint_l2 *l2)
{
    assert_int_equal(l2->sides.v, 2);
    assert_int_equal(l2->granule_bytes.v, CHUNK_BYTES);
    for (uint32_t sm = 0; sm < SMS; sm++)
        assert_int_equal(l2->side_of_sm.group_of_sm[sm], sm >= SMS_OF_SIDE);
}

static void published_medians_come_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof allocations / sizeof allocations[0]; i++) {
        const struct fingerprint_l2 l2 = import(allocations[i], medians, KNOWN_U32(2));
        check_structure(&l2);
        assert_true(l2.atomic_near_cycles.v == medians[0].least);
        assert_true(l2.atomic_far_cycles.v == medians[1].least);
        /* MLOPart divides a B300 along the border of its sides. */
        assert_int_equal(l2_match_domains(&l2), FINDING_YES);
    }
}

static void cycles_of_the_published_ranges_have_sides(void **state)
{
    (void)state;
    for (int round = 0; round < 10; round++) {
        const struct fingerprint_l2 l2 =
            import(allocations[round % 2], ranges, UNKNOWN_U32(REASON_NOT_SUPPORTED));
        check_structure(&l2);
        assert_in_range((uintmax_t)l2.atomic_near_cycles.v, ranges[0].least, ranges[0].most);
        assert_in_range((uintmax_t)l2.atomic_far_cycles.v, ranges[1].least, ranges[1].most);
        assert_int_equal(l2_match_domains(&l2), FINDING_UNKNOWN);
    }
}

/* An MLOPart device has one side of the GPU, where every line is near. */
static void a_device_of_one_side_has_no_sides(void **state)
{
    const struct cycles near_only[] = {ranges[0], ranges[0]};
    const struct fingerprint_l2 l2 = import(allocations[0], near_only, KNOWN_U32(1));

    (void)state;
    assert_int_equal(l2.sides.known, MAYBE_NOT_OBSERVABLE);
    assert_int_equal(l2.sides.reason, REASON_NO_CONTRAST);
    assert_int_equal(l2_match_domains(&l2), FINDING_YES);
}

int main(void)
{
    const char *const given = getenv("TEST_SEED");
    const uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)getpid() * 2654435761U;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_medians_come_back),
        cmocka_unit_test(cycles_of_the_published_ranges_have_sides),
        cmocka_unit_test(a_device_of_one_side_has_no_sides),
    };

    rng.state = seed;
    print_message("TEST_SEED=%llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
