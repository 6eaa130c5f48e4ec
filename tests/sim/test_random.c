/* test_random.c: random simulated GPUs that do not exist, measured and analyzed. Every field must
 * be right or "not sure".
 *
 * Each case is one GPU, named by its seed. REACH_CASES=n draws n GPUs (500 for a release).
 * REACH_SEED=s starts at another seed. Without REACH_CASES, only the GPU with this seed is run, and
 * its description and all fields that are not right are printed.
 */
#include "gpu/sim/sim_profiles.h"
#include "tests/share.h"
#include "tests/sim/random_gpu.h"
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

enum { CASES = 40, SANITIZED_CASES = 10, FIRST_SEED = 1, MOST_CASES = 100000, NAME_BYTES = 48 };

/* One case, and the totals of all cases. */
struct draw {
    uint64_t seed;
    char name[NAME_BYTES];
};

static struct {
    uint32_t gpus, right, not_sure, wrong, given_up;
    bool verbose;
} total;

static const struct random_gpu_class any_class = {.random_victims = true, .most_levels = 4};

/* Prints the results, one level per line. */
static void show(const struct fingerprint *fp)
{
    for (uint32_t k = 0; k < fp->level_count; k++) {
        const struct tlb_level *l = &fp->levels[k];
        print_message("#   found l%u: %u entries of %llu KiB, +%.1f cycles, onset %.1f, saturated "
                      "%.1f, %s, %u groups\n",
                      l->level, l->entries.v, (unsigned long long)l->entry_bytes.v >> 10,
                      l->miss_penalty_cycles.v,
                      (double)l->onset_bytes.v / (double)(l->entry_bytes.v | 1),
                      (double)l->saturation_bytes.v / (double)(l->entry_bytes.v | 1),
                      shared_by_name(l->shared_by), l->sharing.group_count);
    }
}

static void measured_right_or_not_sure(void **state)
{
    const struct draw *draw = *state;
    char text[8192];
    struct sim_desc desc;
    struct truth *truth = calloc(1, sizeof *truth);
    struct sim_measure *m = calloc(1, sizeof *m);
    struct truth_score score;
    struct err err = {0};

    assert_non_null(truth);
    assert_non_null(m);
    random_gpu(draw->seed, &any_class, text, sizeof text);
    if (sim_profiles_parse(text, &desc, &err) != STATUS_OK)
        fail_msg("seed %llu: %s\n%s", (unsigned long long)draw->seed, err.text, text);
    const enum status status = sim_measure(text, DEPTH_QUICK, NULL, NULL, m);
    if (status != STATUS_OK && status != STATUS_DISTURBED)
        fail_msg("seed %llu: %s\n%s", (unsigned long long)draw->seed, m->err.text, text);
    truth_of(&desc, truth);
    truth_compare(truth, &m->fp, &score);
    total.gpus += 1;
    total.right += score.right;
    total.not_sure += score.not_sure;
    total.wrong += score.wrong;
    total.given_up += status == STATUS_DISTURBED;
    if (total.verbose || score.wrong > 0)
        print_message("# seed %llu: %u right, %u not sure, %u wrong%s%s\n%s# %s\n",
                      (unsigned long long)draw->seed, score.right, score.not_sure, score.wrong,
                      status == STATUS_DISTURBED ? "; gave up: " : "",
                      status == STATUS_DISTURBED ? m->err.text : "", score.text, text);
    if (total.verbose || score.wrong > 0)
        show(&m->fp);
    sim_measure_free(m);
    free(m);
    free(truth);
    assert_int_equal(score.wrong, 0);
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

int main(void)
{
    const bool one = getenv("REACH_SEED") && !getenv("REACH_CASES");
    const uint64_t first = number_of("REACH_SEED", FIRST_SEED);
    uint64_t count = one ? 1 : number_of("REACH_CASES", test_share(CASES, SANITIZED_CASES));
    count = count < 1 ? 1 : count > MOST_CASES ? MOST_CASES : count;
    struct draw *draws = calloc(count, sizeof *draws);
    struct CMUnitTest *tests = calloc(count, sizeof *tests);
    if (!draws || !tests)
        return EXIT_FAILURE;
    total.verbose = one || getenv("REACH_VERBOSE");
    for (uint64_t i = 0; i < count; i++) {
        draws[i].seed = first + i;
        (void)snprintf(draws[i].name, NAME_BYTES, "random GPU, REACH_SEED=%llu",
                       (unsigned long long)draws[i].seed);
        tests[i] = (struct CMUnitTest){.name = draws[i].name,
                                       .test_func = measured_right_or_not_sure,
                                       .initial_state = &draws[i]};
    }
    const int failed = _cmocka_run_group_tests("random GPUs", tests, count, NULL, NULL);
    print_message(
        "# %u random GPUs from seed %llu: %u fields right, %u not sure, %u wrong; %u gave "
        "up\n",
        total.gpus, (unsigned long long)first, total.right, total.not_sure, total.wrong,
        total.given_up);
    free(tests);
    free(draws);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
