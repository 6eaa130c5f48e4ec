/* test_beside.c: makes a given number of quick measurements of small random chips beside random
 * neighbors, in several processes. Every measurement has one of these results:
 *
 *   right      it ended clean, and its results are true and complete
 *   disturbed  it reports that it was disturbed
 *   not sure   it reports that a value could not be found
 *   wrong      it ended clean, and a number is wrong or a level is missing
 *
 *     test_beside                        as a test: makes some hundred measurements; none may be
 * wrong test_beside COUNT [PROCESSES [SEED]]   prints the table, and each wrong measurement with
 * its seed; that SEED and COUNT 1 repeat it
 *
 * A neighbor evicts all entries, some entries, or the entries of one level. Its evictions do not
 * depend on the probes, or a fixed number of loads lies between them. A neighbor is always present,
 * or it comes and goes. In half of the cases the SM clock changes, too. A neighbor in time slices
 * leaves a gap that the kernels detect (kernels/abi.h). Other neighbors leave no gap, and only
 * missing entries reveal them.
 *
 * Every eighth chip has a far level, like an H200. The level overflows beyond the footprints of the
 * control, and the clock of the chip changes several times while the sweep walks beyond it.
 */
#include "base/log.h"
#include "gpu/sim/sim_profiles.h"
#include "tests/share.h"
#include "tests/sim/sim_measure.h"
#include "tests/sim/truth.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    CASES = 160,
    SANITIZED_CASES = 20,
    LONG_CASES = 20000,
    A_CHIP = 64, /* number of measurements of one chip, because computing its truth takes time */
    TEXT = 512,
    MAX_PROCESSES = 256,
    REPORTED = 8 /* largest number of wrong measurements that are printed */
};

enum outcome { RIGHT, DISTURBED, NOT_SURE, WRONG, OUTCOMES };
static const char *const outcome_names[OUTCOMES] = {"right", "disturbed", "not sure", "wrong"};

/* How the neighbor of a case evicts entries. */
enum trace { GAPS, NO_GAPS, GAPS_CLOCKS, NO_GAPS_CLOCKS, FAR_LEVEL, TRACES };
static const char *const trace_names[TRACES] = {"time slices", "no gaps",
                                                "time slices, changing clock",
                                                "no gaps, changing clock", "a far level"};
enum { ONE_FAR_IN = 8 };

struct tally {
    uint64_t count[TRACES][OUTCOMES];
};

struct chip {
    char text[TEXT];
    struct truth truth;
};

static uint32_t between(struct rng *r, uint32_t least, uint32_t most)
{
    return least + (uint32_t)rng_below(r, most - least + 1);
}

/* Returns a number that is evenly distributed on a logarithmic scale. */
static uint32_t scale(struct rng *r, double least, double most)
{
    return (uint32_t)lround(least * pow(most / least, rng_unit(r)));
}

static void find_truth(struct chip *chip)
{
    struct sim_desc desc;
    struct err err = {0};

    if (sim_profiles_parse(chip->text, &desc, &err) != STATUS_OK)
        fail_msg("%s: %s", err.text, chip->text);
    truth_of(&desc, &chip->truth);
}

static const char *const noises[] = {"uniform:1", "uniform:2.5", "uniform:0.5", "gauss:1"};

/* Makes a chip like an H200. The sweep has 4480 pages, and the second level has 1280 to 2048
 * entries of half its stride, so few points of the sweep lie beyond it. The clock changes faster
 * than a point is walked, so the penalties of such a measurement are not judged. */
static void make_far_chip(uint64_t seed, struct chip *out)
{
    struct rng r = {~seed};
    const uint32_t sets = between(&r, 160, 256);

    snprintf(out->text, TEXT,
             "sms=4 memory=256M range=280G uuid=SIM-%llx latency=%u noise=%s "
             "l1=%u@16M/sm;miss=%u l2=%u@32M/0,2:1,3;miss=%u;sets=8x%u;hash=skew",
             (unsigned long long)seed, between(&r, 250, 310), noises[rng_below(&r, 4)],
             between(&r, 8, 16), between(&r, 10, 20), 8 * sets, between(&r, 60, 100), sets);
    find_truth(out);
    for (uint32_t k = 0; k < out->truth.level_count; k++)
        out->truth.levels[k].most_cycles = INFINITY;
}

static void make_chip(uint64_t seed, struct chip *out)
{
    struct rng r = {seed};
    const uint32_t near = between(&r, 5, 12);

    snprintf(out->text, TEXT,
             "sms=4 memory=256M range=1G uuid=SIM-%llx noise=%s l1=%u@2M/sm;miss=%u "
             "l2=%u@2M/%s;miss=%u",
             (unsigned long long)seed, noises[rng_below(&r, 4)], near, between(&r, 10, 30),
             between(&r, near * 4, 90), rng_below(&r, 2) ? "0,1:2,3" : "0,2:1,3",
             between(&r, 40, 90));
    find_truth(out);
}

/* Writes the loads between two turns of the neighbor, the cycles of a turn, and the evicted
 * entries. */
static enum trace make_neighbor(struct rng *r, char *out, size_t size)
{
    const bool gaps = rng_below(r, 2);
    const uint32_t loads = scale(r, gaps ? 300 : 100, 60000);
    const uint32_t cycles = gaps ? between(r, 100001, 900000) : between(r, 1, 4000);
    size_t n = (size_t)snprintf(out, size, " seed=%u neighbor=%u@%u", between(r, 1, 1000000), loads,
                                cycles);

    if (rng_below(r, 2))
        n += (size_t)snprintf(out + n, size - n, " neighbor_pages=%u", scale(r, 1, 100));
    if (rng_below(r, 2))
        snprintf(out + n, size - n, " neighbor_level=%u", between(r, 1, 2));
    return gaps ? GAPS : NO_GAPS;
}

/* Writes how the SM clock changes between 1455 and 1965 MHz, and the share of a load's time that
 * follows the SM clock. Loads are counted, so the shortest period is about 5 ms. Returns the least
 * SM cycles of a load, relative to the chip's. */
static double make_clock(struct rng *r, char *out, size_t size)
{
    const double lowest = 1455.0 / 1965;
    const double coupled = rng_below(r, 2) ? rng_unit(r) : (double)rng_below(r, 2);

    snprintf(out, size, " clock=1965000 reclock=%u@%.3f coupled=%.3f", scale(r, 30000, 3000000),
             lowest, coupled);
    return coupled + (1 - coupled) * lowest;
}

/* Writes a neighbor in time slices of about 2 ms, and a clock that changes as often. */
static void make_far_neighbor(struct rng *r, char *out, size_t size)
{
    snprintf(out, size, " seed=%u neighbor=%u@700000 clock=1965000 reclock=%u@%.3f coupled=%.3f",
             between(r, 1, 1000000), scale(r, 5000, 20000), scale(r, 2000, 20000), 1455.0 / 1965,
             rng_unit(r));
}

static enum outcome judge(enum status status, const struct sim_measure *m, const struct chip *chip,
                          struct truth_score *score)
{
    if (status == STATUS_DISTURBED)
        return DISTURBED;
    if (status == STATUS_INCONCLUSIVE)
        return NOT_SURE;
    if (status != STATUS_OK)
        return WRONG;
    truth_compare(&chip->truth, &m->fp, score);
    if (score->wrong > 0 || m->fp.level_count < chip->truth.level_count)
        return WRONG;
    return score->not_sure > 0 ? NOT_SURE : RIGHT;
}

/* A chip and its neighbor. */
struct scene {
    char beside[TEXT + 256]; /* description of the chip and the neighbor */
    uint32_t states;         /* 2 means that the neighbor comes and goes */
    double least;            /* least SM cycles of a load, relative to those of the chip */
    enum trace trace;
};

/* Draws the neighbor of the case with this random state. With `clocks`, the SM clock changes in
 * every second case. */
static void draw_neighbor(struct rng *r, const struct chip *chip, bool clocks, struct scene *out)
{
    struct rng c = {~r->state};
    char neighbor[128] = "", clock[96] = "";

    (void)rng_next(r);
    out->trace = make_neighbor(r, neighbor, sizeof neighbor);
    out->states = rng_below(r, 4) ? 1 : 2;
    const bool changing = clocks && rng_below(&c, 2);

    out->least = changing ? make_clock(&c, clock, sizeof clock) : 1;
    out->trace += changing ? GAPS_CLOCKS : GAPS;
    snprintf(out->beside, sizeof out->beside, "%s%s%s", chip->text, neighbor, clock);
}

static void draw_far_neighbor(struct rng *r, const struct chip *chip, struct scene *out)
{
    char neighbor[128];

    (void)rng_next(r);
    *out = (struct scene){.states = rng_below(r, 4) ? 1 : 2, .trace = FAR_LEVEL};
    make_far_neighbor(r, neighbor, sizeof neighbor);
    snprintf(out->beside, sizeof out->beside, "%s%s", chip->text, neighbor);
}

/* Makes the measurement with this number. Without `clocks`, the SM clock does not change, and no
 * level is far. */
static enum outcome run_case(uint64_t seed, uint64_t number, bool clocks, enum trace *out_trace,
                             bool print)
{
    static struct chip chip;
    static uint64_t chip_seed = UINT64_MAX;
    static struct sim_measure m;
    static struct scene scene;
    struct rng r = {seed * 1000003 + number};
    struct truth_score score = {.text = ""};
    const uint64_t wanted = seed ^ (number / A_CHIP) << 20;
    const bool far = clocks && number / A_CHIP % ONE_FAR_IN == 1;

    if (wanted != chip_seed && far)
        make_far_chip(wanted, &chip);
    else if (wanted != chip_seed)
        make_chip(wanted, &chip);
    chip_seed = wanted;
    if (far)
        draw_far_neighbor(&r, &chip, &scene);
    else
        draw_neighbor(&r, &chip, clocks, &scene);
    *out_trace = scene.trace;
    const char *const texts[] = {scene.beside, chip.text};
    for (uint32_t k = 0; k < chip.truth.level_count; k++)
        chip.truth.levels[k].least_cycles = scene.least * chip.truth.levels[k].penalty_cycles;
    const enum status status = sim_measure_beside(texts, scene.states, &r, DEPTH_QUICK, &m);
    const enum outcome outcome = judge(status, &m, &chip, &score);

    if (print && outcome == WRONG)
        printf("# wrong: REACH_SEED=%llu, number %llu: %s\n#   %s%s%s\n", (unsigned long long)seed,
               (unsigned long long)number, scene.beside,
               status == STATUS_OK ? score.text : m.err.text,
               m.fp.level_count < chip.truth.level_count ? "a level is missing" : "",
               scene.states == 2 ? "; comes and goes" : "");
    sim_measure_free(&m);
    return outcome;
}

/* Makes every `step`th measurement, starting with measurement `first`. */
static void run_cases(uint64_t seed, uint64_t first, uint64_t count, uint64_t chunk_step,
                      struct tally *out)
{
    uint32_t reported = 0;

    for (uint64_t chunk = first; chunk * A_CHIP < count; chunk += chunk_step) {
        for (uint64_t i = chunk * A_CHIP; i < (chunk + 1) * A_CHIP && i < count; i++) {
            enum trace trace;
            const enum outcome outcome = run_case(seed, i, true, &trace, reported < REPORTED);

            reported += outcome == WRONG;
            out->count[trace][outcome]++;
        }
    }
}

/* This function runs in a process of its own and writes its tally to the pipe. */
static int start_process(uint64_t seed, uint64_t first, uint64_t count, uint64_t step)
{
    int ends[2];

    if (pipe(ends) != 0)
        return -1;
    fflush(stdout);
    if (fork() == 0) {
        struct tally tally = {0};

        run_cases(seed, first, count, step, &tally);
        fflush(stdout);
        _exit(write(ends[1], &tally, sizeof tally) == (ssize_t)sizeof tally ? 0 : 1);
    }
    close(ends[1]);
    return ends[0];
}

static bool run_all(uint64_t seed, uint64_t count, uint32_t processes, struct tally *out)
{
    int pipes[MAX_PROCESSES];
    bool complete = true;

    for (uint32_t i = 0; i < processes; i++)
        pipes[i] = start_process(seed, i, count, processes);
    for (uint32_t i = 0; i < processes; i++) {
        struct tally part;
        int status = 0;

        complete = complete && pipes[i] >= 0 && read(pipes[i], &part, sizeof part) == sizeof part;
        for (int t = 0; complete && t < TRACES; t++)
            for (int o = 0; o < OUTCOMES; o++)
                out->count[t][o] += part.count[t][o];
        close(pipes[i]);
        complete = wait(&status) > 0 && status == 0 && complete;
    }
    return complete;
}

static void print_table(const struct tally *tally)
{
    for (int t = 0; t < TRACES; t++) {
        const uint64_t *c = tally->count[t];
        const uint64_t all = c[RIGHT] + c[DISTURBED] + c[NOT_SURE] + c[WRONG];

        print_message("# %-27s %9llu simulated measurements:", trace_names[t],
                      (unsigned long long)all);
        for (int o = 0; o < OUTCOMES; o++)
            print_message(" %llu %s (%.3f %%)%s", (unsigned long long)c[o], outcome_names[o],
                          all ? 100.0 * (double)c[o] / (double)all : 0, o < WRONG ? "," : "\n");
    }
}

static uint64_t count_wrong(const struct tally *tally)
{
    uint64_t wrong = 0;

    for (int t = 0; t < TRACES; t++)
        wrong += tally->count[t][WRONG];
    return wrong;
}

static void none_is_wrong(void **state)
{
    const char *const text = getenv("REACH_SEED");
    const uint64_t seed = text && *text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL);
    struct tally tally = {0};

    (void)state;
    print_message("# REACH_SEED=%llu\n", (unsigned long long)seed);
    run_cases(seed, 0, getenv("REACH_LONG") ? LONG_CASES : test_share(CASES, SANITIZED_CASES), 1,
              &tally);
    print_table(&tally);
    assert_int_equal(count_wrong(&tally), 0);
    assert_true(tally.count[GAPS][RIGHT] > 0 && tally.count[GAPS_CLOCKS][RIGHT] > 0);
}

/* Beside these neighbors, a measurement can count as clean and still lack a level, or not end.
 * Three rules prevent this: sweeps must agree, a control is made, and probes without information
 * are counted. */
static const struct {
    const char *chip, *neighbor;
    uint32_t states; /* 2 means that the neighbor comes and goes */
} known[] = {
    {"noise=gauss:0.3 l1=8@2M/sm;miss=16 l2=84@2M/0,1:2,3;miss=81",
     "seed=449568 neighbor=369@994 neighbor_level=1", 1},
    {"noise=gauss:0.3 l1=9@2M/sm;miss=26 l2=54@2M/0,2:1,3;miss=44",
     "seed=780994 neighbor=236@2588 neighbor_level=2", 1},
    {"noise=gauss:0.3 l1=9@2M/sm;miss=26 l2=54@2M/0,2:1,3;miss=44",
     "seed=589858 neighbor=341@3109 neighbor_level=1", 1},
    {"noise=gauss:1 l1=9@2M/sm;miss=10 l2=45@2M/0,1:2,3;miss=45",
     "seed=289014 neighbor=266@1878 neighbor_pages=99", 2},
    {"noise=gauss:0.3 l1=5@2M/sm;miss=17 l2=79@2M/0,2:1,3;miss=70", "seed=337422 neighbor=113@3816",
     1},
    {"noise=gauss:1 l1=9@2M/sm;miss=19 l2=60@2M/0,1:2,3;miss=78",
     "seed=468276 neighbor=355@3842 neighbor_level=2", 1},
    {"noise=gauss:1 l1=10@2M/sm;miss=12 l2=53@2M/0,2:1,3;miss=72", "seed=278198 neighbor=315@724",
     1},
    /* A case in which the saturation tends to be measured too high. */
    {"noise=uniform:1 l1=12@2M/sm;miss=20 l2=90@2M/0,1:2,3;miss=83",
     "seed=287601 neighbor=353@2493 neighbor_pages=4 neighbor_level=1", 1},
    {"noise=uniform:2.5 l1=12@2M/sm;miss=24 l2=77@2M/0,1:2,3;miss=90",
     "seed=663981 neighbor=132@1696 neighbor_pages=4 neighbor_level=1", 1},
    {"noise=gauss:1 l1=12@2M/sm;miss=11 l2=80@2M/0,1:2,3;miss=81",
     "seed=746119 neighbor=774@98 neighbor_pages=16 neighbor_level=2", 1},
    {"noise=gauss:1 l1=8@2M/sm;miss=10 l2=38@2M/0,2:1,3;miss=47",
     "seed=867075 neighbor=1002@2417 neighbor_level=1", 2},
    {"noise=gauss:1 l1=7@2M/sm;miss=15 l2=31@2M/0,1:2,3;miss=44",
     "seed=959362 neighbor=20725@1110 neighbor_pages=6", 2},
    {"noise=uniform:1 l1=9@2M/sm;miss=17 l2=38@2M/0,2:1,3;miss=77",
     "seed=571813 neighbor=162@3030 neighbor_pages=2", 1},
    {"noise=gauss:1 l1=12@2M/sm;miss=13 l2=82@2M/0,2:1,3;miss=45",
     "seed=900942 neighbor=262@1022 neighbor_pages=3 neighbor_level=1", 1},
    {"noise=uniform:1 l1=5@2M/sm;miss=26 l2=50@2M/0,1:2,3;miss=61",
     "seed=291227 neighbor=1277@2771 neighbor_pages=27 neighbor_level=2", 1},
    {"noise=uniform:2.5 l1=6@2M/sm;miss=29 l2=26@2M/0,1:2,3;miss=42",
     "seed=80015 neighbor=891@835 neighbor_pages=6 neighbor_level=2", 1},
    /* A case in which a level tends to be missed, and a case of a high saturation. */
    {"noise=uniform:0.5 l1=8@2M/sm;miss=25 l2=34@2M/0,2:1,3;miss=71",
     "seed=537136 neighbor=26800@124", 1},
    {"noise=uniform:0.5 l1=7@2M/sm;miss=15 l2=38@2M/0,1:2,3;miss=45",
     "seed=992022 neighbor=620@476 neighbor_pages=15 neighbor_level=2", 2},
};
enum { KNOWN_TIMES = 4 };

static void those_found_before_are_not_wrong(void **state)
{
    static struct chip chip;
    static struct sim_measure m;

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof known[0] * KNOWN_TIMES; i++) {
        const size_t k = i / KNOWN_TIMES;
        char beside[TEXT + 128];
        struct rng r = {i};
        struct truth_score score = {.text = ""};

        snprintf(chip.text, TEXT, "sms=4 memory=256M range=1G uuid=SIM-1 %s", known[k].chip);
        find_truth(&chip);
        snprintf(beside, sizeof beside, "%s %s", chip.text, known[k].neighbor);
        const char *const texts[] = {beside, chip.text};
        const enum status status = sim_measure_beside(texts, known[k].states, &r, DEPTH_QUICK, &m);

        if (judge(status, &m, &chip, &score) == WRONG)
            fail_msg("%s\n%s%s", beside, score.text, m.err.text);
        sim_measure_free(&m);
    }
}

/* Neighbors that come and go, or clocks that change, at exactly these moments, with the seed and
 * the number of the measurement. The first neighbor hides the step of a level from the sweep, but
 * not from the control. The clocks of the last four change between two points of a refinement. Hits
 * that became slower looked like fast misses of a full level. A clock that changed by less than the
 * kernels correct made two penalties lower. */
static void those_at_these_moments_are_not_wrong(void **state)
{
    static const struct {
        uint64_t seed, number;
        bool clocks;
    } moments[] = {{20261124, 208987, false}, {31337, 74100, false},    {20261150, 27707, false},
                   {1795934141, 8268, true},  {1795935444, 9824, true}, {1795935444, 3906, true},
                   {1795935444, 8028, true}};
    enum trace trace;

    (void)state;
    for (size_t i = 0; i < sizeof moments / sizeof moments[0]; i++)
        assert_int_not_equal(
            run_case(moments[i].seed, moments[i].number, moments[i].clocks, &trace, true), WRONG);
}

/* Beside these neighbors, no two points of the sweep behind the second level have the same clock.
 * Such a sweep has no plateau there, and the measurement ended without the level and with a map of
 * single SMs. */
static void a_level_without_a_plateau_is_not_lost(void **state)
{
    static const struct {
        uint32_t latency;
        const char *neighbor;
    } cases[] = {{274, "seed=571145 neighbor=6020@700000 reclock=8359@0.740 coupled=0.743"},
                 {283, "seed=438959 neighbor=8096@700000 reclock=7637@0.740 coupled=0.421"},
                 {261, "seed=494634 neighbor=6612@700000 reclock=5489@0.740 coupled=0.349"}};
    static struct chip chip;
    static struct sim_measure m;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char beside[TEXT + 128];
        struct rng r = {i};
        struct truth_score score = {.text = ""};

        snprintf(chip.text, TEXT,
                 "sms=8 memory=1G range=280G uuid=SIM-1 latency=%u spread=40 noise=gauss:1.7 "
                 "outliers=0.0005@3000 l1=16@16M/sm;miss=10 "
                 "l2=2048@32M/0,1,4,5:2,3,6,7;miss=90;sets=8x256;hash=xor",
                 cases[i].latency);
        find_truth(&chip);
        snprintf(beside, sizeof beside, "%s clock=1965000 %s", chip.text, cases[i].neighbor);
        const char *const text = beside;
        const enum status status = sim_measure_beside(&text, 1, &r, DEPTH_QUICK, &m);

        if (judge(status, &m, &chip, &score) == WRONG)
            fail_msg("%s\n%s%s", beside, score.text, m.err.text);
        sim_measure_free(&m);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(those_found_before_are_not_wrong),
                                       cmocka_unit_test(a_level_without_a_plateau_is_not_lost),
                                       cmocka_unit_test(those_at_these_moments_are_not_wrong),
                                       cmocka_unit_test(none_is_wrong)};
    struct tally tally = {0};

    log_set_level(LOG_LEVEL_ERROR);
    if (argc == 1)
        return cmocka_run_group_tests(tests, NULL, NULL);
    const uint64_t count = strtoull(argv[1], NULL, 0);
    const uint32_t processes = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : 2;
    const uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 0) : (uint64_t)time(NULL);

    if (processes < 1 || processes > MAX_PROCESSES)
        return 2;
    printf("# seed %llu, %llu measurements, %u processes\n", (unsigned long long)seed,
           (unsigned long long)count, processes);
    const bool complete = run_all(seed, count, processes, &tally);
    print_table(&tally);
    return complete && count_wrong(&tally) == 0 ? 0 : 1;
}
