/* test_pipeline.c: measurements, their threads, and published results. */
#include "tests/unit/support/pipeline.h"
#include "fingerprint/fingerprint_json.h"

static void test_first_snapshot(void **state)
{
    struct node n = node_start(":memory:", two_gpus, false);
    const struct snapshot *s = snapshot_acquire(n.cell);

    (void)state;
    assert_string_equal(s->source, "simulated");
    assert_int_equal(s->source_error.status, STATUS_OK);
    assert_int_equal(s->gpu_count, 2);
    assert_int_equal(s->gpus[1].state, GPU_STATE_UNKNOWN);
    assert_false(s->gpus[1].has_fingerprint);
    snapshot_release(s);
    node_stop(&n);
}

static void test_no_driver_is_no_error(void **state)
{
    struct node n = node_start(":memory:", NULL, true);
    const struct snapshot *s = snapshot_acquire(n.cell);
    struct measurement measurement;
    struct err err = {0};

    (void)state;
    assert_string_equal(s->source, "cuda");
    assert_int_equal(s->gpu_count, 0);
    assert_int_equal(s->source_error.status, STATUS_NO_DRIVER);
    assert_false(s->discovering);
    assert_true(s->source_error.text[0] != '\0');
    snapshot_release(s);
    assert_int_equal(pipeline_submit(n.pipeline, "GPU-0", DEPTH_QUICK, &measurement, &err),
                     STATUS_NOT_FOUND);
    node_stop(&n);
}

static void test_a_measurement_ends_in_a_fingerprint(void **state)
{
    struct node n = node_start(":memory:", two_gpus, false);
    struct measurement measurement = measure(&n, 1, DEPTH_QUICK);
    const struct snapshot_gpu *gpu = gpu_of(&n, 1);
    struct store_observation_row rows[20];
    struct fingerprint stored;
    struct err err = {0};
    uint32_t count = 0;

    (void)state;
    assert_int_equal(measurement.state, MEASUREMENT_DONE);
    assert_true(measurement.progress == 1.0);
    assert_true(measurement.queued_at && measurement.started_at >= measurement.queued_at &&
                measurement.ended_at >= measurement.started_at);
    assert_int_equal(gpu->state, GPU_STATE_READY);
    assert_true(gpu->has_fingerprint);
    assert_string_equal(gpu->fingerprint_id, measurement.fingerprint_id);
    assert_true(gpu->fingerprint.taken_at >= measurement.started_at);
    assert_true(gpu->fingerprint.probe_ms <= gpu->fingerprint.duration_ms);
    assert_true(gpu->fingerprint.device_memory_bytes > 0);
    assert_int_equal(store_current_fingerprint(n.store, measurement.uuid, &stored, &err),
                     STATUS_OK);
    char id[FINGERPRINT_ID_BYTES];

    assert_int_equal(fingerprint_id(&stored, id, NULL), STATUS_OK);
    assert_string_equal(id, measurement.fingerprint_id);
    assert_int_equal(
        store_list_observations(n.store, measurement.uuid, 0, 0, rows, 20, &count, &err),
        STATUS_OK);
    assert_int_equal(count, STEPS * SPECS_A_STEP);
    assert_int_equal(gpu_of(&n, 0)->state, GPU_STATE_UNKNOWN);
    node_stop(&n);
}

/* Loads the observations of the only measurement. */
static void load_only_run(const struct node *n, const char *uuid, struct observation_set *out)
{
    struct store_fingerprint_row row;
    struct err err = {0};
    uint32_t count = 0;

    assert_int_equal(store_list_fingerprints(n->store, uuid, 0, &row, 1, &count, &err), STATUS_OK);
    assert_int_equal(count, 1);
    assert_int_equal(store_load_run(n->store, row.run, out, &err), STATUS_OK);
}

/* The next probe runs while the last result is written to disk. Results keep the order of the
 * campaign's requests. */
static void test_observations_keep_their_order(void **state)
{
    struct node n = node_start(":memory:", one_gpu, false);
    struct measurement measurement = measure(&n, 0, DEPTH_QUICK);
    struct observation_set set = {0};

    (void)state;
    load_only_run(&n, measurement.uuid, &set);
    assert_int_equal(set.count, STEPS * SPECS_A_STEP);
    for (size_t i = 0; i < set.count; i++) {
        assert_int_equal(set.items[i].spec.points[0], 4 + i);
    }
    observation_set_free(&set);
    node_stop(&n);
}

/* A filler runs beside the step that names it, and its answer is stored. A later step that requests
 * the same probe takes this answer. At the end, the measurement waits for pending fillers, so each
 * probe is stored once. */
static void test_fillers_are_run_once(void **state)
{
    static const uint64_t expected[] = {4, 5, 6, 7, 20, 21, 22, 23};
    struct observation_set set = {0};
    struct node n = node_start(":memory:", one_gpu, false);

    (void)state;
    atomic_store(&campaign_fills, 1);
    struct measurement measurement = measure(&n, 0, DEPTH_QUICK);
    atomic_store(&campaign_fills, 0);
    assert_int_equal(measurement.state, MEASUREMENT_DONE);
    load_only_run(&n, measurement.uuid, &set);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        if (times_walked(&set, expected[i]) != 1) {
            fail_msg("%llu pages were walked %u times", (unsigned long long)expected[i],
                     times_walked(&set, expected[i]));
        }
    }
    observation_set_free(&set);
    node_stop(&n);
}

static void test_unknown_names(void **state)
{
    struct node n = node_start(":memory:", one_gpu, false);
    struct measurement measurement;
    struct err err = {0};

    (void)state;
    assert_int_equal(pipeline_submit(n.pipeline, "SIM-none", DEPTH_QUICK, &measurement, &err),
                     STATUS_NOT_FOUND);
    assert_int_equal(
        pipeline_submit(n.pipeline, gpu_of(&n, 0)->identity.uuid, DEPTH_COUNT, &measurement, &err),
        STATUS_INVALID_ARGUMENT);
    assert_int_equal(pipeline_measurement(n.pipeline, "m-1", &measurement, &err), STATUS_NOT_FOUND);
    assert_int_equal(pipeline_measurement(n.pipeline, "", &measurement, &err), STATUS_NOT_FOUND);
    assert_int_equal(gpu_of(&n, 0)->state, GPU_STATE_UNKNOWN);
    node_stop(&n);
}

static void test_queue_and_join(void **state)
{
    struct node n = node_start(":memory:", one_gpu, false);
    struct measurement running, queued, joined, other, now;
    struct err err = {0};

    (void)state;
    atomic_store(&campaign_waits, 1);
    running = submit(&n, 0, DEPTH_QUICK);
    sem_wait(&campaign_is_waiting);
    assert_int_equal(gpu_of(&n, 0)->state, GPU_STATE_MEASURING);
    queued = submit(&n, 0, DEPTH_QUICK);
    joined = submit(&n, 0, DEPTH_QUICK);
    other = submit(&n, 0, DEPTH_FULL);
    assert_string_not_equal(queued.id, running.id);
    assert_string_equal(queued.id, joined.id);
    assert_string_not_equal(queued.id, other.id);
    assert_int_equal(pipeline_measurement(n.pipeline, running.id, &now, &err), STATUS_OK);
    assert_int_equal(now.state, MEASUREMENT_RUNNING);
    assert_int_equal(pipeline_measurement(n.pipeline, other.id, &now, &err), STATUS_OK);
    assert_int_equal(now.state, MEASUREMENT_QUEUED);
    assert_int_equal(gpu_of(&n, 0)->state, GPU_STATE_MEASURING);
    atomic_store(&campaign_waits, 0);
    sem_post(&campaign_go);
    assert_int_equal(await(&n, running.id).state, MEASUREMENT_DONE);
    assert_int_equal(await(&n, queued.id).state, MEASUREMENT_DONE);
    now = await(&n, other.id);
    assert_int_equal(now.state, MEASUREMENT_DONE);
    assert_string_equal(gpu_of(&n, 0)->fingerprint_id, now.fingerprint_id);
    assert_int_equal(gpu_of(&n, 0)->fingerprint.depth, DEPTH_FULL);
    node_stop(&n);
}

/* Two GPUs that are measured at depth memory would disturb each other. */
static void test_one_gpu_at_a_time_at_depth_memory(void **state)
{
    struct node n = node_start(":memory:", two_gpus, false);
    struct measurement now;
    struct err err = {0};

    (void)state;
    atomic_store(&campaign_waits, 1);
    const struct measurement first = submit(&n, 0, DEPTH_MEMORY);
    sem_wait(&campaign_is_waiting);
    const struct measurement second = submit(&n, 1, DEPTH_MEMORY);
    atomic_store(&campaign_waits, 0);
    assert_int_equal(measure(&n, 1, DEPTH_QUICK).state, MEASUREMENT_DONE); /* goes first */
    assert_int_equal(pipeline_measurement(n.pipeline, second.id, &now, &err), STATUS_OK);
    assert_int_equal(now.state, MEASUREMENT_QUEUED);
    sem_post(&campaign_go);
    assert_int_equal(await(&n, first.id).state, MEASUREMENT_DONE);
    assert_int_equal(await(&n, second.id).state, MEASUREMENT_DONE);
    node_stop(&n);
}

static void test_unknown_gpus_are_measured_once(void **state)
{
    struct node n = node_start(database, two_gpus, true);
    char ids[2][FINGERPRINT_ID_BYTES];
    struct measurement measurement;
    struct err err = {0};

    (void)state;
    for (uint32_t i = 1; i <= 4; i++) { /* each GPU at depth quick, then at depth full */
        snprintf(measurement.id, sizeof measurement.id, "m-%u", i);
        assert_int_equal(await(&n, measurement.id).state, MEASUREMENT_DONE);
    }
    for (uint32_t i = 0; i < 2; i++) {
        snprintf(ids[i], sizeof ids[i], "%s", gpu_of(&n, i)->fingerprint_id);
        assert_int_equal(gpu_of(&n, i)->fingerprint.depth, DEPTH_FULL);
    }
    node_stop(&n);

    n = node_start(database, two_gpus, true);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(gpu_of(&n, i)->state, GPU_STATE_READY);
        assert_string_equal(gpu_of(&n, i)->fingerprint_id, ids[i]);
    }
    assert_int_equal(pipeline_measurement(n.pipeline, "m-1", &measurement, &err), STATUS_NOT_FOUND);
    node_stop(&n);
}

/* Polls for the first snapshot of a starting node, and returns the state of GPU 0 in it. The
 * result is GPU_STATE_UNKNOWN if this thread slept while the snapshot was current. */
static void *watch_first_state(void *out)
{
    struct snapshot_cell *cell;
    uint32_t count = 0;

    while (!(cell = atomic_load(&watched_cell)))
        ;
    while (!count) {
        const struct snapshot *s = snapshot_acquire(cell);

        count = s->gpu_count;
        if (count && s->generation == 2) /* generation 1 has no GPUs */
            *(enum gpu_state *)out = s->gpus[0].state;
        snapshot_release(s);
    }
    return NULL;
}

/* If a client waits until a GPU is ready, the GPU that it receives has been checked. */
static void test_nothing_is_ready_before_its_check(void **state)
{
    struct node n = node_start(database, one_gpu, true);
    int seen = 0;

    (void)state;
    assert_int_equal(await(&n, "m-1").state, MEASUREMENT_DONE); /* at depth quick */
    assert_int_equal(await(&n, "m-2").state, MEASUREMENT_DONE);
    node_stop(&n);
    check_known = true;
    for (int i = 0; i < 100 && seen < 10; i++) {
        enum gpu_state first = GPU_STATE_UNKNOWN;
        pthread_t watcher;

        atomic_store(&watched_cell, NULL);
        assert_int_equal(pthread_create(&watcher, NULL, watch_first_state, &first), 0);
        n = node_start(database, one_gpu, true);
        pthread_join(watcher, NULL);
        seen += first != GPU_STATE_UNKNOWN;
        assert_true(first == GPU_STATE_UNKNOWN || first == GPU_STATE_QUEUED);
        assert_int_equal(await(&n, "m-1").state, MEASUREMENT_DONE);
        assert_int_equal(gpu_of(&n, 0)->state, GPU_STATE_READY);
        node_stop(&n);
    }
    print_message("# the first snapshot was seen %d times\n", seen);
    check_known = false;
}

/* A fingerprint that was measured with another driver is served as stale. */
static void test_another_driver(void **state)
{
    struct node n = node_start(database, one_gpu, false);
    struct measurement measurement = measure(&n, 0, DEPTH_QUICK);

    assert_int_equal(measurement.state, MEASUREMENT_DONE);
    struct fingerprint old = gpu_of(&n, 0)->fingerprint;
    struct gpu_limits limits = {.sm_count = old.gpu.sm_count, .arena = ARENA_SIMULATED};
    struct err err = {0};
    int64_t run = 0;

    (void)state;
    snprintf(old.gpu.driver_version, sizeof old.gpu.driver_version, "1.0");
    assert_int_equal(store_begin_run(n.store, &old.gpu, &limits, DEPTH_QUICK, 1, &run, &err),
                     STATUS_OK);
    assert_int_equal(store_finish_run(n.store, run, &old, &old, &err), STATUS_OK);
    node_stop(&n);

    n = node_start(database, one_gpu, false);
    assert_int_equal(gpu_of(&n, 0)->state, GPU_STATE_STALE);
    assert_true(gpu_of(&n, 0)->fingerprint_stale);
    assert_int_equal(gpu_of(&n, 0)->last_error.status, STATUS_CONFLICT);
    assert_true(gpu_of(&n, 0)->has_fingerprint);
    node_stop(&n);

    n = node_start(database, one_gpu, true);
    measurement = await(&n, "m-1");
    assert_int_equal(measurement.state, MEASUREMENT_DONE);
    assert_int_equal(gpu_of(&n, 0)->state, GPU_STATE_READY);
    assert_int_equal(gpu_of(&n, 0)->last_error.status, STATUS_OK);
    node_stop(&n);
}

static void test_measurement_table(void **state)
{
    struct measurement_queue *queue = calloc(1, sizeof *queue);
    int slot = 0;

    (void)state;
    assert_non_null(queue);
    for (int i = 0; i < QUEUE_MAX; i++) {
        slot = queue_add(queue, i % 2 ? "B" : "A", MEASUREMENT_NEW,
                         i % 4 < 2 ? DEPTH_QUICK : DEPTH_FULL, 1);
        assert_true(slot >= 0);
    }
    assert_int_equal(queue_count_waiting(queue, "A"), QUEUE_MAX / 2);
    assert_int_equal(queue_add(queue, "A", MEASUREMENT_NEW, DEPTH_QUICK, 1), QUEUE_NONE);
    assert_string_equal(queue->items[queue_next(queue, "B")].id, "m-2");
    assert_string_equal(
        queue->items[queue_waiting_like(queue, "B", MEASUREMENT_NEW, DEPTH_FULL)].id, "m-4");
    assert_int_equal(queue_waiting_like(queue, "B", MEASUREMENT_NEW, DEPTH_MATRIX), QUEUE_NONE);
    assert_int_equal(queue_next(queue, "C"), QUEUE_NONE);

    /* The oldest measurement that has ended is removed, so that a new one has room. */
    queue->items[queue_find(queue, "m-9")].state = MEASUREMENT_DONE;
    queue->items[queue_find(queue, "m-5")].state = MEASUREMENT_FAILED;
    slot = queue_add(queue, "A", MEASUREMENT_NEW, DEPTH_QUICK, 1);
    assert_true(slot >= 0);
    assert_string_equal(queue->items[slot].id, "m-257");
    assert_int_equal(queue_find(queue, "m-5"), QUEUE_NONE);
    assert_true(queue_find(queue, "m-9") >= 0);
    free(queue);
}

static void test_state_names(void **state)
{
    (void)state;
    assert_string_equal(measurement_state_name(MEASUREMENT_QUEUED), "queued");
    assert_string_equal(measurement_state_name(MEASUREMENT_RUNNING), "running");
    assert_string_equal(measurement_state_name(MEASUREMENT_DONE), "done");
    assert_string_equal(measurement_state_name(MEASUREMENT_FAILED), "failed");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        PIPELINE_TEST(test_first_snapshot),
        PIPELINE_TEST(test_no_driver_is_no_error),
        PIPELINE_TEST(test_a_measurement_ends_in_a_fingerprint),
        PIPELINE_TEST(test_observations_keep_their_order),
        PIPELINE_TEST(test_fillers_are_run_once),
        PIPELINE_TEST(test_unknown_names),
        PIPELINE_TEST(test_queue_and_join),
        PIPELINE_TEST(test_one_gpu_at_a_time_at_depth_memory),
        PIPELINE_TEST(test_unknown_gpus_are_measured_once),
        PIPELINE_TEST(test_nothing_is_ready_before_its_check),
        PIPELINE_TEST(test_another_driver),
        PIPELINE_TEST(test_measurement_table),
        PIPELINE_TEST(test_state_names),
    };

    if (argc == 2 && strcmp(argv[1], "--worker") == 0)
        return child_main();
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
