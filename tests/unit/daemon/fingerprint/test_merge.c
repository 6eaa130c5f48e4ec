/* test_merge.c: a merge never loses known values. The tests are exact cases, and properties of
 * random pairs of fingerprints. A merged fingerprint is valid and lacks no value of a part that
 * the source of the part has. It names the source of each kept part, and can be written as JSON and
 * read back. TEST_SEED repeats a run. */
#include "tests/unit/support/as_json.h"
#include "tests/unit/support/any_fingerprint.h"
#include "base/units.h"
#include "fingerprint/fingerprint_check.h"
#include "fingerprint/fingerprint_json.h"
#include "fingerprint/fingerprint_read.h"
#include "fingerprint/merge.h"
#include "fingerprint/parts.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SMS = 24, GROUPS = 4, ROUNDS = 3000 };

static struct fingerprint full, quick;
static char reason[MERGE_REASON_BYTES];

static void fill_level(struct fingerprint *fp, uint32_t k)
{
    struct tlb_level *const l = &fp->levels[k];
    const uint64_t entry = k ? 32 * MIB : 16 * MIB;

    l->level = k + 1;
    l->entries = KNOWN_U32(k ? 2049 : 16);
    l->entry_bytes = KNOWN_U64(entry);
    l->reach_bytes = KNOWN_U64(l->entries.v * entry);
    l->onset_bytes = KNOWN_U64((l->entries.v + 1) * entry);
    l->saturation_bytes = KNOWN_U64((l->entries.v + 1) * entry);
    l->miss_penalty_cycles = KNOWN_F64(k ? 90 : 10);
    l->shared_by = k ? SHARED_GROUP : SHARED_SM;
}

/* Makes the results of a quick measurement. */
static void fill_quick(struct fingerprint *fp, int64_t taken_at)
{
    fingerprint_init(fp);
    fp->gpu = (struct gpu_identity){.uuid = "GPU-1", .sm_count = SMS, .memory_bytes = 80 * GIB};
    fp->taken_at = taken_at;
    fp->level_count = 2;
    fill_level(fp, 0);
    fill_level(fp, 1);
    fp->levels[1].sharing.group_count = GROUPS;
    for (uint16_t sm = 0; sm < SMS; sm++)
        fp->levels[1].sharing.group_of_sm[sm] = sm / (SMS / GROUPS);
    fp->topology.level = KNOWN_U32(2);
    fp->topology.partition = fp->levels[1].sharing;
    for (uint32_t g = 0; g < GROUPS; g++)
        fp->topology.groups[g].sm_count = SMS / GROUPS;
    fp->beyond.probed_bytes = 100 * GIB;
    fp->windows.reach_bytes = fp->levels[1].reach_bytes;
    fp->windows.entry_bytes = fp->levels[1].entry_bytes;
}

static void fill_full(struct fingerprint *fp, int64_t taken_at)
{
    fill_quick(fp, taken_at);
    fp->depth = DEPTH_FULL;
    fp->levels[1].sets = KNOWN_U32(256);
    fp->levels[1].ways = KNOWN_U32(8);
    fp->throughput.plateau_gbps = KNOWN_F64(4000);
    fp->throughput.curve_count = 2;
    for (uint32_t i = 0; i < 2; i++) {
        fp->throughput.curve[i].region_bytes = (i + 1) * 32 * GIB;
        fp->throughput.curve[i].naive_gbps = KNOWN_F64(4000 - 1000 * i);
    }
    for (uint32_t g = 0; g < GROUPS; g++)
        fp->topology.groups[g].alone_gbps = KNOWN_F64(170);
}

static int setup(void **state)
{
    (void)state;
    fill_full(&full, 1000);
    fill_quick(&quick, 2000);
    return 0;
}

static void assert_valid(const struct fingerprint *fp)
{
    struct err err = {0};

    if (fingerprint_check(fp, &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

static void quick_keeps_what_full_found(void **state)
{
    char id[FINGERPRINT_ID_BYTES], own[FINGERPRINT_ID_BYTES];

    (void)state;
    assert_int_equal(fingerprint_id(&full, id, NULL), STATUS_OK);
    assert_int_equal(fingerprint_id(&quick, own, NULL), STATUS_OK);
    assert_int_equal(fingerprint_merge(&full, &quick, NULL), STATUS_OK);
    assert_valid(&quick);
    assert_int_equal(quick.throughput.curve_count, 2);
    assert_string_equal(quick.kept[PART_CURVE].id, id);
    assert_int_equal(quick.kept[PART_CURVE].depth, DEPTH_FULL);
    assert_int_equal(fingerprint_part_taken_at(&quick, PART_CURVE), 1000);
    assert_int_equal(fingerprint_part_taken_at(&quick, PART_GROUPS), 2000);
    assert_int_equal(quick.levels[1].ways.v, 8);
    assert_string_equal(quick.measurement_id, own);
    assert_int_equal(quick.depth,
                     DEPTH_FULL); /* the depth of the document is the depth of its deepest part */
    assert_int_equal(quick.measurement_depth, DEPTH_QUICK);
}

/* A part of the newest measurement keeps its own depth, not the depth of the document that it
 * was merged with. */
static void depths_are_of_their_measurements(void **state)
{
    struct fingerprint third;

    (void)state;
    assert_int_equal(fingerprint_merge(&full, &quick, NULL), STATUS_OK);
    fill_quick(&third, 3000);
    third.levels[0] = (struct tlb_level){.level = 1, .sharing = full.levels[0].sharing};
    assert_int_equal(fingerprint_merge(&quick, &third, NULL), STATUS_OK);
    assert_string_equal(third.kept[LEVEL_PART_SIZE].id, quick.measurement_id);
    assert_int_equal(third.kept[LEVEL_PART_SIZE].depth, DEPTH_QUICK);
    assert_int_equal(third.kept[PART_CURVE].depth, DEPTH_FULL);
    assert_int_equal(third.depth, DEPTH_FULL);
    assert_valid(&third);
}

/* A document without separate depths has the depth of the newest measurement. */
static void an_older_document_gets_its_depth(void **state)
{
    struct fingerprint back;
    json_t *json;

    (void)state;
    assert_int_equal(fingerprint_merge(&full, &quick, NULL), STATUS_OK);
    json = AS_JSON(fingerprint_write, &quick, NULL);
    assert_string_equal(json_string_value(json_object_get(json, "measurement_depth")), "quick");
    assert_int_equal(json_object_del(json, "measurement_depth"), 0);
    assert_int_equal(json_object_set_new(json, "depth", json_string("quick")), 0);
    assert_int_equal(fingerprint_from_json(json, &back, NULL), STATUS_OK);
    json_decref(json);
    assert_int_equal(back.depth, DEPTH_FULL);
    assert_int_equal(back.measurement_depth, DEPTH_QUICK);
}

/* The third measurement names the first one as the source of a kept part. The second measurement
 * only kept the part as well. */
static void sources_are_passed_on(void **state)
{
    struct fingerprint third;
    char first[FINGERPRINT_ID_BYTES];

    (void)state;
    fill_quick(&third, 3000);
    assert_int_equal(fingerprint_id(&full, first, NULL), STATUS_OK);
    assert_int_equal(fingerprint_merge(&full, &quick, NULL), STATUS_OK);
    assert_int_equal(fingerprint_merge(&quick, &third, NULL), STATUS_OK);
    assert_string_equal(third.kept[PART_CURVE].id, first);
    assert_int_equal(third.kept[PART_CURVE].taken_at, 1000);
    assert_string_equal(third.kept[PART_GROUPS].id, "");
}

/* If the measurement replaces every old part, the merged document equals the document of the
 * measurement. */
static void full_replaces_all(void **state)
{
    struct fingerprint newer;

    (void)state;
    fill_full(&newer, 3000);
    newer.throughput.plateau_gbps = KNOWN_F64(3900);
    assert_int_equal(fingerprint_merge(&full, &newer, NULL), STATUS_OK);
    assert_true(newer.throughput.plateau_gbps.v < 3950);
    assert_string_equal(newer.measurement_id, "");
}

static void open_levels_are_filled(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < 2; k++) {
        const uint32_t level = quick.levels[k].level;
        quick.levels[k] = (struct tlb_level){.level = level};
        quick.levels[k].sharing = full.levels[0].sharing;
    }
    quick.topology = (struct topology){.level = UNKNOWN_U32(REASON_NO_CONTRAST)};
    quick.windows.reach_bytes = quick.windows.entry_bytes = UNKNOWN_U64(REASON_NO_CONTRAST);
    assert_false(fingerprint_is_conclusive(&quick, reason));
    assert_int_equal(fingerprint_merge(&full, &quick, NULL), STATUS_OK);
    assert_valid(&quick);
    assert_true(fingerprint_is_conclusive(&quick, reason));
    assert_int_equal(quick.levels[1].reach_bytes.v, full.levels[1].reach_bytes.v);
    assert_int_equal(quick.topology.partition.group_count, GROUPS);
    assert_int_equal(quick.windows.reach_bytes.v, full.windows.reach_bytes.v);
}

static void a_coarser_saturation_is_no_news(void **state)
{
    (void)state;
    quick.levels[1].saturation_bytes = KNOWN_U64(2100 * 32 * MIB);
    assert_int_equal(fingerprint_merge(&full, &quick, NULL), STATUS_OK);
    assert_int_equal(quick.levels[1].saturation_bytes.v, full.levels[1].saturation_bytes.v);
    assert_int_equal(quick.kept[LEVEL_PART_COUNT + LEVEL_PART_SIZE].taken_at, 1000);
}

/* With little free memory, walks are shorter. A level that these walks cannot reach is kept. */
static void unseen_levels_are_kept(void **state)
{
    (void)state;
    quick.level_count = 1;
    quick.beyond.probed_bytes = 8 * GIB;
    quick.topology = (struct topology){.level = UNKNOWN_U32(REASON_BEYOND_MEMORY)};
    quick.windows.reach_bytes = quick.windows.entry_bytes = UNKNOWN_U64(REASON_BEYOND_MEMORY);
    assert_false(fingerprint_contradicts(&full, &quick, reason));
    assert_int_equal(fingerprint_merge(&full, &quick, NULL), STATUS_OK);
    assert_valid(&quick);
    assert_int_equal(quick.level_count, 2);
    assert_int_equal(quick.levels[1].shared_by, SHARED_GROUP);
    assert_int_equal(quick.beyond.probed_bytes, 100 * GIB);
}

static void assert_contradicts(const char *what)
{
    assert_true(fingerprint_contradicts(&full, &quick, reason));
    if (!strstr(reason, what))
        fail_msg("\"%s\" does not say \"%s\"", reason, what);
}

static void another_map_contradicts(void **state)
{
    (void)state;
    assert_false(fingerprint_contradicts(&full, &quick, reason));
    assert_string_equal(reason, "");
    quick.topology.partition.group_of_sm[5] = 1;
    assert_contradicts("SMs 0 and 5");
}

static void another_level_contradicts(void **state)
{
    (void)state;
    quick.levels[1].reach_bytes = KNOWN_U64(2000 * 32 * MIB);
    assert_contradicts("reach");
    quick.levels[1].reach_bytes = KNOWN_U64(
        2047 * 32 * MIB); /* a walk from another start over a hashed level can give this value */
    assert_false(fingerprint_contradicts(&full, &quick, reason));
    quick.levels[1].entry_bytes = KNOWN_U64(16 * MIB);
    assert_contradicts("entry");
}

static void a_missing_level_contradicts(void **state)
{
    (void)state;
    quick.level_count = 1;
    assert_contradicts("level 2");
    quick.beyond.probed_bytes = 64 * GIB; /* the onset of the level is beyond the probed bytes */
    assert_false(fingerprint_contradicts(&full, &quick, reason));
}

/* The later measurement has one more level without an onset, although the earlier measurement
 * walked as far. */
static void a_level_too_many_contradicts(void **state)
{
    (void)state;
    quick.level_count = 3;
    quick.levels[2].level = 3;
    assert_contradicts("level 3");
    full.beyond.probed_bytes = 80 * GIB;
    assert_false(fingerprint_contradicts(&full, &quick, reason));
}

/* If the known fingerprint has such a level, it contains no value to keep. */
static void an_unknown_level_is_not_kept(void **state)
{
    (void)state;
    full.level_count = 3;
    full.levels[2].level = 3;
    assert_false(fingerprint_contradicts(&full, &quick, reason));
    assert_int_equal(fingerprint_merge(&full, &quick, NULL), STATUS_OK);
    assert_int_equal(quick.level_count, 2);
}

/* A plain allocation of 1 GiB on an H200 is too small to find a level. At every depth this result
 * is accepted. */
static void no_level_within_the_range_is_an_answer(void **state)
{
    (void)state;
    fingerprint_init(&quick);
    assert_false(fingerprint_is_conclusive(&quick, reason));
    quick.conditions.range_bytes = GIB;
    assert_true(fingerprint_is_conclusive(&quick, reason));
}

static void another_mode_contradicts(void **state)
{
    (void)state;
    quick.gpu.mig = true;
    assert_contradicts("MIG");
    quick.gpu.mig = false;
    quick.gpu.sm_count = SMS - 2;
    assert_contradicts("SMs");
}

static void a_drop_is_told(void **state)
{
    char id[FINGERPRINT_ID_BYTES];

    (void)state;
    assert_int_equal(fingerprint_id(&full, id, NULL), STATUS_OK);
    assert_int_equal(fingerprint_drop(&full, "another map", &quick, NULL), STATUS_OK);
    assert_valid(&quick);
    assert_string_equal(quick.dropped.id, id);
    assert_int_equal(quick.dropped.taken_at, 1000);
    assert_string_equal(quick.dropped_reason, "another map");
    assert_int_equal(quick.throughput.curve_count, 0);
}

/* The earlier map has fewer SMs, so its numbers by group belong to other groups. */
static void numbers_of_other_groups_are_not_kept(void **state)
{
    (void)state;
    for (uint32_t sm = 0; sm < SMS / GROUPS; sm++)
        full.topology.partition.group_of_sm[sm] = FINGERPRINT_NO_GROUP;
    for (uint32_t sm = SMS / GROUPS; sm < SMS; sm++)
        full.topology.partition.group_of_sm[sm] = (uint16_t)(sm / (SMS / GROUPS) - 1);
    full.topology.partition.group_count = full.levels[1].sharing.group_count = GROUPS - 1;
    full.levels[1].sharing = full.topology.partition;
    full.topology.groups[GROUPS - 1] = quick.topology.groups[GROUPS];
    assert_valid(&full);
    assert_false(fingerprint_contradicts(&full, &quick, reason));
    assert_int_equal(fingerprint_merge(&full, &quick, NULL), STATUS_OK);
    assert_valid(&quick);
    assert_int_equal(quick.topology.partition.group_count, GROUPS);
    assert_false(IS_KNOWN(quick.topology.groups[0].alone_gbps));
    assert_int_equal(quick.throughput.curve_count, 2);
}

static void assert_survives_json(const struct fingerprint *fp)
{
    char a[FINGERPRINT_ID_BYTES], b[FINGERPRINT_ID_BYTES];
    struct fingerprint again;
    struct err err = {0};
    json_t *const json = AS_JSON(fingerprint_write, fp, NULL);

    assert_non_null(json);
    if (fingerprint_from_json(json, &again, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(fingerprint_id(fp, a, NULL), STATUS_OK);
    assert_int_equal(fingerprint_id(&again, b, NULL), STATUS_OK);
    assert_string_equal(a, b);
    json_decref(json);
}

/* Makes two random fingerprints that may belong to one chip: they have the same identity and
 * map. */
static void make_related(const struct fingerprint *a, struct fingerprint *b, struct rng *r)
{
    b->gpu = a->gpu;
    b->topology.level = a->topology.level;
    for (uint32_t k = 0; k < FINGERPRINT_MAX_LEVELS; k++) {
        b->levels[k] = a->levels[k];
        if (rng_below(r, 2) == 0)
            b->levels[k].miss_penalty_cycles = UNKNOWN_F64(REASON_NO_CONTRAST),
            b->levels[k].evidence.miss_penalty_cycles = (struct evidence){0};
    }
    b->level_count = a->level_count;
    if (rng_below(r, 2))
        b->topology = a->topology, b->windows = a->windows;
}

static uint64_t seed_of_this_run(void)
{
    const char *const text = getenv("TEST_SEED");

    return text ? strtoull(text, NULL, 10) : (uint64_t)time(NULL);
}

static void never_less_and_always_valid(void **state)
{
    const uint64_t seed = seed_of_this_run();
    struct fingerprint a, b, merged;
    uint32_t merges = 0;

    (void)state;
    print_message("# TEST_SEED=%llu\n", (unsigned long long)seed);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        struct rng r = {seed + i};

        any_fingerprint(&r, &a);
        any_fingerprint(&r, &b);
        if (rng_below(&r, 4))
            make_related(&a, &b, &r);
        if (fingerprint_check(&b, NULL) != STATUS_OK || fingerprint_contradicts(&a, &b, reason))
            continue;
        merged = b;
        if (fingerprint_merge(&a, &merged, NULL) == STATUS_CONFLICT) {
            assert_memory_equal(&merged, &b, sizeof b);
            continue;
        }
        merges++;
        assert_valid(&merged);
        const bool same_map =
            memcmp(&a.topology.partition, &b.topology.partition, sizeof a.topology.partition) == 0;
        for (uint32_t p = 0; p < PART_COUNT; p++) {
            const enum fingerprint_part part = (enum fingerprint_part)p;
            const bool by_group = part >= PART_GROUP_PENALTIES && part <= PART_GROUP_PAIRS;

            if (by_group && !same_map)
                continue;
            if (part != PART_BEYOND)
                assert_true(part_known(&merged, part) >= part_known(&b, part));
            /* Host memory may have changed; see memory_is_kept_while_it_is_the_same. */
            if (part != PART_BEYOND && part < PART_MEMORY)
                assert_true(part_known(&merged, part) >= part_known(&a, part));
        }
        if (i % 8 == 0)
            assert_survives_json(&merged);
    }
    assert_true(merges > ROUNDS / 20);
}

/* Sets pinned memory with this plateau and reach; the other kinds were not tried. */
static void set_pinned(struct fingerprint *fp, double gbps, uint64_t reach_bytes)
{
    fp->memory_count = MEMORY_PEER - 1;
    for (uint32_t i = 0; i < fp->memory_count; i++)
        fp->memory[i].kind = (enum memory_kind)(i + 1);
    fp->memory[MEMORY_HOST_PINNED - 1].probed_bytes = KNOWN_U64(2 * reach_bytes);
    fp->memory[MEMORY_HOST_PINNED - 1].plateau_gbps = KNOWN_F64(gbps);
    fp->memory[MEMORY_HOST_PINNED - 1].reach_bytes = KNOWN_U64(reach_bytes);
    fp->memory[MEMORY_HOST_PINNED - 1].onset_bytes = KNOWN_U64(reach_bytes + reach_bytes / 16);
}

/* If a measurement has fewer numbers for a kind of memory, the known numbers are kept, unless the
 * kind has changed. */
static void memory_is_kept_while_it_is_the_same(void **state)
{
    static const struct {
        double gbps;
        uint64_t reach_bytes;
        bool kept;
    } cases[] = {{50, GIB, true}, {53, GIB, true}, {26, GIB, false}, {50, 2 * GIB, false}};
    const enum fingerprint_part part = PART_MEMORY + MEMORY_HOST_PINNED - 1;
    struct fingerprint a, b;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fingerprint_init(&a);
        set_pinned(&a, 50, GIB);
        a.memory[MEMORY_HOST_PINNED - 1].entry_bytes = KNOWN_U64(64 * KIB);
        fingerprint_init(&b);
        set_pinned(&b, cases[i].gbps, cases[i].reach_bytes);
        assert_int_equal(fingerprint_merge(&a, &b, NULL), STATUS_OK);
        assert_int_equal(b.kept[part].id[0] != '\0', cases[i].kept);
        assert_int_equal(IS_KNOWN(b.memory[MEMORY_HOST_PINNED - 1].entry_bytes), cases[i].kept);
        assert_valid(&b);
    }
    fingerprint_init(&b);
    assert_int_equal(fingerprint_merge(&a, &b, NULL), STATUS_OK);
    assert_int_equal(b.memory_count, a.memory_count);
    assert_survives_json(&b);
}

/* Puts each SM on one of two sides; the second side has the SMs from `first` on. */
static void set_sides(struct fingerprint *fp, uint16_t first)
{
    fp->l2.sides = KNOWN_U32(2);
    fp->l2.granule_bytes = KNOWN_U64(4096);
    fp->l2.atomic_near_cycles = KNOWN_F64(300);
    fp->l2.atomic_far_cycles = KNOWN_F64(500);
    fp->l2.side_of_sm.group_count = 2;
    for (uint32_t sm = 0; sm < SMS; sm++)
        fp->l2.side_of_sm.group_of_sm[sm] = sm >= first;
}

static void sides_are_compared_with_domains(void **state)
{
    static const struct {
        uint16_t first; /* of the second side; 0 means that the sides are not observable */
        struct maybe_u32 domains, sms;
        enum finding match;
    } cases[] = {
        {12, KNOWN(2), KNOWN(12), FINDING_YES},
        {10, KNOWN(2), KNOWN(10), FINDING_YES}, /* 4 SMs belong to no domain */
        {10, KNOWN(2), KNOWN(11), FINDING_NO},
        {14, KNOWN(2), KNOWN(11), FINDING_NO},
        {12, KNOWN(1), KNOWN(24), FINDING_NO},
        {12, KNOWN(3), KNOWN(1), FINDING_NO},
        {12, KNOWN(2), UNKNOWN(REASON_NOT_SUPPORTED), FINDING_YES},
        {12, UNKNOWN(REASON_NOT_SUPPORTED), KNOWN(12), FINDING_UNKNOWN},
        {0, KNOWN(1), KNOWN(24), FINDING_YES},
        {0, KNOWN(2), KNOWN(12), FINDING_NO},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fill_full(&full, 1000);
        full.l2.sides = NOT_OBSERVABLE_U32(REASON_NO_CONTRAST);
        if (cases[i].first > 0)
            set_sides(&full, cases[i].first);
        full.l2.locality_domains = cases[i].domains;
        full.l2.locality_domain_sms = cases[i].sms;
        if (l2_match_domains(&full.l2) != cases[i].match)
            fail_msg("case %zu: %s", i, finding_name(l2_match_domains(&full.l2)));
    }
}

/* The sides come from the earlier measurement, and the domains from the newer one. */
static void kept_sides_are_compared_with_new_domains(void **state)
{
    (void)state;
    set_sides(&full, 12);
    full.l2.locality_domains = UNKNOWN_U32(REASON_NOT_SUPPORTED);
    assert_valid(&full);
    quick.l2.locality_domains = KNOWN_U32(2);
    quick.l2.locality_domain_sms = KNOWN_U32(12);
    assert_int_equal(fingerprint_merge(&full, &quick, NULL), STATUS_OK);
    assert_valid(&quick);
    assert_int_equal(quick.l2.sides_match_domains, FINDING_YES);
    assert_survives_json(&quick);
    quick.l2.sides_match_domains = FINDING_NO;
    assert_int_equal(fingerprint_check(&quick, NULL), STATUS_CORRUPT);
}

static void part_names_are_unique(void **state)
{
    char a[PART_NAME_BYTES], b[PART_NAME_BYTES];

    (void)state;
    for (uint32_t i = 0; i < PART_COUNT; i++)
        for (uint32_t k = 0; k < i; k++)
            assert_string_not_equal(fingerprint_part_name((enum fingerprint_part)i, a),
                                    fingerprint_part_name((enum fingerprint_part)k, b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(quick_keeps_what_full_found, setup),
        cmocka_unit_test_setup(depths_are_of_their_measurements, setup),
        cmocka_unit_test_setup(an_older_document_gets_its_depth, setup),
        cmocka_unit_test_setup(sources_are_passed_on, setup),
        cmocka_unit_test_setup(full_replaces_all, setup),
        cmocka_unit_test_setup(open_levels_are_filled, setup),
        cmocka_unit_test_setup(a_coarser_saturation_is_no_news, setup),
        cmocka_unit_test_setup(unseen_levels_are_kept, setup),
        cmocka_unit_test_setup(another_map_contradicts, setup),
        cmocka_unit_test_setup(another_level_contradicts, setup),
        cmocka_unit_test_setup(a_missing_level_contradicts, setup),
        cmocka_unit_test_setup(a_level_too_many_contradicts, setup),
        cmocka_unit_test_setup(an_unknown_level_is_not_kept, setup),
        cmocka_unit_test_setup(no_level_within_the_range_is_an_answer, setup),
        cmocka_unit_test_setup(another_mode_contradicts, setup),
        cmocka_unit_test_setup(a_drop_is_told, setup),
        cmocka_unit_test_setup(numbers_of_other_groups_are_not_kept, setup),
        cmocka_unit_test_setup(never_less_and_always_valid, setup),
        cmocka_unit_test(memory_is_kept_while_it_is_the_same),
        cmocka_unit_test_setup(sides_are_compared_with_domains, setup),
        cmocka_unit_test_setup(kept_sides_are_compared_with_new_domains, setup),
        cmocka_unit_test(part_names_are_unique),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
