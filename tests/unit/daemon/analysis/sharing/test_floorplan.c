/* test_floorplan.c: dies are drawn at random, some SMs are removed, and the others are numbered
 * like on a real chip. Conclusions are compared with the drawn die. REACH_SEED repeats a run of the
 * random cases. */
#include "analysis/sharing/floorplan.h"
#include "base/rng.h"
#include "fingerprint/fingerprint_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RANDOM_DIES = 3000 };

/* The group of each SM of a chip, by SM id, before groups are numbered. */
struct chip {
    uint32_t sms;
    uint16_t colour[REACH_MAX_SMS];
};

/* Makes a regular die. Its ids alternate between `clusters` clusters, and in each cluster between
 * `groups` groups. */
struct die {
    uint32_t clusters, groups, group_units, unit_sms;
};

static uint32_t die_groups(const struct die *d)
{
    return d->clusters * d->groups;
}

static uint32_t die_sms(const struct die *d)
{
    return die_groups(d) * d->group_units * d->unit_sms;
}

static uint64_t seed(void)
{
    const char *const text = getenv("REACH_SEED");
    const uint64_t s = text ? strtoull(text, NULL, 0) : 20170515;

    print_message("REACH_SEED=%llu\n", (unsigned long long)s);
    return s;
}

/* Groups are numbered by their lowest SM. */
static void number_groups(const struct chip *chip, struct topology *t)
{
    uint16_t number[REACH_MAX_SMS];

    memset(t, 0, sizeof(*t));
    memset(number, 0xff, sizeof(number));
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++)
        t->partition.group_of_sm[sm] = FINGERPRINT_NO_GROUP;
    for (uint32_t i = 0; i < chip->sms; i++) {
        if (number[chip->colour[i]] == UINT16_MAX)
            number[chip->colour[i]] = (uint16_t)t->partition.group_count++;
        t->partition.group_of_sm[i] = number[chip->colour[i]];
        t->groups[number[chip->colour[i]]].sm_count++;
    }
}

static void conclude(const struct chip *chip, struct topology *t)
{
    struct fingerprint *const fp = malloc(sizeof(*fp));
    struct err err;

    assert_non_null(fp);
    number_groups(chip, t);
    floorplan_derive(chip->sms, t);
    fingerprint_init(fp);
    fp->gpu.sm_count = chip->sms;
    fp->topology = *t;
    if (fingerprint_check(fp, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    free(fp);
}

/* Assigns ids in the order of the die to the remaining SMs. */
static void take_in_order(const struct die *d, const bool *gone, struct chip *out)
{
    out->sms = 0;
    for (uint32_t p = 0; p < die_sms(d); p++) {
        if (!gone[p])
            out->colour[out->sms++] = (uint16_t)(p / d->unit_sms % die_groups(d));
    }
}

static bool same_partition(const struct topology *a, const struct topology *b)
{
    return memcmp(&a->partition, &b->partition, sizeof(a->partition)) == 0;
}

/* Returns whether the die without the SMs of this candidate has the pattern of the chip. */
static void check_candidate(const struct topology *t, uint32_t k)
{
    const struct disabled_sms *const dis = &t->disabled;
    const struct die d = {1, t->partition.group_count, t->nominal_group_sms.v / dis->unit_sms.v,
                          dis->unit_sms.v};
    bool gone[REACH_MAX_SMS] = {false};
    struct topology again;
    struct chip chip;

    for (uint32_t i = 0; i < dis->sm_count.v; i++)
        gone[dis->candidates[k][i]] = true;
    take_in_order(&d, gone, &chip);
    number_groups(&chip, &again);
    assert_true(same_partition(t, &again));
}

static bool is_candidate(const struct topology *t, const bool *gone)
{
    const struct disabled_sms *const d = &t->disabled;

    for (uint32_t k = 0; k < d->listed; k++) {
        uint32_t hits = 0;
        for (uint32_t i = 0; i < d->sm_count.v; i++)
            hits += gone[d->candidates[k][i]] ? 1 : 0;
        if (hits == d->sm_count.v)
            return true;
    }
    return false;
}

static const struct die k80_die = {1, 5, 3, 1};

/* For each of 105 missing pairs, the true pair is listed, and every listed pair gives the same
 * pattern. */
static void test_k80_pairs(void **state)
{
    char signatures[105][FINGERPRINT_SIGNATURE_BYTES];
    uint32_t by_count[4] = {0};
    uint32_t distinct = 0;
    uint32_t pairs = 0;

    (void)state;
    for (uint32_t a = 0; a < 15; a++) {
        for (uint32_t b = a + 1; b < 15; b++, pairs++) {
            bool gone[REACH_MAX_SMS] = {[0] = false};
            struct topology t;
            struct chip chip;
            bool known = false;
            gone[a] = gone[b] = true;
            take_in_order(&k80_die, gone, &chip);
            conclude(&chip, &t);
            assert_true(IS_KNOWN(t.full_sm_count));
            assert_int_equal(t.full_sm_count.v, 15);
            assert_int_equal(t.nominal_group_sms.v, 3);
            assert_int_equal(t.disabled.sm_count.v, 2);
            assert_int_equal(t.disabled.unit_sms.v, 1);
            assert_int_equal(t.disabled.lost_groups.v, 0);
            assert_true(IS_KNOWN(t.disabled.candidate_count));
            assert_int_equal(t.disabled.candidate_count.v, t.disabled.listed);
            assert_true(is_candidate(&t, gone));
            for (uint32_t k = 0; k < t.disabled.listed; k++)
                check_candidate(&t, k);
            assert_in_range(t.disabled.listed, 1, 3);
            by_count[t.disabled.listed]++;
            for (uint32_t k = 0; k < distinct; k++)
                known = known || strcmp(signatures[k], t.disabled.signature) == 0;
            if (!known)
                memcpy(signatures[distinct++], t.disabled.signature, sizeof(signatures[0]));
        }
    }
    assert_int_equal(pairs, 105);
    assert_int_equal(distinct, 91);
    assert_int_equal(by_count[1], 78);
    assert_int_equal(by_count[2], 24); /* two pairs give each of twelve patterns */
    assert_int_equal(by_count[3], 3);  /* three pairs give the same pattern */
}

/* ---- measured chips ---- */

/* Parses the units of each group, in the order of the ids: "0 24 64:1 25 46". */
static void chip_from_units(const char *text, uint32_t unit_sms, struct chip *out)
{
    uint16_t group = 0;

    out->sms = 0;
    while (*text) {
        char *end;
        const uint32_t unit = (uint32_t)strtoul(text, &end, 10);
        for (uint32_t i = 0; i < unit_sms; i++, out->sms++)
            out->colour[unit * unit_sms + i] = group;
        group += *end == ':' ? 1 : 0;
        text = *end ? end + 1 : end;
    }
}

/* The group maps of two H200s. Rounds and the pair matrix agree on both chips. The data sheet of
 * the chip specifies 144 SMs. The second chip has lost three units of one cluster, which are in one
 * group. */
static void test_measured_h200(void **state)
{
    static const struct {
        const char *units;
        uint32_t lost_groups;
        const char *signature;
    } chips[] = {
        {"0 24 64:1 25 46:2 26 47:3 27 48:4 28:5 29 50:6 30 51:7 31 52:8 62 65:9 32 53:10 33 54:"
         "11 34 55:12 35 49:13 36:14 37 58:15 38 59:16 63:17 39:18 40:19 41:20 42 56:21 43 57:"
         "22 44 60:23 45 61",
         0, "24x6/4:2,13:2,16:2,17:2,18:2,19:2"},
        {"0 16 62:1 25 46:2 26 47:3 27 48:4 28 49:5 29 50:6 30 51:7 31 52:8 24 65:9 32:10 33 54:"
         "11 34 55:12 35 56:13 36 57:14 37 58:15 38 59:17 39 53:18 40:19 41:20 42 63:21 43 64:"
         "22 44 60:23 45 61",
         1, "24x6/9:2,17:2,18:2"},
    };

    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        struct chip chip;
        struct topology t;
        chip_from_units(chips[i].units, 2, &chip);
        assert_int_equal(chip.sms, 132);
        conclude(&chip, &t);
        assert_true(IS_KNOWN(t.full_sm_count));
        assert_int_equal(t.full_sm_count.v, 144);
        assert_int_equal(t.nominal_group_sms.v, 6);
        assert_int_equal(t.disabled.sm_count.v, 12);
        assert_int_equal(t.disabled.unit_sms.v, 2);
        assert_int_equal(t.disabled.lost_groups.v, chips[i].lost_groups);
        assert_string_equal(t.disabled.signature, chips[i].signature);
        assert_int_equal(t.disabled.candidate_count.known, MAYBE_NOT_OBSERVABLE);
        assert_int_equal(t.disabled.listed, 0);
    }
}

/* Karnagel's figure 12 has six groups of five pairs. Two pairs are missing after SM 43, and two
 * later pairs have changed places. The number of missing SMs is found, but not their place. */
static void test_two_units_swapped(void **state)
{
    const struct die p100 = {1, 6, 5, 2};
    bool gone[REACH_MAX_SMS] = {[44] = true, [45] = true, [46] = true, [47] = true};
    struct topology t;
    struct chip chip;

    (void)state;
    take_in_order(&p100, gone, &chip);
    conclude(&chip, &t);
    assert_string_equal(t.disabled.signature, "6x10/44,45,46,47");
    for (uint32_t i = 48; i < 50; i++) {
        const uint16_t c = chip.colour[i];
        chip.colour[i] = chip.colour[i + 2];
        chip.colour[i + 2] = c;
    }
    conclude(&chip, &t);
    assert_int_equal(t.full_sm_count.v, 60);
    assert_int_equal(t.nominal_group_sms.v, 10);
    assert_string_equal(t.disabled.signature, "6x10/4:2,5:2");
    assert_int_equal(t.disabled.candidate_count.known, MAYBE_NOT_OBSERVABLE);
}

/* ---- random dies ---- */

static void any_die(struct rng *r, uint32_t clusters, struct die *out)
{
    do {
        out->clusters = clusters;
        out->groups = (uint32_t)(1 + rng_below(r, 20 / clusters + 2));
        out->group_units = (uint32_t)(2 + rng_below(r, 9));
        out->unit_sms = (uint32_t)(1 + rng_below(r, 3));
    } while (die_groups(out) < 2 || die_sms(out) < 8 || die_sms(out) > 160);
}

/* Removes whole units from the die and writes the number of removed SMs to `*gone_sms`. */
static void lose_units(struct rng *r, const struct die *d, bool *gone, uint32_t *gone_sms)
{
    const uint32_t units = die_sms(d) / d->unit_sms;
    uint32_t lost = (uint32_t)rng_below(r, units / 6 + 2);

    memset(gone, 0, REACH_MAX_SMS * sizeof(gone[0]));
    *gone_sms = lost * d->unit_sms;
    while (lost > 0) {
        const uint32_t u = (uint32_t)rng_below(r, units);
        if (gone[u * d->unit_sms])
            continue;
        for (uint32_t i = 0; i < d->unit_sms; i++)
            gone[u * d->unit_sms + i] = true;
        lost--;
    }
}

/* Returns whether the loss is visible: every group has SMs left, and one group has all of its
 * SMs. */
static bool leaves_trace(const struct die *d, const struct topology *t)
{
    bool intact = false;

    for (uint32_t g = 0; g < t->partition.group_count; g++)
        intact = intact || t->groups[g].sm_count == d->group_units * d->unit_sms;
    return intact && t->partition.group_count == die_groups(d);
}

/* Checks the invariants of every answer. Returns whether the answer has the size of the full
 * die. */
static bool check_answer(const struct die *d, const struct topology *t)
{
    if (!IS_KNOWN(t->full_sm_count)) {
        assert_false(IS_KNOWN(t->nominal_group_sms));
        assert_false(IS_KNOWN(t->disabled.sm_count));
        assert_int_equal(t->disabled.listed, 0);
        assert_string_equal(t->disabled.signature, "");
        return false;
    }
    assert_true(t->full_sm_count.v <= die_sms(d));
    if (leaves_trace(d, t)) {
        assert_int_equal(t->full_sm_count.v, die_sms(d));
        assert_int_equal(t->nominal_group_sms.v, d->group_units * d->unit_sms);
    }
    return true;
}

/* SMs are numbered in order. The answer contains the true die, or a smaller die with the same
 * pattern, or it is "not sure". */
static void test_random_in_order(void **state)
{
    struct rng r = {.state = seed()};
    uint32_t known = 0;
    uint32_t listed = 0;

    (void)state;
    for (uint32_t n = 0; n < RANDOM_DIES; n++) {
        bool gone[REACH_MAX_SMS];
        uint32_t gone_sms;
        struct die d;
        struct topology t;
        struct chip chip;
        any_die(&r, 1, &d);
        lose_units(&r, &d, gone, &gone_sms);
        take_in_order(&d, gone, &chip);
        conclude(&chip, &t);
        if (!check_answer(&d, &t))
            continue;
        known++;
        for (uint32_t k = 0; k < t.disabled.listed; k++)
            check_candidate(&t, k);
        if (!IS_KNOWN(t.disabled.candidate_count))
            continue;
        assert_true(t.disabled.candidate_count.v >= 1);
        if (t.full_sm_count.v < die_sms(&d) || t.disabled.candidate_count.v > t.disabled.listed)
            continue;
        assert_true(is_candidate(&t, gone));
        listed++;
    }
    print_message("of %d dies %u are known, for %u all candidates are listed\n", RANDOM_DIES, known,
                  listed);
    assert_true(listed > RANDOM_DIES / 2); /* as below */
}

/* Ids alternate between the clusters, and in each cluster between the groups that still have a
 * unit. The first `early` units of the first cluster get ids in turn with the other clusters. Its
 * other units get the last ids. */
static void take_dealt(const struct die *d, const bool *gone, uint32_t early, struct chip *out)
{
    const uint32_t per_cluster = d->groups * d->group_units;
    uint16_t left[32][REACH_MAX_SMS];
    uint32_t count[32] = {0};

    for (uint32_t c = 0; c < d->clusters; c++) {
        for (uint32_t i = 0; i < per_cluster; i++) {
            const uint32_t group = c + i % d->groups * d->clusters;
            const uint32_t unit = group + i / d->groups * die_groups(d);
            if (!gone[unit * d->unit_sms])
                left[c][count[c]++] = (uint16_t)group;
        }
    }
    out->sms = 0;
    for (uint32_t turn = 0; turn < 2 * per_cluster; turn++) {
        for (uint32_t c = 0; c < d->clusters; c++) {
            const bool in_time = turn < per_cluster && (c > 0 || turn < early);
            const bool at_last = turn >= per_cluster && c == 0 && turn - per_cluster >= early;
            const uint32_t at = turn % per_cluster;
            for (uint32_t i = 0; (in_time || at_last) && at < count[c] && i < d->unit_sms; i++)
                out->colour[out->sms++] = left[c][at];
        }
    }
}

/* The remaining SMs are numbered. The counts must be right, or the answer is "not sure". The answer
 * has positions only if the order of the die also explains the ids. */
static void test_random_dealt(void **state)
{
    struct rng r = {.state = seed()};
    uint32_t known = 0;
    uint32_t whole = 0;

    (void)state;
    for (uint32_t n = 0; n < RANDOM_DIES; n++) {
        bool gone[REACH_MAX_SMS];
        uint32_t gone_sms;
        struct die d;
        struct topology t;
        struct chip chip;
        any_die(&r, (uint32_t)(2 + rng_below(&r, 7)), &d);
        lose_units(&r, &d, gone, &gone_sms);
        take_dealt(&d, gone, (uint32_t)rng_below(&r, 2) ? UINT32_MAX : d.groups + 1, &chip);
        assert_int_equal(chip.sms + gone_sms, die_sms(&d));
        conclude(&chip, &t);
        known += check_answer(&d, &t) ? 1 : 0;
        whole += IS_KNOWN(t.full_sm_count) && t.full_sm_count.v == die_sms(&d) ? 1 : 0;
    }
    print_message("of %d dies %u are known, %u of them whole\n", RANDOM_DIES, known, whole);
    assert_true(whole >
                RANDOM_DIES / 5); /* if fewer dies were concluded, the test would have no meaning */
}

/* The chips have groups without any order, or implausible losses. Every answer must be consistent,
 * and each candidate must give the pattern that the answer reports. */
static void test_random_groups(void **state)
{
    struct rng r = {.state = seed()};
    uint32_t known = 0;

    (void)state;
    for (uint32_t n = 0; n < RANDOM_DIES; n++) {
        const uint32_t colours = (uint32_t)(1 + rng_below(&r, 40));
        const uint32_t unit = (uint32_t)(1 + rng_below(&r, 2));
        struct topology t;
        struct chip chip = {.sms = (uint32_t)(1 + rng_below(&r, 160 / unit)) * unit};
        for (uint32_t i = 0; i < chip.sms; i++)
            chip.colour[i] = i % unit > 0 ? chip.colour[i - 1] : (uint16_t)rng_below(&r, colours);
        conclude(&chip, &t);
        known += IS_KNOWN(t.full_sm_count) && chip.sms > 24 ? 1 : 0;
        for (uint32_t k = 0; k < t.disabled.listed; k++)
            check_candidate(&t, k);
    }
    print_message("of %d without order %u with more than 24 SMs are said to be regular\n",
                  RANDOM_DIES, known);
    assert_int_equal(known, 0);
}

/* On the largest GPUs, in which every row has losses, the search takes longest. The search must end
 * with a consistent answer. */
static void test_work_is_bounded(void **state)
{
    static const struct die dies[] = {
        {1, 10, 16, 1}, {1, 16, 10, 1}, {1, 4, 40, 1}, {1, 2, 80, 1},  {1, 80, 2, 1},
        {1, 40, 4, 1},  {1, 20, 8, 1},  {1, 32, 5, 1}, {1, 128, 4, 1}, {1, 8, 64, 1},
    };
    struct rng r = {.state = seed()};

    (void)state;
    for (uint32_t n = 0; n < 200; n++) {
        const struct die *const d = &dies[n % (sizeof(dies) / sizeof(dies[0]))];
        bool gone[REACH_MAX_SMS] = {[0] = false};
        struct topology t;
        struct chip chip;
        for (uint32_t i = 0; i < die_sms(d) / 6; i++)
            gone[rng_below(&r, die_sms(d))] = true;
        take_in_order(d, gone, &chip);
        conclude(&chip, &t);
        for (uint32_t k = 0; k < t.disabled.listed; k++)
            check_candidate(&t, k);
        if (IS_KNOWN(t.full_sm_count))
            assert_true(t.full_sm_count.v <= die_sms(d));
    }
}

/* ---- chips without a conclusion ---- */

static void expect_absent(const struct topology *t, enum known known, enum reason reason)
{
    assert_int_equal(t->full_sm_count.known, known);
    assert_int_equal(t->full_sm_count.reason, reason);
    assert_int_equal(t->nominal_group_sms.known, known);
    assert_int_equal(t->disabled.sm_count.reason, reason);
    assert_int_equal(t->disabled.candidate_count.reason, reason);
    assert_string_equal(t->disabled.signature, "");
    assert_int_equal(t->disabled.listed, 0);
}

static void test_nothing_to_say(void **state)
{
    struct chip chip = {.sms = 12};
    struct topology t;

    (void)state;
    conclude(&chip, &t); /* one group */
    expect_absent(&t, MAYBE_NOT_OBSERVABLE, REASON_NO_TRACE);
    for (uint16_t i = 0; i < 12; i++)
        chip.colour[i] = i; /* one group for each SM */
    conclude(&chip, &t);
    expect_absent(&t, MAYBE_NOT_OBSERVABLE, REASON_NO_TRACE);
    for (uint16_t i = 0; i < 12; i++)
        chip.colour[i] =
            i / 2; /* one stretch of ids per group, so a missing stretch would not be visible */
    conclude(&chip, &t);
    expect_absent(&t, MAYBE_NOT_OBSERVABLE, REASON_NO_TRACE);
    for (uint16_t i = 0; i < 12; i++)
        chip.colour[i] = i % 3;
    number_groups(&chip, &t);
    floorplan_derive(13, &t); /* one SM is in no group */
    expect_absent(&t, MAYBE_UNKNOWN, REASON_TOO_LITTLE_DATA);
    t.partition.group_count = 0;
    floorplan_derive(12, &t);
    expect_absent(&t, MAYBE_UNKNOWN, REASON_NOT_MEASURED);
}

/* Each group is one stretch of ids. The short stretch is found, but not the place of its gap. */
static void test_groups_in_stretches(void **state)
{
    struct chip chip = {.sms = 30};
    struct topology t;

    (void)state;
    for (uint16_t i = 0; i < 30; i++)
        chip.colour[i] = i < 22 ? i / 8 : 3; /* groups of 8, 8, 6 and 8 SMs */
    conclude(&chip, &t);
    assert_int_equal(t.full_sm_count.v, 32);
    assert_string_equal(t.disabled.signature, "4x8/2:2");
    assert_int_equal(t.disabled.candidate_count.known, MAYBE_NOT_OBSERVABLE);
    chip.sms = 15; /* groups of 8 and 7 SMs: one short group is not a pattern */
    conclude(&chip, &t);
    expect_absent(&t, MAYBE_UNKNOWN, REASON_IRREGULAR);
}

/* Gaps in the ids mean nothing, because some chips number their SMs with gaps. */
static void test_gaps_in_ids(void **state)
{
    bool gone[REACH_MAX_SMS] = {[10] = true, [11] = true};
    struct topology dense;
    struct topology t;
    struct chip chip;

    (void)state;
    take_in_order(&k80_die, gone, &chip);
    conclude(&chip, &dense);
    number_groups(&chip, &t);
    for (uint32_t i = chip.sms; i-- > 0;) {
        const uint16_t g = t.partition.group_of_sm[i];
        t.partition.group_of_sm[i] = FINGERPRINT_NO_GROUP;
        t.partition.group_of_sm[3 * i + 1] = g;
    }
    floorplan_derive(chip.sms, &t);
    assert_string_equal(t.disabled.signature, "5x3/10,11");
    assert_memory_equal(&t.disabled, &dense.disabled, sizeof(t.disabled));
}

static void test_nothing_lost(void **state)
{
    bool gone[REACH_MAX_SMS] = {[0] = false};
    struct topology t;
    struct chip chip;

    (void)state;
    take_in_order(&k80_die, gone, &chip);
    conclude(&chip, &t);
    assert_string_equal(t.disabled.signature, "5x3/");
    assert_true(IS_KNOWN(t.disabled.sm_count));
    assert_int_equal(t.disabled.sm_count.v, 0);
    assert_int_equal(t.disabled.candidate_count.v, 1);
    assert_int_equal(t.disabled.listed, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_k80_pairs),           cmocka_unit_test(test_measured_h200),
        cmocka_unit_test(test_two_units_swapped),   cmocka_unit_test(test_random_in_order),
        cmocka_unit_test(test_random_dealt),        cmocka_unit_test(test_random_groups),
        cmocka_unit_test(test_work_is_bounded),     cmocka_unit_test(test_nothing_to_say),
        cmocka_unit_test(test_groups_in_stretches), cmocka_unit_test(test_gaps_in_ids),
        cmocka_unit_test(test_nothing_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
