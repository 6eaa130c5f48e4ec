/* test_week.c: quick checks of a fleet over a week of simulated time. Three GPUs drift at random
 * hours, by their clock, their memory or their link. GPUs are in use at random hours. TEST_SEED
 * repeats a run. */
#include "analysis/check.h"
#include "analysis/drift.h"
#include "campaign/verify_probes.h"
#include "measure/check_schedule.h"
#include "tests/share.h"
#include "tests/sim/sim_measure.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FLEET = 64, NODE = 8, KINDS = 3, TEXT_BYTES = 512, IN_USE_ONE_IN = 4, LOOKS = 2 };

#define HOUR (3600 * NSEC_PER_SEC)
#define WEEK (7 * 24 * HOUR)

static uint64_t seed;

static const char chip[] =
    "sms=8 memory=2G l2cache=16M latency=200 spread=6 noise=gauss:2 read_noise=0.01 "
    "l1=16@2M/2;miss=20 l2=128@2M/0-3:4-7;miss=150;miss_ns=3 pcie=5@16 seed=%u ";
static const char healthy[] = "clock=1500000 plateau=800";
static const char *const drifted[KINDS] = {"clock=1300000 plateau=800", "clock=1500000 plateau=720",
                                           "clock=1500000 plateau=800 link=3@16"};

struct member {
    struct fingerprint fp;
    nsec_t check_at;
    nsec_t gpu_ns;        /* time of the GPU that its checks have taken */
    nsec_t drifts_at;     /* 0 for never */
    uint32_t kind;        /* of the drift */
    uint32_t checks;      /* all checks */
    uint32_t after;       /* checks since the drift */
    uint32_t found_after; /* the number of this check that has found it; 0 if none has */
};

static const char *describe(const struct member *m, nsec_t now, uint32_t noise, char *out)
{
    const int n = snprintf(out, TEXT_BYTES, chip, noise);

    (void)snprintf(out + n, TEXT_BYTES - (size_t)n, "%s",
                   m->drifts_at && now >= m->drifts_at ? drifted[m->kind] : healthy);
    return out;
}

/* Makes one look at a GPU, and adds the time of the probes to `m`. */
static void look(struct member *m, const char *text, struct check *check, struct drift *drift)
{
    struct campaign_step *const step = calloc(1, sizeof *step);
    struct observation_set set = {.count = 0};
    struct gpu *gpu = NULL;
    struct err err = {0};

    assert_non_null(step);
    if (sim_open(text, &gpu, &err) != STATUS_OK)
        fail_msg("%s: %s", text, err.text);
    gpu_describe(gpu, &set.gpu, &set.limits);
    m->gpu_ns += (nsec_t)(verify_probes_quick(&m->fp, &set.limits, step) * NSEC_PER_USEC);
    for (uint32_t i = 0; i < step->spec_count; i++) {
        if (sim_probe(gpu, &set, &step->specs[i], &err) != STATUS_OK)
            fail_msg("%s: %s", text, err.text);
    }
    check_observations(&m->fp, &set, check);
    drift_find(&m->fp, &set, drift);
    observation_set_free(&set);
    gpu_close(gpu);
    free(step);
}

/* Makes a quick check like the daemon: a finding needs two looks. Returns whether there is any. */
static bool check_now(struct member *m, nsec_t now, struct rng *rng)
{
    struct drift drift = {.speed = ""};
    struct check check = {.result = CHECK_HOLDS};
    char text[TEXT_BYTES];
    bool changed = true;

    for (int i = 0; i < LOOKS; i++) {
        const struct drift before = drift;

        look(m, describe(m, now, (uint32_t)rng_below(rng, UINT32_MAX), text), &check, &drift);
        if (i > 0)
            drift_confirm(&before, &drift);
        changed = changed && check.result == CHECK_CHANGED;
        if (!drift_is_any(&drift) && !changed)
            return false;
    }
    return true;
}

/* Measures the GPUs of the fleet. The GPUs of a node have the same chip and other noise. */
static void measure_fleet(struct member *fleet, struct rng *rng)
{
    for (uint32_t i = 0; i < FLEET; i++) {
        struct sim_measure measured;
        char text[TEXT_BYTES];

        if (i % NODE != 0) {
            fleet[i].fp = fleet[i - 1].fp;
            continue;
        }
        describe(&fleet[i], 0, (uint32_t)rng_below(rng, UINT32_MAX), text);
        if (sim_measure(text, DEPTH_FULL, NULL, NULL, &measured) != STATUS_OK)
            fail_msg("%s: %s", text, measured.err.text);
        fleet[i].fp = measured.fp;
        assert_true(IS_KNOWN(measured.fp.throughput.plateau_gbps));
        assert_true(IS_KNOWN(measured.fp.conditions.sm_clock_khz));
        sim_measure_free(&measured);
    }
}

/* Chooses the GPUs that drift, each in another way. */
static void plan_drift(struct member *fleet, nsec_t length, struct rng *rng)
{
    for (uint32_t kind = 0; kind < KINDS;) {
        struct member *const m = &fleet[rng_below(rng, FLEET)];

        if (m->drifts_at)
            continue;
        m->drifts_at = 1 + rng_below(rng, length / 2);
        m->kind = kind++;
    }
}

/* Carries out the check of a GPU that is due, unless the GPU is in use. */
static void visit(struct member *m, struct rng *rng)
{
    const nsec_t now = m->check_at;
    const nsec_t before = m->gpu_ns;

    if (rng_below(rng, IN_USE_ONE_IN) != 0) {
        const bool drifts = m->drifts_at && now >= m->drifts_at;
        const bool found = check_now(m, now, rng);

        m->checks++;
        m->after += drifts;
        if (found && !drifts)
            fail_msg("a false alarm in hour %u", (unsigned)(now / HOUR));
        if (found && !m->found_after)
            m->found_after = m->after;
    }
    m->check_at = check_schedule_next(now, HOUR, m->gpu_ns - before);
}

static void a_week_of_a_fleet(void **state)
{
    struct member *const fleet = calloc(FLEET, sizeof *fleet);
    const nsec_t length = test_part(7, 7, 1) * (WEEK / 7);
    struct rng rng = {.state = seed};
    uint32_t checks = 0;

    (void)state;
    assert_non_null(fleet);
    measure_fleet(fleet, &rng);
    plan_drift(fleet, length, &rng);
    for (uint32_t i = 0; i < FLEET; i++) {
        struct member *const m = &fleet[i];

        m->check_at = check_schedule_first(0, HOUR, i % NODE, NODE);
        while (m->check_at < length)
            visit(m, &rng);
        if (m->drifts_at && (m->found_after < 1 || m->found_after > 2))
            fail_msg("drift %u was found by check %u of %u", m->kind, m->found_after, m->after);
        if (m->gpu_ns >= length / 1000)
            fail_msg("%.3f s of checks", (double)m->gpu_ns / NSEC_PER_SEC);
        checks += m->checks;
    }
    print_message("# %u checks of %d GPUs; the first took %.4f %% of the time of its GPU\n", checks,
                  FLEET, 100.0 * (double)fleet[0].gpu_ns / (double)length);
    assert_true(checks > FLEET * (length / HOUR) / 2);
    free(fleet);
}

/* A short period never takes more than its share of a GPU, and the GPUs of a node take turns. */
static void the_share_is_bounded(void **state)
{
    struct rng rng = {.state = seed};
    nsec_t now = 0;
    nsec_t spent = 0;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        const nsec_t gpu_ns = rng_below(&rng, NSEC_PER_SEC);

        spent += gpu_ns;
        now = check_schedule_next(now + gpu_ns, NSEC_PER_SEC, gpu_ns);
        assert_true(spent <= now / CHECK_SCHEDULE_REST);
    }
    for (uint32_t i = 1; i < NODE; i++)
        assert_int_equal(check_schedule_first(7, HOUR, i, NODE) -
                             check_schedule_first(7, HOUR, i - 1, NODE),
                         HOUR / NODE);
    assert_int_equal(check_schedule_first(7, HOUR, NODE - 1, NODE), 7 + HOUR);
    assert_int_equal(check_schedule_first(7, HOUR, UINT32_MAX, 0), 7 + HOUR);
    assert_int_equal(check_schedule_next(7, HOUR, 0), 7 + HOUR);
}

int main(void)
{
    const char *const given = getenv("TEST_SEED");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_week_of_a_fleet),
        cmocka_unit_test(the_share_is_bounded),
    };

    seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    print_message("# seed %llu (TEST_SEED)\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
