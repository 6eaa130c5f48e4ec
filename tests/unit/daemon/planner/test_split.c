/* test_split.c: the division of one GPU between several jobs. The tests are cases by hand, and
 * properties of random chips and random sets of jobs. The seed is printed, and TEST_SEED repeats
 * it. */
#include "tests/unit/support/placement_fixture.h"

#include "base/rng.h"
#include "base/units.h"
#include "planner/split.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct fingerprint fp;
static struct split_answer answer;

static void split(const struct split_request *r)
{
    struct err err;

    if (split_jobs(&fp, r, &answer, &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

static void test_by_hand(void **state)
{
    struct split_request r = {.job_count = 2, .jobs = {{.bytes = 40 * GIB}, {.bytes = 100 * GIB}}};

    (void)state;
    placement_make_large(&fp);
    split(&r);
    assert_int_equal(answer.parts[0].sm_count, 66);
    assert_int_equal(answer.parts[1].sm_count, 66);
    assert_int_equal(answer.parts[0].window_count, 1);
    assert_int_equal(answer.parts[1].window_count, 2);
    assert_true(answer.parts[0].fits && answer.parts[1].fits);
    /* If the GPU is split, each job has half of the plateau. Otherwise both jobs share 140 GiB,
     * which exceeds the reach of every TLB. */
    assert_true(answer.parts[0].gbps.v > 1990 && answer.parts[0].gbps.v < 2010);
    assert_true(answer.parts[0].unsplit_gbps.v < 500);
    r.jobs[1].weight = 3;
    split(&r);
    assert_int_equal(answer.parts[0].group_count, 2);
    assert_int_equal(answer.parts[1].group_count, 6);
    /* If a job needs more groups than its weight provides, it gets the groups that it needs. */
    r.jobs[0] = (struct split_job){.bytes = 300 * GIB, .weight = 0.01};
    split(&r);
    assert_true(answer.parts[0].group_count >= 5 && answer.parts[0].fits);
    assert_true(answer.parts[1].fits);
    /* The first job is too large for any part of this chip. Its accesses miss, and the other job
     * keeps its groups. */
    r.jobs[0].bytes = 2000 * GIB;
    split(&r);
    assert_false(answer.parts[0].fits);
    assert_int_equal(answer.parts[0].window_count, 1);
    assert_true(answer.parts[1].fits);
    assert_non_null(strstr(answer.parts[0].why, "miss"));
}

static void test_refusals(void **state)
{
    struct split_request r = {.job_count = 0};
    struct err err;

    (void)state;
    placement_make_large(&fp);
    assert_int_equal(split_jobs(&fp, &r, &answer, &err), STATUS_INVALID_ARGUMENT);
    r = (struct split_request){.job_count = 1, .jobs = {{.bytes = 0}}};
    assert_int_equal(split_jobs(&fp, &r, &answer, &err), STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "bytes"));
    r.jobs[0] = (struct split_job){.bytes = GIB, .weight = -1};
    assert_int_equal(split_jobs(&fp, &r, &answer, &err), STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "weight"));
    r.job_count = 9;
    for (int j = 0; j < 9; j++)
        r.jobs[j] = (struct split_job){.bytes = GIB};
    assert_int_equal(split_jobs(&fp, &r, &answer, &err), STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "8 SM groups"));
    r.job_count = 2;
    fp.topology.partition.group_count = 0;
    assert_int_equal(split_jobs(&fp, &r, &answer, &err), STATUS_NOT_APPLICABLE);
    placement_make_large(&fp);
    fp.windows.reach_bytes = UNKNOWN_U64(REASON_TOO_LITTLE_DATA);
    assert_int_equal(split_jobs(&fp, &r, &answer, &err), STATUS_NOT_APPLICABLE);
}

static uint32_t random_chip(struct rng *rng)
{
    uint32_t sizes[32];
    uint32_t groups = 1 + (uint32_t)rng_below(rng, 32);
    uint64_t entry = (uint64_t)1 << (16 + rng_below(rng, 10));

    placement_make_empty(&fp);
    for (uint32_t g = 0; g < groups; g++)
        sizes[g] = 1 + (uint32_t)rng_below(rng, 8);
    placement_make_groups(&fp, sizes, groups);
    placement_make_limits(&fp, entry * (3 + rng_below(rng, 3000)), entry);
    if (rng_below(rng, 4) == 0) { /* the group of one SM is not certain */
        uint16_t sm = (uint16_t)rng_below(rng, fp.gpu.sm_count);
        uint16_t g = fp.topology.partition.group_of_sm[sm];
        if (fp.topology.groups[g].sm_count > 1) {
            fp.topology.groups[g].sm_count--;
            fp.topology.partition.group_of_sm[sm] = FINGERPRINT_NO_GROUP;
        }
    }
    return groups;
}

/* All SMs of a group are in one job and one window, and all groups work. Windows cover the bytes
 * of each job and stay within the reach. */
static void check(const struct split_request *r, uint32_t groups)
{
    const uint64_t limit = fp.windows.recommended_bytes.v;
    int job_of[REACH_MAX_GROUPS];
    int window_of[REACH_MAX_GROUPS];
    uint32_t sms[SPLIT_MAX_JOBS] = {0};
    uint64_t needed = 0;

    memset(job_of, -1, sizeof(job_of));
    for (uint32_t sm = 0; sm < answer.sm_slots; sm++) {
        uint16_t g = fp.topology.partition.group_of_sm[sm];
        int job = answer.job_of_sm[sm];
        if (g == FINGERPRINT_NO_GROUP) {
            assert_int_equal(job, -1);
            assert_int_equal(answer.window_of_sm[sm], -1);
            continue;
        }
        assert_in_range(job, 0, r->job_count - 1);
        assert_in_range(answer.window_of_sm[sm], 0, answer.parts[job].window_count - 1);
        if (job_of[g] < 0) {
            job_of[g] = job;
            window_of[g] = answer.window_of_sm[sm];
        }
        assert_int_equal(job_of[g], job);
        assert_int_equal(window_of[g], answer.window_of_sm[sm]);
        sms[job]++;
    }
    for (uint32_t g = 0; g < groups; g++)
        assert_true(job_of[g] >= 0);
    for (uint32_t j = 0; j < r->job_count; j++) {
        const struct split_part *p = &answer.parts[j];
        uint64_t next = 0;
        assert_true(p->sm_count > 0 && p->group_count > 0);
        assert_int_equal(p->sm_count, sms[j]);
        for (uint32_t w = 0; w < p->window_count; w++) {
            const struct placement_window *window = &answer.windows[p->first_window + w];
            assert_int_equal(window->first_byte, next);
            assert_true(window->sm_count > 0);
            assert_true(!p->fits || window->length_bytes <= limit);
            next += window->length_bytes;
        }
        assert_int_equal(next, r->jobs[j].bytes);
        needed += (r->jobs[j].bytes - 1) / limit + 1;
    }
    /* If there are enough groups for all jobs, each job gets the groups that it needs. If one group
     * is left over, jobs also fit when their groups are uneven. */
    for (uint32_t j = 0; j < r->job_count; j++) {
        uint64_t own = (r->jobs[j].bytes - 1) / limit + 1;
        if (needed <= groups)
            assert_true(answer.parts[j].group_count >= own);
        if (answer.parts[j].group_count > own)
            assert_true(answer.parts[j].fits);
    }
}

static void test_properties(void **state)
{
    static struct split_answer again;
    const char *given = getenv("TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    struct rng rng = {.state = seed};

    (void)state;
    printf("seed %llu (TEST_SEED)\n", (unsigned long long)seed);
    for (int round = 0; round < 3000; round++) {
        uint32_t groups = random_chip(&rng);
        uint32_t most = groups < SPLIT_MAX_JOBS ? groups : SPLIT_MAX_JOBS;
        struct split_request r = {.job_count = 1 + (uint32_t)rng_below(&rng, most),
                                  .fingerprint_id = "fp0123456789abcdef"};
        for (uint32_t j = 0; j < r.job_count; j++) {
            r.jobs[j].bytes = 1 + rng_below(&rng, fp.windows.reach_bytes.v * 3);
            r.jobs[j].weight = rng_below(&rng, 2) == 0 ? 0 : 0.01 + 5 * rng_unit(&rng);
        }
        split(&r);
        check(&r, groups);
        assert_true(strlen(answer.reason) < sizeof(answer.reason) - 1);
        assert_int_equal(split_jobs(&fp, &r, &again, NULL), STATUS_OK);
        assert_memory_equal(&answer, &again, sizeof(answer));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_properties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
