/* test_memory_choices.c: the choice of a kind of memory and of its use. Some cases use the
 * fingerprint of a real H200 (docs/measurements), whose numbers are known. Others use random kinds
 * of memory that follow the model of translation, so that the right answer can be computed. The
 * seed is printed, and TEST_SEED repeats it. */
#include "tests/unit/support/any_fingerprint.h"
#include "tests/unit/support/placement_fixture.h"

#include "base/units.h"
#include "fingerprint/fingerprint_read.h"
#include "planner/memory_choices.h"
#include "planner/params.h"

#include <jansson.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define H200 "docs/measurements/nvidia-h200-89d5a7b7-2026-11-22/fingerprint-memory.json"

enum { ROUNDS = 500, QUESTIONS = 20 };

static struct fingerprint fp;
static struct memory_answer answer;

static void load(void)
{
    json_t *const json = json_load_file(H200, 0, NULL);
    struct err err = {.text = "no such file"};

    if (!json || fingerprint_from_json(json, &fp, &err) != STATUS_OK)
        fail_msg("%s: %s", H200, err.text);
    json_decref(json);
}

static void ask(uint64_t bytes, enum memory_location location, enum access access, uint32_t element)
{
    const struct memory_request r = {.bytes = bytes,
                                     .access = access,
                                     .location = location,
                                     .element_bytes = element,
                                     .fingerprint_id = "fp0123456789abcdef"};
    struct err err;

    if (memory_choices_rank(&fp, &r, &answer, &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

static const struct memory_choice *find(enum memory_kind kind, enum strategy s)
{
    for (uint32_t i = 0; i < answer.choice_count; i++)
        if (answer.choices[i].kind == kind && answer.choices[i].strategy == s)
            return &answer.choices[i];
    return NULL;
}

static const struct memory_choice *choice(enum memory_kind kind, enum strategy s)
{
    const struct memory_choice *const w = find(kind, s);

    if (!w)
        fail_msg("no choice %s %s", memory_kind_name(kind), strategy_name(s));
    return w;
}

static void assert_gbps(const struct memory_choice *w, double gbps, enum choice_basis basis)
{
    if (!IS_KNOWN(w->gbps) || fabs(w->gbps.v - gbps) > 0.01 * gbps || w->basis != basis)
        fail_msg("%s %s: %g GB/s, %s; expected %g, %s", memory_kind_name(w->kind),
                 strategy_name(w->strategy), w->gbps.v, choice_basis_name(w->basis), gbps,
                 choice_basis_name(basis));
}

/* ---- a real H200 ---- */

/* Asserts that a choice in pinned memory is within 20 % of a measured number. */
static void assert_near(enum strategy s, uint32_t element, double gbps)
{
    const struct memory_choice *const w = choice(MEMORY_HOST_REGISTERED_HUGE, s);

    if (fabs(w->gbps.v - gbps) > 0.2 * gbps)
        fail_msg("%u bytes, %s: %g GB/s; measured %g", element, strategy_name(s), w->gbps.v, gbps);
    assert_true(w->gbps.v > choice(MEMORY_HOST_REGISTERED_HUGE, STRATEGY_NAIVE)->gbps.v);
}

/* Batches in 32 GiB with 8-byte indices, as reach.torch ran them on another H200 (part "scopes" of
 * tests/bench/bench_host_strategies.py). Scopes of 512 MiB were faster than scopes of 1 GiB, 4 GiB
 * and 32 GiB. Predictions are within 20 %, except for 256 Ki sorted rows of 64 bytes. */
static void test_batches_in_host_memory(void **state)
{
    static const struct {
        uint32_t element;
        uint64_t accesses;
        double scopes; /* GB/s in scopes of 512 MiB */
        double sorted; /* GB/s after a sort of the indices, whose time is not included */
    } measured[] = {{64, 2 << 20, 10.0, 11.1},  {64, 1 << 18, 3.7, 0},
                    {128, 2 << 20, 19.4, 22.2}, {128, 1 << 18, 6.6, 6.5},
                    {256, 1 << 20, 23.6, 25.1}, {256, 1 << 18, 12.8, 13.3},
                    {512, 1 << 19, 32.7, 33.3}, {512, 1 << 18, 25.8, 27.0}};
    struct memory_request r = {.bytes = 32 * GIB,
                               .location = LOCATION_HOST,
                               .launch_us = 6,
                               .input_bytes = 8,
                               .fingerprint_id = "fp0123456789abcdef"};
    struct err err;

    (void)state;
    load();
    for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++) {
        r.element_bytes = measured[i].element;
        r.accesses = measured[i].accesses;
        assert_int_equal(memory_choices_rank(&fp, &r, &answer, &err), STATUS_OK);
        const struct memory_choice *const w = choice(MEMORY_HOST_REGISTERED_HUGE, STRATEGY_SCOPES);
        assert_int_equal(w->scope_bytes, 512 * MIB);
        assert_int_equal(w->passes, 64);
        assert_near(STRATEGY_SCOPES, r.element_bytes, measured[i].scopes);
        if (measured[i].sorted > 0)
            assert_near(STRATEGY_SORTED, r.element_bytes, measured[i].sorted);
        assert_int_equal(answer.choices[answer.choice_count - 1].strategy, STRATEGY_SORTED);
        r.accesses = 1 << 15; /* scopes gained less than 25 % */
        assert_int_equal(memory_choices_rank(&fp, &r, &answer, &err), STATUS_OK);
        assert_null(find(MEMORY_HOST_REGISTERED_HUGE, STRATEGY_SCOPES));
    }
    r.accesses = 1000; /* the entries are not read twice */
    assert_int_equal(memory_choices_rank(&fp, &r, &answer, &err), STATUS_OK);
    assert_null(find(MEMORY_HOST_REGISTERED_HUGE, STRATEGY_SCOPES));
    assert_null(find(MEMORY_HOST_REGISTERED_HUGE, STRATEGY_SORTED));
    r.accesses = 2 << 20;
    r.launch_us = 10000; /* launches take longer than the misses */
    assert_int_equal(memory_choices_rank(&fp, &r, &answer, &err), STATUS_OK);
    assert_null(find(MEMORY_HOST_REGISTERED_HUGE, STRATEGY_SCOPES));
    r.accesses = 0; /* the batch is not known */
    assert_int_equal(memory_choices_rank(&fp, &r, &answer, &err), STATUS_OK);
    assert_null(find(MEMORY_HOST_PINNED, STRATEGY_SCOPES));
    assert_null(find(MEMORY_HOST_PINNED, STRATEGY_SORTED));
    r.bytes = 512 * MIB; /* within the reach */
    r.accesses = 2 << 20;
    assert_int_equal(memory_choices_rank(&fp, &r, &answer, &err), STATUS_OK);
    assert_null(find(MEMORY_HOST_PINNED, STRATEGY_SCOPES));
}

/* A fingerprint may come from a file, in which a reach may be less than a byte for each part. */
static void test_batches_of_any_reach(void **state)
{
    const struct memory_request r = {.bytes = 32 * GIB,
                                     .location = LOCATION_HOST,
                                     .accesses = 2 << 20,
                                     .input_bytes = 8,
                                     .fingerprint_id = "fp0123456789abcdef"};
    struct err err;

    (void)state;
    load();
    for (uint64_t reach = 0; reach < 64 * GIB; reach = 2 * reach + 1) {
        for (uint64_t entry = 0; entry < 64 * GIB; entry = 4 * entry + 1) {
            for (uint32_t i = 0; i < fp.memory_count; i++) {
                fp.memory[i].reach_bytes = KNOWN_U64(reach);
                fp.memory[i].entry_bytes = KNOWN_U64(entry);
            }
            assert_int_equal(memory_choices_rank(&fp, &r, &answer, &err), STATUS_OK);
            for (uint32_t i = 0; i < answer.choice_count; i++) {
                const struct maybe_f64 gbps = answer.choices[i].gbps;
                if (IS_KNOWN(gbps) && !(isfinite(gbps.v) && gbps.v > 0))
                    fail_msg("reach %llu, entry %llu: choice %u has %g GB/s",
                             (unsigned long long)reach, (unsigned long long)entry, i, gbps.v);
            }
        }
    }
}

static void test_host(void **state)
{
    (void)state;
    load();
    ask(16 * GIB, LOCATION_HOST, ACCESS_READ, 0);
    assert_ptr_equal(choice(MEMORY_MANAGED_HOST, STRATEGY_NAIVE), &answer.choices[0]);
    assert_gbps(&answer.choices[0], 44.99, CHOICE_MEASURED);
    assert_gbps(choice(MEMORY_HOST_PINNED, STRATEGY_NAIVE), 5.055, CHOICE_MEASURED);
    assert_int_equal(answer.choices[0].sms.v, 4);
    assert_in_range(choice(MEMORY_HOST_PINNED, STRATEGY_NAIVE)->in_flight_bytes.v,
                    50.5056 * 2435 / 1.98 - 1, 50.5056 * 2435 / 1.98);
    /* The probe of windows covered 8 GiB. */
    assert_false(IS_KNOWN(choice(MEMORY_HOST_PINNED, STRATEGY_WINDOWS)->gbps));
    assert_int_equal(choice(MEMORY_HOST_PINNED, STRATEGY_WINDOWS)->basis, CHOICE_NOT_MEASURED);
    assert_int_equal(choice(MEMORY_HOST_PINNED, STRATEGY_WINDOWS)->probed_bytes.v, 8 * GIB);
    assert_null(find(MEMORY_DEVICE, STRATEGY_NAIVE));

    ask(2 * GIB, LOCATION_HOST, ACCESS_READ, 0);
    assert_gbps(choice(MEMORY_HOST_PINNED, STRATEGY_WINDOWS), 50.48, CHOICE_MEASURED);
    assert_int_equal(choice(MEMORY_HOST_PINNED, STRATEGY_WINDOWS)->windows, 24);
    assert_int_equal(choice(MEMORY_HOST_PINNED, STRATEGY_WINDOWS)->window_bytes,
                     (2 * GIB - 1) / 24 + 1);
    assert_int_equal(choice(MEMORY_HOST_PINNED, STRATEGY_WINDOWS)->sms.v, 24);
    assert_gbps(choice(MEMORY_HOST_PINNED, STRATEGY_NAIVE), 7.064, CHOICE_MEASURED);
    assert_ptr_equal(choice(MEMORY_MANAGED_HOST, STRATEGY_NAIVE), &answer.choices[0]);

    /* All kinds have the same speed, so device memory, the usual kind, comes first. */
    ask(512 * MIB, LOCATION_HOST, ACCESS_READ, 0);
    assert_ptr_equal(choice(MEMORY_HOST_PINNED, STRATEGY_NAIVE), &answer.choices[0]);
    assert_null(find(MEMORY_HOST_PINNED, STRATEGY_WINDOWS));
}

/* The time is linear in 1 / bytes between 1 GiB, with 13.17 GB/s, and 2 GiB, with 7.064 GB/s. This
 * also holds between 4.25 GiB, the reach of windows, and 8 GiB. */
static void test_between(void **state)
{
    const double at_1 = 128 / 13.1658, at_2 = 128 / 7.0644;
    const double edge = 128 / 50.473, at_8 = 128 / 8.27973;

    (void)state;
    load();
    ask(3 * GIB / 2, LOCATION_HOST, ACCESS_READ, 0);
    assert_gbps(choice(MEMORY_HOST_PINNED, STRATEGY_NAIVE), 128 / (at_1 + (at_2 - at_1) * 2 / 3),
                CHOICE_BETWEEN);
    assert_gbps(choice(MEMORY_HOST_PINNED, STRATEGY_WINDOWS), 50.5, CHOICE_BETWEEN);
    ask(6 * GIB, LOCATION_HOST, ACCESS_READ, 0);
    assert_gbps(choice(MEMORY_HOST_PINNED, STRATEGY_WINDOWS),
                128 / (edge + (at_8 - edge) * (1 / 4.25 - 1 / 6.0) / (1 / 4.25 - 1 / 8.0)),
                CHOICE_BETWEEN);
    ask(17 * GIB / 4, LOCATION_HOST, ACCESS_READ, 0);
    assert_gbps(choice(MEMORY_HOST_PINNED, STRATEGY_WINDOWS), 50.47, CHOICE_BETWEEN);
}

/* Numbers are not extrapolated from regions within the reach. A choice without a number still comes
 * first if half of its throughput over the largest probed region exceeds every other number. */
static void test_beyond(void **state)
{
    (void)state;
    load();
    ask(64 * GIB, LOCATION_HOST, ACCESS_READ, 0);
    assert_ptr_equal(choice(MEMORY_MANAGED_HOST, STRATEGY_NAIVE), &answer.choices[0]);
    assert_int_equal(answer.choices[0].basis, CHOICE_NOT_MEASURED);
    assert_int_equal(answer.choices[0].gbps.reason, REASON_BEYOND_MEMORY);
    assert_gbps(choice(MEMORY_HOST_VIRTUAL, STRATEGY_NAIVE), 3.876, CHOICE_MEASURED);
    ask(1 * GIB, LOCATION_DEVICE, ACCESS_READ, 0);
    assert_int_equal(choice(MEMORY_MANAGED_DEVICE, STRATEGY_NAIVE)->basis, CHOICE_AT_LEAST);
    assert_ptr_equal(choice(MEMORY_DEVICE, STRATEGY_NAIVE), &answer.choices[0]);
    /* A small region is faster because of the cache, but the ranking ignores this gain. */
    ask(256 * MIB, LOCATION_ANY, ACCESS_READ, 0);
    assert_ptr_equal(choice(MEMORY_DEVICE, STRATEGY_NAIVE), &answer.choices[0]);
    assert_true(choice(MEMORY_MANAGED_DEVICE, STRATEGY_NAIVE)->gbps.v == answer.choices[0].gbps.v);
    ask(100 * GIB, LOCATION_ANY, ACCESS_READ, 0);
    assert_true(
        choice(MEMORY_MANAGED_DEVICE, STRATEGY_NAIVE) >
        choice(
            MEMORY_DEVICE,
            STRATEGY_NAIVE)); /* a choice with a known number comes before a choice without one */
    assert_true(choice(MEMORY_MANAGED_DEVICE, STRATEGY_NAIVE)->probed_gbps.v > 4000);
}

/* Within the reach, the measured number of this kind of access counts. Beyond the reach, a miss
 * takes as long as a miss of a read. */
static void test_other_accesses(void **state)
{
    (void)state;
    load();
    ask(256 * MIB, LOCATION_HOST, ACCESS_WRITE, 32);
    assert_gbps(choice(MEMORY_HOST_PINNED, STRATEGY_NAIVE), 18.78, CHOICE_BETWEEN);
    ask(16 * GIB, LOCATION_HOST, ACCESS_WRITE, 32);
    assert_gbps(choice(MEMORY_HOST_PINNED, STRATEGY_NAIVE), 32 / (128 / 5.05491), CHOICE_SCALED);
    ask(16 * GIB, LOCATION_HOST, ACCESS_READ, 4);
    assert_int_equal(answer.transaction_bytes, 32);
    assert_gbps(choice(MEMORY_HOST_PINNED, STRATEGY_NAIVE), 32 / (128 / 5.05491), CHOICE_SCALED);
    ask(256 * MIB, LOCATION_HOST, ACCESS_READ, 512);
    assert_gbps(choice(MEMORY_HOST_PINNED, STRATEGY_NAIVE), 50.5, CHOICE_SCALED);
}

/* Adds rows to pinned memory: 64 bytes are limited by requests, and 256 bytes by the link. */
static void add_rows(void)
{
    struct memory_facts *const m = &fp.memory[MEMORY_HOST_PINNED - 1];

    m->row_count = 3;
    m->rows[0] = (struct row_rate){
        ACCESS_READ, 64, KNOWN_F64(20), KNOWN_F64(64 / (0.9 * 128 / 5.05491)), {{0}, {0}}};
    m->rows[1] = (struct row_rate){
        ACCESS_READ, 256, KNOWN_F64(50), KNOWN_F64(256 / (1.1 * 128 / 5.05491)), {{0}, {0}}};
    m->rows[2] = (struct row_rate){ACCESS_ATOMIC, 256, KNOWN_F64(30), KNOWN_F64(8), {{0}, {0}}};
}

/* Out of reach, a row takes the time of a read of 128 bytes, times the ratio over the largest
 * region. */
static void test_rows(void **state)
{
    const double at_2 = 128 / 7.0644;

    (void)state;
    load();
    add_rows();
    ask(256 * MIB, LOCATION_HOST, ACCESS_READ, 64);
    assert_gbps(choice(MEMORY_HOST_PINNED, STRATEGY_NAIVE), 20, CHOICE_BETWEEN);
    ask(16 * GIB, LOCATION_HOST, ACCESS_READ, 64);
    assert_gbps(choice(MEMORY_HOST_PINNED, STRATEGY_NAIVE), 64 / (0.9 * 128 / 5.05491),
                CHOICE_MEASURED);
    ask(2 * GIB, LOCATION_HOST, ACCESS_READ, 64);
    assert_gbps(choice(MEMORY_HOST_PINNED, STRATEGY_NAIVE), 64 / (0.9 * at_2), CHOICE_BETWEEN);
    ask(2 * GIB, LOCATION_HOST, ACCESS_READ, 192);
    assert_gbps(choice(MEMORY_HOST_PINNED, STRATEGY_NAIVE), 192 / (1.05 * at_2), CHOICE_BETWEEN);
    ask(2 * GIB, LOCATION_HOST, ACCESS_READ, 512);
    assert_gbps(choice(MEMORY_HOST_PINNED, STRATEGY_NAIVE), 512 / (1.1 * at_2), CHOICE_SCALED);
    ask(2 * GIB, LOCATION_HOST, ACCESS_READ, 8192);
    assert_gbps(choice(MEMORY_HOST_PINNED, STRATEGY_NAIVE), 50, CHOICE_SCALED);
    ask(16 * GIB, LOCATION_HOST, ACCESS_ATOMIC, 256);
    assert_gbps(choice(MEMORY_HOST_PINNED, STRATEGY_NAIVE), 8, CHOICE_MEASURED);
    ask(16 * GIB, LOCATION_HOST, ACCESS_ATOMIC, 64); /* shorter atomics have no ratio */
    assert_gbps(choice(MEMORY_HOST_PINNED, STRATEGY_NAIVE), 64 / (128 / 5.05491), CHOICE_SCALED);
}

/* Pinned memory of the two GPUs of docs/measurements/host-tables-h200-3bfcf8cf-2026-11-27 and
 * host-tables-h100-bfc809c9-2026-11-27: the fingerprint, and the GB/s of kernels of reach.torch
 * over 32 GiB. The rows of 256 bytes give the factor. */
struct far_pinned {
    double plateau, curve[5]; /* GB/s from 1792 MiB on */
    double rows[4][2];        /* GB/s of 64, 256, 512 and 1024 bytes */
    double gathered[5];       /* GB/s of 64 to 1024 bytes */
    double added, pooled;     /* additions of 256 bytes, and bags of 32 rows of 128 bytes */
};
static const struct far_pinned far_pinned[] = {
    {51.18,
     {8.20457, 6.12965, 5.29419, 4.81073, 4.61621},
     {{43.3, 2.40117}, {51.3, 9.81684}, {51.1, 19.6763}, {50.9, 39.1875}},
     {2.0, 3.9, 7.5, 14.7, 28.7},
     7.5,
     4.4},
    {50.5,
     {7.76617, 5.86911, 5.16725, 4.66542, 4.46192},
     {{42.5, 2.2957}, {50.3, 9.35249}, {50.5, 18.5992}, {50.3, 36.9403}},
     {1.9, 3.7, 7.2, 14.1, 27.5},
     7.2,
     4.2},
};

static void put_far_pinned(const struct far_pinned *of)
{
    struct memory_facts *const m = &fp.memory[MEMORY_HOST_REGISTERED_HUGE - 1];

    load();
    m->plateau_gbps = KNOWN_F64(of->plateau);
    m->probed_bytes = KNOWN_U64(28 * GIB);
    m->curve_count = 0;
    for (uint32_t i = 0; i < 5; i++)
        m->curve[m->curve_count++] = (struct curve_point){.region_bytes = (28 * GIB) >> (4 - i),
                                                          .naive_gbps = KNOWN_F64(of->curve[i])};
    m->row_count = 0;
    for (uint32_t i = 0; i < 4; i++)
        m->rows[m->row_count++] = (struct row_rate){.access = ACCESS_READ,
                                                    .transaction_bytes = i == 0 ? 64 : 128U << i,
                                                    .plateau_gbps = KNOWN_F64(of->rows[i][0]),
                                                    .probed_gbps = KNOWN_F64(of->rows[i][1])};
    m->rows[m->row_count] = m->rows[1];
    m->rows[m->row_count++].access = ACCESS_ATOMIC;
}

/* Returns the predicted GB/s over 32 GiB, and asserts the basis. */
static double predict_far(enum access access, uint32_t element, double input, double written,
                          enum choice_basis basis)
{
    const struct memory_request r = {.bytes = 32 * GIB,
                                     .access = access,
                                     .element_bytes = element,
                                     .input_bytes = input,
                                     .written_bytes = written,
                                     .fingerprint_id = "fp0123456789abcdef"};
    struct err err;

    assert_int_equal(memory_choices_rank(&fp, &r, &answer, &err), STATUS_OK);
    const struct memory_choice *const w = choice(MEMORY_HOST_REGISTERED_HUGE, STRATEGY_NAIVE);
    assert_int_equal(w->basis, basis);
    return w->gbps.v;
}

/* All operations are predicted within 10 %. Without the factor, gathers of 256 bytes or more are
 * predicted 28 % too fast. */
static void test_output_slows_page_walks(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof(far_pinned) / sizeof(far_pinned[0]); k++) {
        const struct far_pinned *const of = &far_pinned[k];
        struct memory_facts *const m = &fp.memory[MEMORY_HOST_REGISTERED_HUGE - 1];
        put_far_pinned(of);
        assert_true(predict_far(ACCESS_READ, 256, 8, 0, CHOICE_EXTRAPOLATED) >
                    1.28 * of->gathered[2]);
        m->written_factor = KNOWN_F64(of->gathered[2] / of->rows[1][1]);
        for (uint32_t i = 0; i < 5; i++) {
            const double gbps = predict_far(ACCESS_READ, 64U << i, 8, 0, CHOICE_EXTRAPOLATED);
            if (fabs(gbps / of->gathered[i] - 1) > 0.1)
                fail_msg("%u bytes: %g GB/s; measured %g", 64U << i, gbps, of->gathered[i]);
        }
        assert_true(fabs(predict_far(ACCESS_ATOMIC, 256, 264, 0, CHOICE_EXTRAPOLATED) / of->added -
                         1) < 0.1);
        assert_true(
            fabs(predict_far(ACCESS_READ, 128, 8, 4, CHOICE_EXTRAPOLATED) / of->pooled - 1) < 0.1);
    }
}

/* The factor is measured over the largest region with rows of 256 bytes. Its part is in proportion
 * to the bytes of a region, and to the share of the L2 that output takes from lines of page
 * tables. */
static void test_output_of_other_rows(void **state)
{
    struct memory_facts *const m = &fp.memory[MEMORY_HOST_PINNED - 1];
    const double at_2 = 128 / 7.0644, at_16 = 128 / 5.05491;

    (void)state;
    load();
    add_rows();
    m->written_factor = KNOWN_F64(0.8); /* accesses take 1.25 times as long */
    ask(16 * GIB, LOCATION_HOST, ACCESS_READ, 256);
    assert_gbps(choice(MEMORY_HOST_PINNED, STRATEGY_NAIVE), 256 / (1.25 * 1.1 * at_16),
                CHOICE_BETWEEN);
    assert_non_null(strstr(choice(MEMORY_HOST_PINNED, STRATEGY_NAIVE)->why,
                           ", with 256 bytes of input and output for each access;"));
    ask(16 * GIB, LOCATION_HOST, ACCESS_READ, 0); /* 1/2 of the lines, not 2/3 */
    assert_gbps(choice(MEMORY_HOST_PINNED, STRATEGY_NAIVE), 128 / (1.1875 * at_16), CHOICE_BETWEEN);
    ask(2 * GIB, LOCATION_HOST, ACCESS_READ, 0);
    assert_gbps(choice(MEMORY_HOST_PINNED, STRATEGY_NAIVE), 128 / ((1 + 0.1875 / 8) * at_2),
                CHOICE_BETWEEN);
    ask(16 * GIB, LOCATION_HOST, ACCESS_ATOMIC, 256); /* atomics have no output */
    assert_gbps(choice(MEMORY_HOST_PINNED, STRATEGY_NAIVE), 8, CHOICE_MEASURED);
    ask(256 * MIB, LOCATION_HOST, ACCESS_READ, 0); /* within the reach */
    assert_gbps(choice(MEMORY_HOST_PINNED, STRATEGY_NAIVE), 50.5056, CHOICE_MEASURED);
    assert_null(strstr(choice(MEMORY_HOST_PINNED, STRATEGY_NAIVE)->why, "output"));
}

/* Beyond 16 GiB, the time is on the line in 1 / bytes through 8 and 16 GiB. */
static void test_extrapolated(void **state)
{
    struct memory_facts *m;
    double at_8 = 0;
    const double at_16 = 128 / 5.05491;

    (void)state;
    load();
    m = &fp.memory[MEMORY_HOST_PINNED - 1];
    for (uint32_t i = 0; i < m->curve_count; i++)
        if (m->curve[i].region_bytes == 8 * GIB)
            at_8 = 128 / m->curve[i].naive_gbps.v;
    ask(32 * GIB, LOCATION_HOST, ACCESS_READ, 0);
    assert_gbps(choice(MEMORY_HOST_PINNED, STRATEGY_NAIVE), 128 / (at_16 + (at_16 - at_8) / 2),
                CHOICE_EXTRAPOLATED);
    ask(65 * GIB, LOCATION_HOST, ACCESS_READ, 0);
    assert_int_equal(choice(MEMORY_HOST_PINNED, STRATEGY_NAIVE)->basis, CHOICE_NOT_MEASURED);
    /* The curve of managed memory falls only between 12 and 16 GiB. */
    ask(32 * GIB, LOCATION_HOST, ACCESS_READ, 0);
    assert_int_equal(choice(MEMORY_MANAGED_HOST, STRATEGY_NAIVE)->basis, CHOICE_NOT_MEASURED);
}

/* The CPU gathers from half and from all of 16 GiB at different speeds, and from up to 64 GiB
 * at the speed of 16 GiB. It does not write. */
static void test_gathered_by_the_cpu(void **state)
{
    struct memory_facts *m;

    (void)state;
    load();
    m = &fp.memory[MEMORY_HOST_GATHERED - 1];
    ask(16 * GIB, LOCATION_HOST, ACCESS_READ, 0);
    assert_null(find(MEMORY_HOST_GATHERED, STRATEGY_CPU_GATHER)); /* not measured */
    m->probed_bytes = KNOWN_U64(16 * GIB);
    m->plateau_gbps = KNOWN_F64(16);
    m->reach_bytes = m->onset_bytes = NOT_OBSERVABLE_U64(REASON_BEYOND_MEMORY);
    m->curve_count = 2;
    m->curve[0] = (struct curve_point){.region_bytes = 8 * GIB, .naive_gbps = KNOWN_F64(16)};
    m->curve[1] = (struct curve_point){.region_bytes = 16 * GIB, .naive_gbps = KNOWN_F64(15)};
    m->row_count = 2;
    m->rows[0] = (struct row_rate){ACCESS_READ, 64, KNOWN_F64(11), KNOWN_F64(10.5), {{0}, {0}}};
    m->rows[1] = (struct row_rate){ACCESS_READ, 256, KNOWN_F64(19), KNOWN_F64(18), {{0}, {0}}};
    ask(16 * GIB, LOCATION_HOST, ACCESS_READ, 0);
    assert_gbps(choice(MEMORY_HOST_GATHERED, STRATEGY_CPU_GATHER), 15, CHOICE_MEASURED);
    assert_false(IS_KNOWN(choice(MEMORY_HOST_GATHERED, STRATEGY_CPU_GATHER)->sms));
    assert_false(IS_KNOWN(choice(MEMORY_HOST_GATHERED, STRATEGY_CPU_GATHER)->in_flight_bytes));
    assert_true(choice(MEMORY_HOST_GATHERED, STRATEGY_CPU_GATHER) <
                choice(MEMORY_HOST_PINNED, STRATEGY_NAIVE));
    assert_null(find(MEMORY_HOST_GATHERED, STRATEGY_NAIVE));
    ask(12 * GIB, LOCATION_HOST, ACCESS_READ, 0);
    assert_gbps(choice(MEMORY_HOST_GATHERED, STRATEGY_CPU_GATHER), 15.32, CHOICE_BETWEEN);
    ask(64 * GIB, LOCATION_HOST, ACCESS_READ, 0);
    assert_gbps(choice(MEMORY_HOST_GATHERED, STRATEGY_CPU_GATHER), 15, CHOICE_EXTRAPOLATED);
    ask(65 * GIB, LOCATION_HOST, ACCESS_READ, 0);
    assert_false(IS_KNOWN(choice(MEMORY_HOST_GATHERED, STRATEGY_CPU_GATHER)->gbps));
    ask(16 * GIB, LOCATION_HOST, ACCESS_READ, 64);
    assert_gbps(choice(MEMORY_HOST_GATHERED, STRATEGY_CPU_GATHER), 10.5, CHOICE_MEASURED);
    ask(16 * GIB, LOCATION_HOST, ACCESS_READ, 192);
    assert_gbps(choice(MEMORY_HOST_GATHERED, STRATEGY_CPU_GATHER),
                192 / ((128 / 15.0 + 256 / 18.0) / 2), CHOICE_BETWEEN);
    ask(16 * GIB, LOCATION_HOST, ACCESS_READ, 1024);
    assert_gbps(choice(MEMORY_HOST_GATHERED, STRATEGY_CPU_GATHER), 19, CHOICE_SCALED);
    ask(16 * GIB, LOCATION_HOST, ACCESS_ATOMIC, 0);
    assert_null(find(MEMORY_HOST_GATHERED, STRATEGY_CPU_GATHER));
}

/* A limit of host memory that hides the reach is named, with the amount. */
static void test_cut_by_a_limit(void **state)
{
    struct memory_facts *m;

    (void)state;
    load();
    m = &fp.memory[MEMORY_HOST_PINNED - 1];
    while (m->curve[m->curve_count - 1].region_bytes > 256 * MIB)
        m->curve_count--;
    m->probed_bytes = KNOWN_U64(256 * MIB);
    m->reach_bytes = m->onset_bytes = UNKNOWN_U64(REASON_NO_HOST_MEMORY);
    ask(512 * MIB, LOCATION_HOST, ACCESS_READ, 0);
    assert_int_equal(choice(MEMORY_HOST_PINNED, STRATEGY_NAIVE)->gbps.reason,
                     REASON_NO_HOST_MEMORY);
    assert_int_equal(choice(MEMORY_HOST_PINNED, STRATEGY_NAIVE)->basis, CHOICE_NOT_MEASURED);
    assert_non_null(strstr(choice(MEMORY_HOST_PINNED, STRATEGY_NAIVE)->why,
                           "because only 256 MiB of host memory were allowed"));
}

/* Predicts the throughput over an inner region of a curve from its other points, in GB/s. */
static double predict_left_out(struct memory_facts *m, uint32_t i)
{
    const struct memory_facts whole = *m;
    const struct memory_choice *w;

    memmove(&m->curve[i], &m->curve[i + 1], (--m->curve_count - i) * sizeof(m->curve[0]));
    ask(whole.curve[i].region_bytes, LOCATION_ANY, ACCESS_READ, 0);
    w = choice(m->kind, STRATEGY_NAIVE);
    *m = whole;
    assert_true(IS_KNOWN(w->gbps));
    return w->gbps.v;
}

/* Points that are left out are predicted from the others, on real curves. */
static void test_left_out(void **state)
{
    double sum = 0, worst = 0;
    uint32_t count = 0;

    (void)state;
    load();
    for (uint32_t k = 0; k < fp.memory_count; k++) {
        struct memory_facts *const m = &fp.memory[k];
        for (uint32_t i = 1; memory_kind_is_host(m->kind) && i + 1 < m->curve_count; i++) {
            const double real = m->curve[i].naive_gbps.v;
            const double off = fabs(predict_left_out(m, i) / real - 1);
            sum += off;
            worst = fmax(worst, off);
            count++;
        }
    }
    printf("# %u points left out: off by %.1f %% on average, %.1f %% at most\n", count,
           sum / count * 100, worst * 100);
    assert_true(sum / count < 0.03 && worst < 0.13);
}

/* The answers of plan and memory never contradict each other. */
static void test_device_is_the_plan(void **state)
{
    static const uint64_t sizes[] = {1, GIB, 64 * GIB, 80 * GIB, 137 * GIB};
    static struct strategy_answer plan;
    struct err err;

    (void)state;
    load();
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        const struct job_request job = {.bytes = sizes[i]};
        uint32_t at = 0;
        ask(sizes[i], LOCATION_ANY, ACCESS_READ, 0);
        assert_int_equal(strategy_plan(&fp, &job, &plan, &err), STATUS_OK);
        for (int k = 0; k < STRATEGY_COUNT; k++) {
            const struct strategy_option *const o = &plan.options[k];
            if (!o->possible || o->strategy > STRATEGY_WINDOWS)
                continue;
            while (answer.choices[at].kind != MEMORY_DEVICE)
                at++;
            assert_int_equal(answer.choices[at].strategy, o->strategy);
            assert_true(answer.choices[at].gbps.v == o->gbps.v);
            assert_string_equal(answer.choices[at].why, o->why);
            at++;
        }
    }
}

static void assert_refused(uint64_t bytes, enum memory_location location, enum status s,
                           const char *text)
{
    const struct memory_request r = {.bytes = bytes, .location = location};
    struct err err;

    assert_int_equal(memory_choices_rank(&fp, &r, &answer, &err), s);
    if (!strstr(err.text, text))
        fail_msg("%s lacks %s", err.text, text);
    if (s == STATUS_TOO_MANY_BYTES)
        assert_string_equal(err.field, "bytes");
}

/* A location has its recorded size. An older recording does not contain the size of the host. */
static void test_too_many(void **state)
{
    (void)state;
    load();
    assert_refused(900 * 1024 * GIB, LOCATION_DEVICE, STATUS_TOO_MANY_BYTES, "139.8");
    assert_int_equal(fp.conditions.host_memory_bytes.known, MAYBE_UNKNOWN);
    ask(900 * 1024 * GIB, LOCATION_HOST, ACCESS_READ, 0);
    assert_non_null(strstr(answer.reason, "not recorded"));
    fp.conditions.host_memory_bytes = KNOWN_U64(125 * GIB);
    assert_refused(125 * GIB + 1, LOCATION_HOST, STATUS_TOO_MANY_BYTES, "134217728001 bytes");
    assert_refused(fp.gpu.memory_bytes + 125 * GIB + 1, LOCATION_ANY, STATUS_TOO_MANY_BYTES,
                   "together");
    ask(fp.gpu.memory_bytes + 125 * GIB, LOCATION_ANY, ACCESS_READ, 0);
    assert_non_null(find(MEMORY_MANAGED_HOST, STRATEGY_NAIVE));
    assert_null(find(MEMORY_HOST_PINNED, STRATEGY_NAIVE));
    assert_null(find(MEMORY_DEVICE, STRATEGY_NAIVE));
    assert_true(answer.left_out_count >= 5);
    ask(125 * GIB, LOCATION_HOST, ACCESS_READ, 0);
    assert_refused(0, LOCATION_HOST, STATUS_INVALID_ARGUMENT, "bytes must be at least 1");
    assert_null(
        strstr(answer.reason, "measure --depth")); /* the size was measured at depth memory */
    fp.memory_count = 0;
    assert_refused(GIB, LOCATION_HOST, STATUS_NOT_APPLICABLE,
                   "has no measured memory at this location");
}

/* The choices in one kind of memory are its choices among all kinds, in the same order. */
static void assert_one_kind(uint64_t bytes, enum memory_kind kind)
{
    struct memory_request r = {.bytes = bytes, .fingerprint_id = "fp0123456789abcdef"};
    struct memory_answer one;
    struct err err;
    uint32_t n = 0;

    ask(bytes, LOCATION_ANY, ACCESS_READ, 0);
    r.kind = (uint32_t)kind + 1;
    if (memory_choices_rank(&fp, &r, &one, &err) != STATUS_OK) {
        assert_null(find(kind, STRATEGY_NAIVE));
        assert_non_null(strstr(err.text, "no measured memory of this kind"));
        return;
    }
    for (uint32_t i = 0; i < answer.choice_count; i++) {
        if (answer.choices[i].kind != kind)
            continue;
        assert_int_equal(one.choices[n].kind, kind);
        assert_int_equal(one.choices[n].strategy, answer.choices[i].strategy);
        assert_true(one.choices[n].gbps.v == answer.choices[i].gbps.v);
        assert_string_equal(one.choices[n].why, answer.choices[i].why);
        n++;
    }
    assert_int_equal(one.choice_count, n);
    assert_int_equal(one.left_out_count, 0);
}

/* For a table of 2 GiB that is already in pinned memory, the first choice is windows, and not a
 * faster kind of memory. */
static void test_one_kind(void **state)
{
    static const uint64_t sizes[] = {256 * MIB, 2 * GIB, 16 * GIB, 100 * GIB};
    struct memory_request r = {
        .bytes = 2 * GIB, .kind = MEMORY_HOST_PINNED + 1, .fingerprint_id = "fp0123456789abcdef"};
    struct err err;

    (void)state;
    load();
    assert_string_equal(param_find(PLANNER_MEMORY, "kind")->word(r.kind), "host-pinned");
    assert_int_equal(memory_choices_rank(&fp, &r, &answer, &err), STATUS_OK);
    assert_int_equal(answer.choices[0].strategy, STRATEGY_WINDOWS);
    assert_gbps(&answer.choices[0], 50.48, CHOICE_MEASURED);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        for (enum memory_kind kind = MEMORY_DEVICE; kind < MEMORY_KIND_COUNT; kind++)
            assert_one_kind(sizes[i], kind);
    }
    r.location = LOCATION_DEVICE; /* pinned memory is not at this location */
    assert_int_equal(memory_choices_rank(&fp, &r, &answer, &err), STATUS_NOT_APPLICABLE);
}

/* ---- properties of all answers ---- */

static uint64_t first_seed(void)
{
    const char *text = getenv("TEST_SEED");
    const uint64_t seed = text ? strtoull(text, NULL, 10) : (uint64_t)time(NULL);

    printf("# TEST_SEED=%" PRIu64 "\n", seed);
    return seed;
}

/* Returns the time of an access of 128 bytes over this region in ns, in a model of translation by
 * two tables. Each probed region has twice the size of the previous one, and the gap around the
 * cliff is halved. */
struct model {
    double memory_ns, miss_ns;
    uint64_t reach, windows_reach, probed;
};

static double model_ns(const struct model *m, uint64_t reach, uint64_t bytes)
{
    const double miss = bytes > reach ? m->miss_ns * (1 - (double)reach / (double)bytes) : 0;

    return fmax(m->memory_ns, miss);
}

static void add_point(struct memory_facts *f, const struct model *m, uint64_t bytes, bool windows)
{
    uint32_t i = f->curve_count;

    if (bytes == 0 || bytes > m->probed || f->curve_count == FINGERPRINT_MAX_MEMORY_CURVE)
        return;
    while (i > 0 && f->curve[i - 1].region_bytes >= bytes)
        i--;
    if (i < f->curve_count && f->curve[i].region_bytes == bytes)
        return;
    memmove(&f->curve[i + 1], &f->curve[i], (f->curve_count++ - i) * sizeof(f->curve[0]));
    f->curve[i] = (struct curve_point){.region_bytes = bytes,
                                       .naive_gbps = KNOWN_F64(128 / model_ns(m, m->reach, bytes)),
                                       .by_group_gbps = UNKNOWN_F64(REASON_NOT_MEASURED),
                                       .by_sm_gbps = UNKNOWN_F64(REASON_NOT_MEASURED),
                                       .windows = 1};
    if (windows) {
        f->curve[i].by_group_gbps = KNOWN_F64(128 / model_ns(m, m->windows_reach, bytes));
        f->curve[i].windows = 8;
    }
}

/* Returns the size of the largest region that is read at 90 % of the plateau, or 0 if all probed
 * regions are. */
static uint64_t edge_of(const struct model *m, uint64_t reach)
{
    const double slow = m->memory_ns / 0.9;
    const double bytes = m->miss_ns > slow ? (double)reach / (1 - slow / m->miss_ns) : INFINITY;

    return bytes < (double)m->probed ? (uint64_t)bytes : 0;
}

static void set_edge(uint64_t bytes, struct maybe_u64 *reach, struct maybe_u64 *onset)
{
    *reach = bytes > 0 ? KNOWN_U64(bytes) : NOT_OBSERVABLE_U64(REASON_BEYOND_MEMORY);
    *onset = bytes > 0 ? KNOWN_U64(bytes + bytes / 16) : *reach;
}

static void random_kind(struct rng *r, struct memory_facts *f, struct model *m)
{
    const double gbps = 5 + 400 * rng_unit(r);

    *m = (struct model){.memory_ns = 128 / gbps,
                        .miss_ns = 128 / gbps * pow(2, 6 * rng_unit(r) - 1),
                        .reach = (1 + rng_below(r, 63)) * 32 * MIB,
                        .probed = GIB << rng_below(r, 6)};
    if (f->kind == MEMORY_HOST_GATHERED)
        m->miss_ns = 0; /* the CPU reads all regions at the same speed */
    m->windows_reach = m->reach * (1 + rng_below(r, 8));
    f->probed_bytes = KNOWN_U64(m->probed);
    f->plateau_gbps = KNOWN_F64(gbps);
    f->sms_to_fill = KNOWN_U32(1 + (uint32_t)rng_below(r, 32));
    set_edge(edge_of(m, m->reach), &f->reach_bytes, &f->onset_bytes);
    set_edge(edge_of(m, m->windows_reach), &f->windows_reach_bytes, &f->windows_onset_bytes);
    for (uint64_t bytes = m->probed; bytes >= 16 * MIB; bytes /= 2)
        add_point(f, m, bytes, IS_KNOWN(f->reach_bytes) && bytes >= 2 * f->reach_bytes.v);
    if (IS_KNOWN(f->reach_bytes)) {
        add_point(f, m, f->reach_bytes.v, false);
        add_point(f, m, f->onset_bytes.v, false);
    }
}

static void check_order(void)
{
    for (uint32_t i = 1; i < answer.choice_count; i++) {
        const struct memory_choice *const w = &answer.choices[i];
        assert_true(w->doubt >= (w - 1)->doubt);
        if (w->doubt == (w - 1)->doubt)
            assert_true(w->rank_gbps <= (w - 1)->rank_gbps * (1 + STRATEGY_WORTH));
        assert_true(IS_KNOWN(w->gbps) ==
                    (w->basis != CHOICE_NOT_MEASURED && w->basis != CHOICE_AT_LEAST));
        assert_true(w->why[0] != '\0' && w->why[strlen(w->why) - 1] == '.');
    }
}

/* Checks one choice. `worst` is the largest error of a prediction so far. */
static void check_choice(const struct memory_choice *w, const struct memory_facts *f,
                         const struct model *m, uint64_t bytes, double *worst)
{
    const uint64_t reach = w->strategy == STRATEGY_WINDOWS ? m->windows_reach : m->reach;
    const double real = 128 / model_ns(m, reach, bytes);

    assert_true(w->probed_bytes.v <= f->probed_bytes.v);
    assert_true(!IS_KNOWN(w->gbps) || w->basis != CHOICE_EXTRAPOLATED ||
                (bytes > w->probed_bytes.v && bytes <= 4 * w->probed_bytes.v));
    assert_true(IS_KNOWN(w->gbps) || bytes > w->probed_bytes.v);
    if (!IS_KNOWN(w->gbps))
        return;
    *worst = fmax(*worst, fabs(w->gbps.v / real - 1));
    assert_true(w->gbps.v <= f->plateau_gbps.v * 1.0001);
    assert_true(w->basis != CHOICE_MEASURED || fp.gpu.origin != ORIGIN_SIMULATED);
    if ((w->basis == CHOICE_MEASURED || w->basis == CHOICE_SIMULATED) &&
        fabs(w->gbps.v / real - 1) > 0.03)
        fail_msg("measured %g, predicted %g over %" PRIu64, real, w->gbps.v, bytes);
}

static void test_random_kinds(void **state)
{
    struct rng r = {.state = first_seed()};
    struct model models[MEMORY_PEER];
    double naive = 0, windows = 0;

    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        placement_make_empty(&fp);
        fp.memory_count = MEMORY_PEER - 1;
        for (uint32_t k = 0; k < fp.memory_count; k++) {
            fp.memory[k].kind = (enum memory_kind)(k + 1);
            random_kind(&r, &fp.memory[k], &models[k]);
        }
        for (int q = 0; q < QUESTIONS; q++) {
            const uint64_t bytes = 1 + rng_below(&r, 64 * GIB >> rng_below(&r, 12));
            ask(bytes, LOCATION_ANY, ACCESS_READ, 0);
            check_order();
            for (uint32_t k = 0; k < answer.choice_count; k++) {
                const struct memory_choice *const w = &answer.choices[k];
                check_choice(w, &fp.memory[w->kind - 1], &models[w->kind - 1], bytes,
                             w->windows > 0 ? &windows : &naive);
            }
        }
    }
    printf("# naive off by %.1f %% at most, windows by %.1f %%\n", naive * 100, windows * 100);
    assert_true(naive < 0.12 && windows < 0.15);
}

/* Returns the capacity of a kind, from the fingerprint alone. */
static struct maybe_u64 real_capacity(enum memory_kind kind, const char *peer_uuid)
{
    const struct maybe_u64 host = fp.conditions.host_memory_bytes;

    if (kind == MEMORY_PEER) {
        for (uint32_t i = 0; i < fp.memory_count; i++)
            if (strcmp(fp.memory[i].peer_uuid, peer_uuid) == 0)
                return fp.memory[i].peer_memory_bytes;
        fail_msg("no peer %s", peer_uuid);
    }
    if (!memory_kind_is_host(kind))
        return fp.gpu.memory_bytes > 0 ? KNOWN_U64(fp.gpu.memory_bytes)
                                       : UNKNOWN_U64(REASON_NOT_REPORTED);
    return kind == MEMORY_MANAGED_HOST && IS_KNOWN(host) ? KNOWN_U64(host.v + fp.gpu.memory_bytes)
                                                         : host;
}

/* Returns the largest probed size of host memory, without ranges that may repeat a handle. */
static uint64_t most_probed(void)
{
    static const enum memory_kind kinds[] = {MEMORY_HOST_PINNED,     MEMORY_MANAGED_HOST,
                                             MEMORY_HOST_REGISTERED, MEMORY_HOST_REGISTERED_HUGE,
                                             MEMORY_HOST_PAGEABLE,   MEMORY_HOST_FILE,
                                             MEMORY_HOST_GATHERED};
    uint64_t most = 0;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds) && fp.memory_count > 0; i++)
        if (fp.memory[kinds[i] - 1].probed_bytes.v > most)
            most = fp.memory[kinds[i] - 1].probed_bytes.v;
    return most;
}

/* The capacity of a choice is unknown or large enough, and an unknown capacity has a reason. */
static void check_capacities(uint64_t bytes)
{
    for (uint32_t k = 0; k < answer.choice_count; k++) {
        const struct memory_choice *const w = &answer.choices[k];
        const struct maybe_u64 real = real_capacity(w->kind, w->peer_uuid);
        assert_int_equal(w->capacity_bytes.known, real.known);
        assert_int_equal(w->capacity_bytes.reason, real.reason);
        assert_true(w->capacity_bytes.v == real.v);
        assert_true(!IS_KNOWN(real) || (bytes <= real.v && w->doubt == 0));
        assert_true(IS_KNOWN(real) || w->doubt > 0 ||
                    (memory_kind_is_host(w->kind) && bytes <= most_probed()));
        assert_true((w->doubt == 2) == (w->kind == MEMORY_PEER && !IS_KNOWN(real)));
    }
    if (answer.choices[0].doubt > 0)
        assert_non_null(strstr(answer.reason, "not recorded"));
}

/* The fingerprint has a peer of an H200 whose size was not recorded. */
static void test_peer(void **state)
{
    struct memory_facts *const peer = &fp.memory[MEMORY_PEER - 1];

    (void)state;
    load();
    fp.memory_count = MEMORY_PEER;
    peer[0] = fp.memory[MEMORY_MANAGED_HOST - 1];
    peer->kind = MEMORY_PEER;
    (void)snprintf(peer->peer_uuid, sizeof(peer->peer_uuid), "GPU-1");
    for (uint32_t i = 0; i < peer->curve_count; i++)
        peer->curve[i].naive_gbps = peer->plateau_gbps = KNOWN_F64(375);
    peer->reach_bytes = peer->onset_bytes = NOT_OBSERVABLE_U64(REASON_BEYOND_MEMORY);
    fp.conditions.host_memory_bytes = KNOWN_U64(300 * GIB);

    ask(380 * GIB, LOCATION_ANY, ACCESS_READ, 0);
    assert_int_equal(answer.choices[0].kind, MEMORY_MANAGED_HOST);
    assert_int_equal(answer.choices[answer.choice_count - 1].kind, MEMORY_PEER);
    assert_int_equal(answer.choices[answer.choice_count - 1].capacity_bytes.reason,
                     REASON_NOT_MEASURED);
    peer->peer_memory_bytes = KNOWN_U64(fp.gpu.memory_bytes);
    ask(380 * GIB, LOCATION_ANY, ACCESS_READ, 0);
    assert_int_equal(answer.choices[0].kind, MEMORY_MANAGED_HOST);
    assert_null(find(MEMORY_PEER, STRATEGY_NAIVE));
    assert_string_equal(answer.left_out[answer.left_out_count - 1].peer_uuid, "GPU-1");
    assert_non_null(strstr(answer.left_out[answer.left_out_count - 1].why, "139.8 GiB"));
    ask(fp.gpu.memory_bytes, LOCATION_ANY, ACCESS_READ, 0);
    assert_non_null(find(MEMORY_PEER, STRATEGY_NAIVE));
    /* A peer has more memory than the GPU and its host together. */
    peer->peer_memory_bytes = KNOWN_U64(900 * GIB);
    ask(900 * GIB, LOCATION_ANY, ACCESS_READ, 0);
    assert_int_equal(answer.choices[0].kind, MEMORY_PEER);
    assert_int_equal(answer.choice_count, 1);
    assert_refused(900 * GIB + 1, LOCATION_ANY, STATUS_TOO_MANY_BYTES, "together");
    /* Only the size of the peer is unknown, and no other memory is large enough. */
    peer->peer_memory_bytes = UNKNOWN_U64(REASON_NOT_MEASURED);
    ask(900 * GIB, LOCATION_ANY, ACCESS_READ, 0);
    assert_int_equal(answer.choice_count, 1);
    assert_non_null(strstr(answer.reason, "The memory size of the peer is not recorded"));
}

/* If the reach of a GPU was not found, only the curve of reads by all SMs is valid for its device
 * memory. */
static void test_without_a_reach(void **state)
{
    static struct memory_answer planned;

    (void)state;
    load();
    ask(64 * GIB, LOCATION_DEVICE, ACCESS_READ, 0);
    planned = answer;
    fp.windows.reach_bytes = fp.windows.recommended_bytes = UNKNOWN_U64(REASON_DISAGREEMENT);
    ask(64 * GIB, LOCATION_DEVICE, ACCESS_READ, 0);
    assert_null(find(MEMORY_DEVICE, STRATEGY_WINDOWS));
    assert_null(find(MEMORY_DEVICE, STRATEGY_SCOPES));
    for (uint32_t i = 0; i < planned.choice_count; i++)
        if (planned.choices[i].kind == MEMORY_DEVICE &&
            planned.choices[i].strategy == STRATEGY_NAIVE)
            assert_gbps(choice(MEMORY_DEVICE, STRATEGY_NAIVE), planned.choices[i].gbps.v,
                        CHOICE_MEASURED);
    for (uint32_t i = 0; i < answer.choice_count; i++)
        assert_true(answer.choices[i].kind != MEMORY_DEVICE ||
                    strstr(answer.choices[i].why, "(disagreement)"));
    fp.throughput.curve_count = 0;
    ask(64 * GIB, LOCATION_ANY, ACCESS_READ, 0);
    assert_null(find(MEMORY_DEVICE, STRATEGY_NAIVE));
}

/* For any fingerprint, the result is an answer that holds every invariant, or a refusal with a
 * reason. */
static void test_any_fingerprint(void **state)
{
    struct rng r = {.state = first_seed()};
    uint32_t answers = 0;

    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        any_fingerprint(&r, &fp);
        for (int q = 0; q < QUESTIONS; q++) {
            const struct memory_request request = {
                .bytes = rng_next(&r) >> (13 + rng_below(&r, 40)),
                .access = (enum access)rng_below(&r, ACCESS_COUNT),
                .location = (enum memory_location)rng_below(&r, LOCATION_COUNT),
                .kind = (uint32_t)rng_below(&r, 2) * (uint32_t)rng_below(&r, MEMORY_KIND_COUNT + 1),
                .element_bytes = (uint32_t)rng_below(&r, 1 << rng_below(&r, 20)),
                .fingerprint_id = "fp"};
            struct err err = {.text = ""};
            const enum status s = memory_choices_rank(&fp, &request, &answer, &err);
            if (s != STATUS_OK) {
                assert_true(strlen(err.text) > 15);
                continue;
            }
            answers++;
            assert_in_range(answer.choice_count, 1, MEMORY_MAX_CHOICES);
            assert_in_range(answer.left_out_count, 0, MEMORY_MAX_LEFT_OUT);
            check_order();
            check_capacities(request.bytes);
            for (uint32_t k = 0; k < answer.choice_count; k++) {
                assert_true(request.kind == 0 || request.kind == answer.choices[k].kind + 1);
                assert_true(request.location == LOCATION_ANY ||
                            (request.location == LOCATION_HOST) ==
                                memory_kind_is_host(answer.choices[k].kind));
            }
        }
    }
    printf("# %u answers\n", answers);
    assert_true(answers > ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches_of_any_reach),
        cmocka_unit_test(test_host),
        cmocka_unit_test(test_batches_in_host_memory),
        cmocka_unit_test(test_between),
        cmocka_unit_test(test_beyond),
        cmocka_unit_test(test_other_accesses),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_output_slows_page_walks),
        cmocka_unit_test(test_output_of_other_rows),
        cmocka_unit_test(test_extrapolated),
        cmocka_unit_test(test_cut_by_a_limit),
        cmocka_unit_test(test_left_out),
        cmocka_unit_test(test_gathered_by_the_cpu),
        cmocka_unit_test(test_device_is_the_plan),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_one_kind),
        cmocka_unit_test(test_peer),
        cmocka_unit_test(test_without_a_reach),
        cmocka_unit_test(test_random_kinds),
        cmocka_unit_test(test_any_fingerprint),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
