/* test_knowledge.c: the knowledge of a node about a GPU, over many measurements beside neighbors
 * that come and go. Each small random chip is measured once alone at depth full, then repeatedly at
 * depth quick. After each measurement:
 *
 *   the served fingerprint has no fewer values of any part than before;
 *   the fingerprint is true: no number differs from the chip (truth.h);
 *   no value is dropped, unless the chip was exchanged for one with other groups and the same UUID.
 *   The first measurement without a neighbor detects the exchange, and replaces all values.
 *
 * REACH_CASES=n sets the number of measurements (600, under a sanitizer 120, with REACH_LONG
 * 100000). REACH_SEED repeats a run.
 */
#include "base/log.h"
#include "fingerprint/merge.h"
#include "fingerprint/parts.h"
#include "gpu/sim/sim_profiles.h"
#include "measure/knowledge.h"
#include "tests/share.h"
#include "tests/sim/sim_measure.h"
#include "tests/sim/truth.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    A_CHIP = 40,
    TEXT = 512,
    ATTEMPTS = 2,
    CASES = 300,
    SANITIZED_CASES = 120,
    LONG_CASES = 100000
};

/* GPUs that describe one chip: alone, and beside each kind of neighbor. */
struct chip {
    char text[SIM_MEASURE_MAX_STATES][TEXT];
    struct truth truth;
};

static struct {
    uint64_t measured, right, disturbed, inconclusive, contradicted, changes, noticed;
} total;

static const char *const neighbors[SIM_MEASURE_MAX_STATES] = {
    "", " neighbor=40000@400000", " neighbor=3000@300000", " neighbor=1500@60000"};

/* Writes the SMs of a random number of groups: "0,3,5:1,2:4". */
static void random_groups(struct rng *r, uint32_t sms, char *out, size_t size)
{
    const uint32_t groups = 2 + (uint32_t)rng_below(r, 3);
    uint32_t group_of[16];
    size_t n = 0;

    for (uint32_t sm = 0; sm < sms; sm++)
        group_of[sm] = sm < groups ? sm : (uint32_t)rng_below(r, groups);
    for (uint32_t g = 0; g < groups; g++)
        for (uint32_t sm = 0, any = 0; sm < sms; sm++)
            if (group_of[sm] == g)
                n += (size_t)snprintf(out + n, size - n, "%s%u", any++ ? "," : g ? ":" : "", sm);
}

/* `sizes` chooses the sizes of the levels, and `groups` chooses which SMs share them. */
static void make_chip(uint64_t sizes, uint64_t groups, struct chip *out)
{
    struct rng r = {sizes}, g = {groups};
    const uint32_t near = 6 + (uint32_t)rng_below(&r, 10), far = 64 + (uint32_t)rng_below(&r, 64);
    const uint32_t sms = 6 + (uint32_t)rng_below(&r, 6);
    char shared[128];
    struct sim_desc desc;
    struct err err = {0};

    random_groups(&g, sms, shared, sizeof shared);
    for (uint32_t i = 0; i < SIM_MEASURE_MAX_STATES; i++)
        snprintf(out->text[i], TEXT,
                 "sms=%u memory=512M range=2G uuid=SIM-%llx seed=%u noise=gauss:1 "
                 "l1=%u@2M/sm;miss=%u l2=%u@2M/%s;miss=%u%s",
                 sms, (unsigned long long)sizes, (unsigned)rng_below(&r, 1000), near, 14u, far,
                 shared, 70u, neighbors[i]);
    if (sim_profiles_parse(out->text[0], &desc, &err) != STATUS_OK)
        fail_msg("%s: %s", err.text, out->text[0]);
    truth_of(&desc, &out->truth);
}

static void count_failure(enum status status, const struct err *err)
{
    total.inconclusive += status == STATUS_INCONCLUSIVE;
    total.contradicted +=
        status == STATUS_DISTURBED && strstr(err->text, "contradicts the stored results");
    total.disturbed += status == STATUS_DISTURBED;
}

/* Makes one measurement like the pipeline does. It makes at most two attempts, and one more if the
 * first has contradicted the known values. Afterwards `*known` is the served fingerprint. */
static enum status learn(const struct chip *chip, struct rng *rng, enum depth depth,
                         struct fingerprint *known, bool has_known)
{
    const char *texts[SIM_MEASURE_MAX_STATES];
    struct knowledge *k = calloc(1, sizeof *k);
    struct sim_measure *m = calloc(1, sizeof *m);
    struct fingerprint *now = calloc(1, sizeof *now);
    struct err err = {0};
    enum status status = STATUS_DISTURBED;

    assert_true(k && m && now);
    k->known = has_known ? known : NULL;
    for (uint32_t i = 0; i < SIM_MEASURE_MAX_STATES; i++)
        texts[i] = chip->text[i];
    for (int i = 0; i < ATTEMPTS + k->suspected &&
                    (status == STATUS_DISTURBED || status == STATUS_INCONCLUSIVE);
         i++) {
        status = sim_measure_beside(texts, rng ? SIM_MEASURE_MAX_STATES : 1,
                                    rng ? rng : &(struct rng){1}, depth, m);
        if (status == STATUS_OK)
            status = knowledge_join(k, &m->fp, m->set.excluded.count == 0, now, &err);
        sim_measure_free(m);
    }
    if (status == STATUS_OK)
        *known = *now;
    else
        count_failure(status, &err);
    free(now);
    free(m);
    free(k);
    return status;
}

static void assert_true_of(const struct chip *chip, const struct fingerprint *fp)
{
    struct truth_score score;

    truth_compare(&chip->truth, fp, &score);
    if (score.wrong > 0)
        fail_msg("%s\n%s", score.text, chip->text[0]);
}

static void assert_not_less(const struct fingerprint *before, const struct fingerprint *now,
                            const struct chip *chip)
{
    char name[PART_NAME_BYTES];

    for (uint32_t p = 0; p < PART_COUNT; p++) {
        const enum fingerprint_part part = (enum fingerprint_part)p;

        if (part_known(now, part) < part_known(before, part))
            fail_msg("%s: less is known than before\n%s", fingerprint_part_name(part, name),
                     chip->text[0]);
    }
}

/* Makes one measurement and then checks the invariants. */
static void measure_once(const struct chip *chip, struct rng *rng, struct fingerprint *known)
{
    const struct fingerprint before = *known;

    total.measured += 1;
    if (learn(chip, rng, DEPTH_QUICK, known, true) == STATUS_OK)
        total.right += 1;
    if (known->dropped.id[0])
        fail_msg("dropped for no reason: %s\n%s", known->dropped_reason, chip->text[0]);
    assert_not_less(&before, known, chip);
    assert_true_of(chip, known);
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

/* The chip is exchanged for one with other groups. The first measurement without a neighbor reports
 * the exchange. */
static void exchange(const struct chip *old, uint64_t sizes, uint64_t groups,
                     struct fingerprint *known)
{
    struct chip chip;

    make_chip(sizes, groups, &chip);
    if (strcmp(old->text[0], chip.text[0]) == 0)
        return;
    total.changes += 1;
    assert_int_equal(learn(&chip, NULL, DEPTH_QUICK, known, true), STATUS_OK);
    total.noticed += known->dropped.id[0] != '\0';
    if (!known->dropped.id[0])
        fail_msg("another map was not noticed\n%s\n%s", old->text[0], chip.text[0]);
    assert_string_equal(known->measurement_id, "");
    assert_true_of(&chip, known);
}

static void never_less_never_wrong(void **state)
{
    const uint64_t seed = number_of("REACH_SEED", (uint64_t)time(NULL));
    const uint64_t cases = number_of(
        "REACH_CASES", getenv("REACH_LONG") ? LONG_CASES : test_share(CASES, SANITIZED_CASES));
    struct fingerprint *known = calloc(1, sizeof *known);
    struct rng rng = {seed};

    (void)state;
    print_message("# REACH_SEED=%llu\n", (unsigned long long)seed);
    assert_non_null(known);
    while (total.measured < cases) {
        const uint64_t sizes = rng_next(&rng), groups = rng_next(&rng);
        struct chip chip;

        make_chip(sizes, groups, &chip);
        assert_int_equal(learn(&chip, NULL, DEPTH_FULL, known, false), STATUS_OK);
        assert_true_of(&chip, known);
        for (uint32_t i = 0; i < A_CHIP && total.measured < cases; i++)
            measure_once(&chip, &rng, known);
        exchange(&chip, sizes, groups + 1, known);
    }
    print_message(
        "# %llu measurements: %llu right, %llu disturbed (%llu contradicted what is known "
        "and were not confirmed), %llu inconclusive; %llu of %llu changes noticed\n",
        (unsigned long long)total.measured, (unsigned long long)total.right,
        (unsigned long long)total.disturbed, (unsigned long long)total.contradicted,
        (unsigned long long)total.inconclusive, (unsigned long long)total.noticed,
        (unsigned long long)total.changes);
    assert_true(total.right > 0 && total.disturbed > 0);
    free(known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(never_less_never_wrong)};

    log_set_level(LOG_LEVEL_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
