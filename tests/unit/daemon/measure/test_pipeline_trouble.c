/* test_pipeline_trouble.c: measurements that are disturbed, fail, hang, run out of memory or are
 * stopped. The known fingerprint is still served. */
#include "tests/unit/support/pipeline.h"

#include "tests/unit/support/alloc_fail.h"

static void test_disturbed_is_repeated_once(void **state)
{
    struct node n = node_start(":memory:", one_gpu, false);
    struct measurement measurement;

    (void)state;
    atomic_store(&disturbed_left, 1);
    measurement = measure(&n, 0, DEPTH_QUICK);
    assert_int_equal(measurement.state, MEASUREMENT_DONE);
    atomic_store(&disturbed_left, 2);
    measurement = measure(&n, 0, DEPTH_QUICK);
    assert_int_equal(measurement.state, MEASUREMENT_FAILED);
    assert_int_equal(measurement.error.status, STATUS_DISTURBED);
    assert_string_equal(measurement.error.text, "the votes disagree");
    assert_int_equal(atomic_load(&disturbed_left), 0);
    node_stop(&n);
}

static void test_a_quick_one_keeps_what_a_full_one_found(void **state)
{
    struct node n = node_start(database, one_gpu, false);
    const struct measurement full = measure(&n, 0, DEPTH_FULL);
    const struct measurement quick = measure(&n, 0, DEPTH_QUICK);
    struct fingerprint measured;
    struct err err = {0};

    (void)state;
    assert_int_equal(quick.state, MEASUREMENT_DONE);
    assert_true(IS_KNOWN(gpu_of(&n, 0)->fingerprint.throughput.plateau_gbps));
    assert_int_equal(gpu_of(&n, 0)->fingerprint.depth, DEPTH_FULL);
    assert_int_equal(gpu_of(&n, 0)->fingerprint.measurement_depth, DEPTH_QUICK);
    assert_string_equal(gpu_of(&n, 0)->fingerprint_id, quick.fingerprint_id);
    assert_string_equal(gpu_of(&n, 0)->fingerprint.kept[PART_CURVE].id, full.fingerprint_id);
    assert_string_equal(gpu_of(&n, 0)->fingerprint.measurement_id, quick.measured_id);
    assert_int_equal(store_fingerprint(n.store, quick.uuid, quick.measured_id, &measured, &err),
                     STATUS_OK);
    assert_false(IS_KNOWN(measured.throughput.plateau_gbps)); /* the history contains the quick
                                                                 measurement without kept parts */
    node_stop(&n);

    n = node_start(database, one_gpu, false); /* the kept part is the same after a restart */
    assert_string_equal(gpu_of(&n, 0)->fingerprint.kept[PART_CURVE].id, full.fingerprint_id);
    node_stop(&n);
}

static void test_an_empty_one_is_not_published(void **state)
{
    struct node n = node_start(":memory:", one_gpu, false);
    const struct measurement full = measure(&n, 0, DEPTH_FULL);
    struct measurement measurement;

    (void)state;
    atomic_store(&empty_left, 1);
    measurement = measure(&n, 0, DEPTH_QUICK);
    assert_int_equal(measurement.state, MEASUREMENT_DONE); /* made again */
    atomic_store(&empty_left, 2);
    measurement = measure(&n, 0, DEPTH_QUICK);
    assert_int_equal(measurement.state, MEASUREMENT_FAILED);
    assert_int_equal(measurement.error.status, STATUS_INCONCLUSIVE);
    assert_true(IS_KNOWN(gpu_of(&n, 0)->fingerprint.levels[0].reach_bytes));
    assert_string_equal(gpu_of(&n, 0)->fingerprint.kept[PART_CURVE].id, full.fingerprint_id);
    node_stop(&n);
}

/* A different reach replaces the known fingerprint only if two measurements find it. */
static void test_a_change_is_confirmed(void **state)
{
    struct node n = node_start(":memory:", one_gpu, false);
    struct measurement before, measurement;

    (void)state;
    measure(&n, 0, DEPTH_FULL);
    atomic_store(&odd_left, 1);
    before = measure(&n, 0, DEPTH_QUICK);
    assert_int_equal(before.state, MEASUREMENT_DONE);
    assert_int_equal(gpu_of(&n, 0)->fingerprint.levels[0].entries.v, 16);
    assert_true(IS_KNOWN(gpu_of(&n, 0)->fingerprint.throughput.plateau_gbps));
    assert_string_equal(gpu_of(&n, 0)->fingerprint.dropped.id, "");

    atomic_store(&reach_entries, 64);
    measurement = measure(&n, 0, DEPTH_QUICK);
    atomic_store(&reach_entries, 0);
    assert_int_equal(measurement.state, MEASUREMENT_DONE);
    assert_int_equal(gpu_of(&n, 0)->fingerprint.levels[0].entries.v, 64);
    assert_false(IS_KNOWN(gpu_of(&n, 0)->fingerprint.throughput.plateau_gbps));
    assert_string_equal(gpu_of(&n, 0)->fingerprint.dropped.id, before.measured_id);
    node_stop(&n);
}

/* A failed run keeps all its observations, including the last. */
static void test_failed_runs_keep_their_observations(void **state)
{
    struct node n = node_start(":memory:", one_gpu, false);
    struct store_observation_row rows[20];
    struct err err = {0};
    uint32_t count = 0;
    struct measurement measurement;

    (void)state;
    atomic_store(&campaign_is_disturbed, 1);
    measurement = measure(&n, 0, DEPTH_QUICK);
    atomic_store(&campaign_is_disturbed, 0);
    assert_int_equal(measurement.error.status, STATUS_DISTURBED);
    assert_int_equal(
        store_list_observations(n.store, measurement.uuid, 0, 0, rows, 20, &count, &err),
        STATUS_OK);
    assert_int_equal(count,
                     2 * 2 * SPECS_A_STEP); /* observations of two attempts with two steps each */
    node_stop(&n);
}

/* After any failure of a measurement, the last good fingerprint stays published. */
static void test_failures_leave_the_last_good_one(void **state)
{
    struct node n = node_start(":memory:", one_gpu, false);
    struct measurement good = measure(&n, 0, DEPTH_QUICK), bad;

    (void)state;
    setenv("REACH_TEST_WORKER", "dies", 1);
    bad = measure(&n, 0, DEPTH_QUICK);
    unsetenv("REACH_TEST_WORKER");
    assert_int_equal(bad.state, MEASUREMENT_FAILED);
    assert_int_equal(bad.error.status, STATUS_GPU_LOST);
    assert_non_null(strstr(bad.error.text, "SIGKILL"));
    assert_int_equal(gpu_of(&n, 0)->state, GPU_STATE_FAILED);
    assert_int_equal(gpu_of(&n, 0)->last_error.status, STATUS_GPU_LOST);
    assert_string_equal(gpu_of(&n, 0)->fingerprint_id, good.fingerprint_id);

    atomic_store(&breaks_rules, 1);
    bad = measure(&n, 0, DEPTH_QUICK);
    atomic_store(&breaks_rules, 0);
    assert_int_equal(bad.state, MEASUREMENT_FAILED);
    assert_int_equal(bad.error.status, STATUS_CORRUPT);
    assert_string_equal(gpu_of(&n, 0)->fingerprint_id, good.fingerprint_id);

    good = measure(&n, 0, DEPTH_QUICK);
    assert_int_equal(good.state, MEASUREMENT_DONE);
    assert_int_equal(gpu_of(&n, 0)->state, GPU_STATE_READY);
    assert_int_equal(gpu_of(&n, 0)->last_error.status, STATUS_OK);
    node_stop(&n);
}

/* Waits until the measurement is in the table and has ended. */
static struct measurement await_next(const struct node *n, const char *id)
{
    struct err err = {0};
    struct measurement measurement;

    while (pipeline_measurement(n->pipeline, id, &measurement, &err) != STATUS_OK) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return await(n, id);
}

static void assert_no_measurement(const struct node *n, const char *id)
{
    struct err err = {0};
    struct measurement measurement;

    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    assert_int_equal(pipeline_measurement(n->pipeline, id, &measurement, &err), STATUS_NOT_FOUND);
}

/* If a measurement that the daemon started itself fails, the daemon repeats it. */
static void test_what_failed_is_tried_again(void **state)
{
    (void)state;
    atomic_store(&disturbed_left, 5); /* both attempts of two measurements are disturbed, and the
                                         first attempt of the third */
    struct node n = node_start(":memory:", one_gpu, true);

    assert_int_equal(await(&n, "m-1").error.status, STATUS_DISTURBED);
    assert_int_equal(await_next(&n, "m-2").error.status, STATUS_DISTURBED);
    assert_int_equal(await_next(&n, "m-3").depth, DEPTH_QUICK);
    assert_int_equal(await(&n, "m-3").state, MEASUREMENT_DONE);
    assert_int_equal(await_next(&n, "m-4").depth, DEPTH_FULL);
    assert_int_equal(await(&n, "m-4").state, MEASUREMENT_DONE);
    assert_int_equal(gpu_of(&n, 0)->state, GPU_STATE_READY);
    assert_int_equal(gpu_of(&n, 0)->next_attempt_at, 0);
    assert_no_measurement(&n, "m-5");
    node_stop(&n);
}

/* While the full measurement of a first start runs, the results of a quick one are served. */
static void test_a_first_start_serves_a_quick_measurement_first(void **state)
{
    const char *missing[SNAPSHOT_TOPICS];

    (void)state;
    atomic_store(&campaign_waits, 1);
    struct node n = node_start(database, one_gpu, true);

    sem_wait(&campaign_is_waiting);
    assert_int_equal(snapshot_missing(gpu_of(&n, 0), missing), SNAPSHOT_TOPICS);
    sem_post(&campaign_go);
    sem_wait(&campaign_is_waiting);
    assert_int_equal(await(&n, "m-1").depth, DEPTH_QUICK);
    assert_int_equal(gpu_of(&n, 0)->state, GPU_STATE_MEASURING);
    assert_true(gpu_of(&n, 0)->has_fingerprint);
    assert_int_equal(gpu_of(&n, 0)->fingerprint.depth, DEPTH_QUICK);
    assert_int_equal(snapshot_missing(gpu_of(&n, 0), missing), SNAPSHOT_TOPICS - 2);
    assert_string_equal(missing[0], "throughput");
    atomic_store(&campaign_waits, 0);
    atomic_store(&campaign_is_disturbed, 1); /* the daemon ends before the full measurement does */
    sem_post(&campaign_go);
    assert_int_equal(await(&n, "m-2").error.status, STATUS_DISTURBED);
    node_stop(&n);
    atomic_store(&campaign_is_disturbed, 0);

    n = node_start(database, one_gpu, true); /* the next daemon adds what is missing */
    assert_int_equal(await(&n, "m-1").depth, DEPTH_FULL);
    assert_int_equal(snapshot_missing(gpu_of(&n, 0), missing), 0);
    assert_no_measurement(&n, "m-2");
    node_stop(&n);
}

/* Waits until no measurement of the GPU runs or is due at once. */
static const struct snapshot_gpu *rests(const struct node *n)
{
    const struct snapshot_gpu *gpu = gpu_of(n, 0);

    while (gpu->last_error.status == STATUS_OK || gpu->next_attempt_at == 0 ||
           gpu->state == GPU_STATE_MEASURING) {
        assert_int_not_equal(gpu->state, GPU_STATE_FAILED);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        gpu = gpu_of(n, 0);
    }
    return gpu;
}

/* A GPU that is always in use is measured again and again, and never fails. */
static void test_a_busy_gpu_has_not_failed(void **state)
{
    (void)state;
    atomic_store(&disturbed_left, INT_MAX);
    busy_ms = 60000; /* the test reads the state before the next attempt */
    struct node n = node_start(":memory:", one_gpu, true);

    assert_int_equal(rests(&n)->state, GPU_STATE_QUEUED);
    assert_int_equal(rests(&n)->last_error.status, STATUS_DISTURBED);
    atomic_store(&disturbed_left, 0);
    assert_int_equal(measure(&n, 0, DEPTH_QUICK).state, MEASUREMENT_DONE);
    assert_int_equal(gpu_of(&n, 0)->state, GPU_STATE_READY);
    assert_int_not_equal(gpu_of(&n, 0)->next_attempt_at, 0); /* what is missing has its time */
    atomic_store(&disturbed_left, INT_MAX);
    assert_int_equal(measure(&n, 0, DEPTH_FULL).state, MEASUREMENT_FAILED);
    assert_int_equal(rests(&n)->state, GPU_STATE_READY);
    atomic_store(&disturbed_left, 0);
    assert_int_equal(measure(&n, 0, DEPTH_FULL).state, MEASUREMENT_DONE);
    assert_int_equal(gpu_of(&n, 0)->next_attempt_at, 0);
    busy_ms = 0;
    node_stop(&n);
}

/* A worker that hangs in its driver is not killed. No other worker measures the GPU until the
 * hanging worker has ended. Then the daemon searches for the GPU again. */
static void test_a_worker_that_hangs_is_left_alone(void **state)
{
    const struct timespec step = {.tv_nsec = 2000000};

    (void)state;
    grace_ms = 10000; /* a thousand times the normal time; the test waits for it once */
    struct node n = node_start(":memory:", one_gpu, false);
    struct measurement good = measure(&n, 0, DEPTH_QUICK), bad;
    struct err err = {0};
    int pid = 0;

    grace_ms = 0;
    setenv("REACH_TEST_MARKER", marker_path, 1);
    setenv("REACH_TEST_WORKER", "hangs", 1);
    bad = submit(&n, 0, DEPTH_QUICK);
    while (access(marker_path, F_OK) != 0) {
        nanosleep(&step, NULL);
    }
    unlink(marker_path);
    assert_int_equal(pipeline_cancel(n.pipeline, bad.id, &bad, &err), STATUS_OK);
    bad = await(&n, bad.id);
    assert_int_equal(bad.error.status, STATUS_GPU_HUNG);
    static const char before[] = "the measurement process ";

    assert_memory_equal(bad.error.text, before, strlen(before));
    pid = (int)strtol(bad.error.text + strlen(before), NULL, 10);
    assert_true(pid > 0);
    assert_int_equal(kill(pid, 0), 0);
    assert_int_equal(gpu_of(&n, 0)->state, GPU_STATE_LOST);
    assert_int_equal(gpu_of(&n, 0)->last_error.status, STATUS_GPU_HUNG);
    assert_string_equal(gpu_of(&n, 0)->fingerprint_id, good.fingerprint_id);

    bad = measure(&n, 0, DEPTH_QUICK); /* no second worker runs */
    assert_int_equal(bad.error.status, STATUS_GPU_HUNG);
    assert_int_equal(access(marker_path, F_OK), -1);
    assert_int_equal(kill(pid, 0), 0);

    unsetenv("REACH_TEST_WORKER");
    kill(pid, SIGKILL);
    while (gpu_of(&n, 0)->state != GPU_STATE_READY) {
        nanosleep(&step, NULL);
    }
    assert_int_equal(measure(&n, 0, DEPTH_QUICK).state, MEASUREMENT_DONE);
    node_stop(&n);
}

/* A measurement continues if the store cannot be written. */
static void test_the_store_cannot_be_written(void **state)
{
    struct node n = node_start(database, one_gpu, false);
    struct store_fingerprint_row row;
    struct store_observation_row rows[20];
    struct store_health health;
    struct fingerprint fp;
    struct measurement unwritten;
    struct rlimit before, none;
    struct err err = {0};
    bool renewed = false;
    uint32_t count = 0;

    (void)state;
    (void)measure(&n, 0, DEPTH_QUICK);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none = before;
    none.rlim_cur = 1;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    (void)measure(&n, 0, DEPTH_QUICK);
    unwritten = measure(&n, 0, DEPTH_QUICK);
    assert_int_not_equal(store_maintain(n.store, &renewed, &err), STATUS_OK);
    store_health(n.store, &health);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(unwritten.state, MEASUREMENT_DONE);
    assert_int_equal(gpu_of(&n, 0)->state, GPU_STATE_READY);
    assert_int_equal(
        store_fingerprint(n.store, unwritten.uuid, unwritten.fingerprint_id, &fp, &err), STATUS_OK);
    assert_int_not_equal(health.last_error.status, STATUS_OK);
    assert_int_equal(health.unwritten.fingerprints, 2);
    assert_true(health.unwritten.observations > 0);
    assert_int_equal(store_maintain(n.store, &renewed, &err), STATUS_OK);
    assert_int_equal(store_list_fingerprints(n.store, unwritten.uuid, 0, &row, 1, &count, &err),
                     STATUS_OK);
    assert_string_equal(row.id, unwritten.fingerprint_id);
    assert_int_equal(
        store_list_observations(n.store, unwritten.uuid, row.run, 0, rows, 20, &count, &err),
        STATUS_OK);
    assert_int_equal(2 * count, health.unwritten.observations);
    node_stop(&n);
}

/* A worker that hangs does not delay the end of the daemon. Queued measurements are dropped. */
static void test_stop_while_measuring(void **state)
{
    struct node n = node_start(":memory:", one_gpu, false);
    const struct timespec step = {.tv_nsec = 2000000};
    struct stat st;

    (void)state;
    setenv("REACH_TEST_WORKER", "sleeps", 1);
    setenv("REACH_TEST_MARKER", marker_path, 1);
    submit(&n, 0, DEPTH_QUICK);
    submit(&n, 0, DEPTH_FULL);
    while (stat(marker_path, &st) < 0) {
        nanosleep(&step, NULL);
    }
    unsetenv("REACH_TEST_WORKER");
    node_stop(&n);
    unlink(marker_path);
}

/* Runs one measurement while one allocation of this process fails. The measurement may end in any
 * state, and the published state soon matches that state. Returns whether an allocation failed. */
static bool one_short_measurement(const struct node *n, uint64_t fail_at, uint64_t *failures)
{
    const struct timespec step = {.tv_nsec = 2000000};
    struct err err = {0};
    struct measurement measurement;

    alloc_fail_begin(fail_at);
    enum status status =
        pipeline_submit(n->pipeline, gpu_of(n, 0)->identity.uuid, DEPTH_QUICK, &measurement, &err);

    if (status == STATUS_OK) {
        measurement = await(n, measurement.id);
    }
    alloc_fail.armed = false;
    if (status != STATUS_OK || measurement.state == MEASUREMENT_FAILED) {
        assert_int_equal(status ? status : measurement.error.status, STATUS_NO_MEMORY);
        (*failures)++;
    }
    while (gpu_of(n, 0)->state !=
           (measurement.state == MEASUREMENT_DONE ? GPU_STATE_READY : GPU_STATE_FAILED)) {
        nanosleep(&step, NULL); /* the state is published again without a request */
    }
    if (measurement.state == MEASUREMENT_DONE) {
        assert_string_equal(gpu_of(n, 0)->fingerprint_id, measurement.fingerprint_id);
        assert_string_equal(gpu_of(n, 0)->identity.uuid, measurement.uuid);
    } else {
        assert_int_equal(gpu_of(n, 0)->last_error.status, STATUS_NO_MEMORY);
    }
    return alloc_fail.failures > 0;
}

/* Long tests fail every allocation, and short tests fail some. */
static void test_allocations_that_fail(void **state)
{
    const uint64_t a_step = getenv("REACH_LONG") ? 1 : SHORT_STEP;
    struct node n = node_start(":memory:", one_gpu, false);
    uint64_t failures = 0;
    uint64_t lives = 0;
    bool failed = true;

    (void)state;
    for (uint64_t at = 1; failed; at += a_step, lives++) {
        failed = one_short_measurement(&n, at, &failures);
    }
    assert_true(lives > 10 && failures > 0);
    print_message("%llu measurements, %llu failed\n", (unsigned long long)lives,
                  (unsigned long long)failures);
    assert_int_equal(measure(&n, 0, DEPTH_QUICK).state, MEASUREMENT_DONE);
    node_stop(&n);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        PIPELINE_TEST(test_disturbed_is_repeated_once),
        PIPELINE_TEST(test_a_quick_one_keeps_what_a_full_one_found),
        PIPELINE_TEST(test_an_empty_one_is_not_published),
        PIPELINE_TEST(test_a_change_is_confirmed),
        PIPELINE_TEST(test_failed_runs_keep_their_observations),
        PIPELINE_TEST(test_failures_leave_the_last_good_one),
        PIPELINE_TEST(test_what_failed_is_tried_again),
        PIPELINE_TEST(test_a_first_start_serves_a_quick_measurement_first),
        PIPELINE_TEST(test_a_busy_gpu_has_not_failed),
        PIPELINE_TEST(test_a_worker_that_hangs_is_left_alone),
        PIPELINE_TEST(test_the_store_cannot_be_written),
        PIPELINE_TEST(test_stop_while_measuring),
        PIPELINE_TEST(test_allocations_that_fail),
    };

    if (argc == 2 && strcmp(argv[1], "--worker") == 0)
        return child_main();
    alloc_fail_install();
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
