/* test_diff.c: compares two fingerprints. For random pairs, a fingerprint equals itself, and the
 * class of a difference does not depend on the order of the pair. TEST_SEED repeats a run. */
#include "base/rng.h"
#include "base/units.h"
#include "fingerprint/diff.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SMS = 24, GROUPS = 4, ROUNDS = 2000 };

static struct fingerprint *base_fingerprint(void)
{
    struct fingerprint *fp = calloc(1, sizeof *fp);
    assert_non_null(fp);
    fingerprint_init(fp);
    fp->gpu = (struct gpu_identity){.uuid = "GPU-1",
                                    .serial = "12",
                                    .driver_version = "580.1",
                                    .sm_count = SMS,
                                    .memory_bytes = 80 * GIB};
    fp->level_count = 2;
    for (uint32_t k = 0; k < 2; k++) {
        struct tlb_level *l = &fp->levels[k];
        l->level = k + 1;
        l->entries = KNOWN_U32(k ? 2048 : 16);
        l->entry_bytes = KNOWN_U64(32 * MIB);
        l->reach_bytes = KNOWN_U64((k ? 2048 : 16) * 32 * MIB);
        l->miss_penalty_cycles = KNOWN_F64(k ? 90 : 10);
        l->shared_by = k ? SHARED_GROUP : SHARED_SM;
    }
    fp->levels[1].sharing.group_count = GROUPS;
    for (uint16_t id = 0; id < SMS; id++)
        fp->levels[1].sharing.group_of_sm[id] = id / (SMS / GROUPS);
    fp->topology.level = KNOWN_U32(2);
    fp->topology.partition = fp->levels[1].sharing;
    for (uint32_t g = 0; g < GROUPS; g++)
        fp->topology.groups[g].sm_count = SMS / GROUPS;
    fp->throughput.plateau_gbps = KNOWN_F64(4000);
    fp->throughput.curve_count = 1;
    fp->throughput.curve[0].region_bytes = GIB;
    fp->throughput.curve[0].naive_gbps = KNOWN_F64(4000);
    fp->throughput.rate_count = 1;
    fp->contiguity.frame_bytes = KNOWN_U64(32 * MIB);
    fp->contiguity.contiguous_miss_ns = KNOWN_F64(0.3);
    fp->contiguity.scattered_miss_ns = KNOWN_F64(0.6);
    fp->throughput.rates[0].access = ACCESS_ATOMIC;
    fp->throughput.rates[0].transaction_bytes = 32;
    fp->throughput.rates[0].plateau_gbps = KNOWN_F64(300);
    fp->throughput.rates[0].point_count = 1;
    fp->throughput.rates[0].points[0].region_bytes = GIB;
    fp->throughput.rates[0].points[0].naive_gbps = KNOWN_F64(30);
    return fp;
}

/* Exchanges the SMs a and b. */
static void swap_sms(struct fingerprint *fp, uint16_t a, uint16_t b)
{
    struct sm_partition *both[] = {&fp->levels[1].sharing, &fp->topology.partition};
    for (int i = 0; i < 2; i++) {
        const uint16_t kept = both[i]->group_of_sm[a];
        both[i]->group_of_sm[a] = both[i]->group_of_sm[b];
        both[i]->group_of_sm[b] = kept;
    }
}

static struct fingerprint_diff compare(const struct fingerprint *a, const struct fingerprint *b)
{
    struct fingerprint_diff ab;
    struct fingerprint_diff ba;
    fingerprint_compare(a, b, &ab);
    fingerprint_compare(b, a, &ba);
    assert_int_equal(ab.result, ba.result);
    assert_int_equal(ab.count, ba.count);
    assert_true((ab.result == FINGERPRINT_SAME) == (ab.count == 0));
    return ab;
}

/* Makes the differences between two measurements of a quiet chip. */
static void add_noise(struct fingerprint *fp, struct rng *rng)
{
    fp->taken_at += (int64_t)rng_below(rng, 100000);
    fp->duration_ms = (uint32_t)rng_below(rng, 1000);
    fp->levels[1].miss_penalty_cycles.v += 4 * rng_unit(rng) - 2;
    fp->throughput.plateau_gbps.v *= 1 + 0.02 * (rng_unit(rng) - 0.5);
    fp->throughput.rates[0].plateau_gbps.v *= 1 + 0.02 * (rng_unit(rng) - 0.5);
    fp->throughput.rates[0].points[0].naive_gbps.v *= 1 + 0.02 * (rng_unit(rng) - 0.5);
    if (rng_below(rng, 3) == 0)
        fp->throughput.rate_count = 0; /* older releases have no rates */
    fp->levels[1].onset_bytes = KNOWN_U64(fp->levels[1].reach_bytes.v + rng_below(rng, GIB));
    if (rng_below(rng, 2))
        fp->throughput.curve[0].naive_gbps = UNKNOWN_F64(REASON_NOT_MEASURED);
    if (rng_below(rng, 2))
        fp->gpu.serial[0] = '\0';
    snprintf(fp->conditions.notes[0], sizeof fp->conditions.notes[0], "a note");
    fp->conditions.note_count = (uint32_t)rng_below(rng, 2);
}

/* Checks one change of a known class. */
static enum fingerprint_class change(struct fingerprint *fp, struct rng *rng)
{
    switch (rng_below(rng, 13)) {
    case 0:
        snprintf(fp->gpu.driver_version, sizeof fp->gpu.driver_version, "590.1");
        return FINGERPRINT_CHANGED;
    case 1:
        fp->levels[1].entries.v += 100;
        return FINGERPRINT_CHANGED;
    case 2:
        fp->levels[1].miss_penalty_cycles.v *= 2;
        return FINGERPRINT_CHANGED;
    case 3:
        fp->throughput.plateau_gbps.v *= 0.8;
        return FINGERPRINT_CHANGED;
    case 4:
        fp->level_count = 1;
        return FINGERPRINT_CHANGED;
    case 5:
        fp->gpu.memory_bytes /= 2;
        return FINGERPRINT_CHANGED;
    case 6:
        snprintf(fp->gpu.uuid, sizeof fp->gpu.uuid, "GPU-2");
        return FINGERPRINT_OTHER_HARDWARE;
    case 7:
        fp->throughput.rates[0].plateau_gbps.v *= 0.8;
        return FINGERPRINT_CHANGED;
    case 8:
        fp->throughput.rates[0].points[0].naive_gbps.v *= 1.2;
        return FINGERPRINT_CHANGED;
    case 10:
        fp->contiguity.frame_bytes.v *= 2;
        return FINGERPRINT_CHANGED;
    case 11:
        fp->contiguity.scattered_miss_ns.v *= 1.2;
        return FINGERPRINT_CHANGED;
    case 9:
        swap_sms(fp, (uint16_t)rng_below(rng, SMS / GROUPS),
                 (uint16_t)(SMS / GROUPS + rng_below(rng, SMS / GROUPS)));
        return FINGERPRINT_OTHER_HARDWARE;
    default:
        fp->gpu.origin = ORIGIN_IMPORTED;
        return FINGERPRINT_OTHER_HARDWARE;
    }
}

static void random_pairs(void **state)
{
    const char *given = getenv("TEST_SEED");
    struct rng rng = {.state = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL)};
    (void)state;
    print_message("# TEST_SEED=%llu\n", (unsigned long long)rng.state);
    for (int i = 0; i < ROUNDS; i++) {
        struct fingerprint *a = base_fingerprint();
        struct fingerprint *b = base_fingerprint();
        enum fingerprint_class expected = FINGERPRINT_SAME;
        assert_int_equal(compare(a, a).result, FINGERPRINT_SAME);
        add_noise(a, &rng);
        add_noise(b, &rng);
        struct fingerprint_diff d = compare(a, b);
        if (d.result != FINGERPRINT_SAME)
            fail_msg("noise: %s", d.sentences[0]);
        for (uint64_t n = rng_below(&rng, 3); n > 0; n--) {
            const enum fingerprint_class c = change(b, &rng);
            expected = c > expected ? c : expected;
        }
        d = compare(a, b);
        /* Two swaps may cancel each other. Two changes of the same number may also cancel each
         * other. */
        if (d.result > expected)
            fail_msg("%s: %s", fingerprint_class_name(d.result), d.sentences[0]);
        assert_int_equal(compare(b, b).result, FINGERPRINT_SAME);
        free(a);
        free(b);
    }
}

static void every_change_is_named(void **state)
{
    (void)state;
    for (uint64_t s = 0; s < 200; s++) {
        struct fingerprint *a = base_fingerprint();
        struct fingerprint *b = base_fingerprint();
        struct rng rng = {.state = s};
        const enum fingerprint_class expected = change(b, &rng);
        const struct fingerprint_diff d = compare(a, b);
        assert_int_equal(d.result, expected);
        assert_true(d.count >= 1 && strlen(d.sentences[0]) > 5);
        free(a);
        free(b);
    }
}

/* A sentence never has the same text for two sizes. */
static void near_sizes_have_other_texts(void **state)
{
    struct fingerprint *a = base_fingerprint();
    struct fingerprint *b = base_fingerprint();
    (void)state;
    b->levels[1].reach_bytes.v -= 1;
    assert_non_null(strstr(compare(a, b).sentences[0], "68719476736 bytes and 68719476735 bytes"));
    free(a);
    free(b);
}

/* If a fingerprint has only some SMs of a group, these SMs are compared. The numbers of the groups
 * do not matter. */
static void half_known_groups(void **state)
{
    struct fingerprint *a = base_fingerprint();
    struct fingerprint *b = base_fingerprint();
    (void)state;
    for (uint16_t id = 0; id < SMS; id += 2)
        b->levels[1].sharing.group_of_sm[id] = b->topology.partition.group_of_sm[id] =
            FINGERPRINT_NO_GROUP;
    assert_int_equal(compare(a, b).result, FINGERPRINT_SAME);
    swap_sms(b, 1, 7);
    assert_int_equal(compare(a, b).result, FINGERPRINT_OTHER_HARDWARE);
    free(a);
    free(b);
}

static void more_than_fits_is_dropped(void **state)
{
    struct fingerprint *a = base_fingerprint();
    struct fingerprint *b = base_fingerprint();
    (void)state;
    for (uint32_t i = 0; i < FINGERPRINT_MAX_CURVE; i++) {
        a->throughput.curve[i] = b->throughput.curve[i] =
            (struct curve_point){.region_bytes = (i + 1) * GIB,
                                 .naive_gbps = KNOWN_F64(100),
                                 .by_group_gbps = KNOWN_F64(9)};
        b->throughput.curve[i].naive_gbps.v = b->throughput.curve[i].by_group_gbps.v = 50;
    }
    a->throughput.curve_count = b->throughput.curve_count = FINGERPRINT_MAX_CURVE;
    assert_int_equal(compare(a, b).count, FINGERPRINT_MAX_DIFFERENCES);
    free(a);
    free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_pairs),
        cmocka_unit_test(every_change_is_named),
        cmocka_unit_test(near_sizes_have_other_texts),
        cmocka_unit_test(half_known_groups),
        cmocka_unit_test(more_than_fits_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
