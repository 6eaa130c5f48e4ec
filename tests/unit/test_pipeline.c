/* test_pipeline.c: measurements, their threads and what is published, over a real store and real
 * workers.
 *
 * The plan and the analysis are stand-ins defined here, so that a test decides what the pipeline is
 * told: when the plan ends, waits, or finds the measurement disturbed. The worker is this program,
 * started with --worker; it measures a simulated K80, or dies where REACH_TEST_WORKER says so.
 */
#include "analysis/analysis.h"
#include "measure/queue.h"
#include "measure/pipeline.h"
#include "campaign/campaign.h"
#include "tests/unit/alloc_fail.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { CHILD_FD = 3, STEPS = 3, SPECS_A_STEP = 3, SHORT_STEP = 67 };

/* ---- the stand-ins ----------------------------------------------------------------------- */

static atomic_int disturbed_left;    /* conclusions that will be disturbed */
static atomic_int nonsense;          /* the conclusion breaks the fingerprint's rules */
static atomic_int empty_left;        /* conclusions that will find the reach of no level */
static atomic_int reach_entries;     /* of the one level that is found; 0: 16 */
static atomic_int odd_left;          /* conclusions that will find half as many */
static atomic_int plan_is_disturbed; /* at its third step */
static atomic_int plan_waits;        /* the plan waits for `plan_go` at its first step */
static sem_t plan_is_waiting, plan_go;
static atomic_int plan_fills; /* the plan is that of plan_with_fillers */

static struct probe_spec walk_of(uint64_t pages)
{
    return (struct probe_spec){.kind = PROBE_CHASE,
                               .stride_bytes = 2 << 20,
                               .point_count = 1,
                               .points = {pages},
                               .samples = 8,
                               .warm_laps = 1,
                               .sm_count = 1};
}

/* Observations of walks of so many pages. */
static uint32_t times_walked(const struct observation_set *set, uint64_t pages)
{
    uint32_t n = 0;

    for (size_t i = 0; i < set->count; i++) {
        n += set->items[i].spec.points[0] == pages;
    }
    return n;
}

enum { PLAN_STEPS = 2, PLAN_SPECS = 3, PLAN_FILLERS = 2 };

/* Two steps. The first has a filler that the second asks for, and one that no step asks for; the
 * last filler is pending when the plan ends. */
static const uint64_t plan_pages[PLAN_STEPS][PLAN_SPECS] = {{4, 5, 6}, {7, 20, 21}};
static const uint64_t plan_filler_pages[PLAN_STEPS][PLAN_FILLERS] = {{22, 20}, {23, 24}};

static void plan_with_fillers(const struct observation_set *set, struct campaign_step *out)
{
    for (uint32_t step = 0; step < PLAN_STEPS && out->spec_count == 0; step++) {
        for (uint32_t i = 0; i < PLAN_SPECS; i++) {
            if (times_walked(set, plan_pages[step][i]) == 0) {
                out->specs[out->spec_count++] = walk_of(plan_pages[step][i]);
            }
        }
        for (uint32_t i = 0; out->spec_count > 0 && i < PLAN_FILLERS; i++) {
            if (times_walked(set, plan_filler_pages[step][i]) == 0) {
                out->specs[out->spec_count + out->filler_count++] =
                    walk_of(plan_filler_pages[step][i]);
            }
        }
    }
}

enum status campaign_next(const struct observation_set *set, enum depth depth,
                          struct campaign_memo *memo, struct campaign_step *out, struct err *err)
{
    size_t step = set->count / SPECS_A_STEP;

    (void)depth;
    (void)memo;
    if (set->count == 0 && atomic_load(&plan_waits)) {
        sem_post(&plan_is_waiting);
        sem_wait(&plan_go);
    }
    if (step == 2 && atomic_load(&plan_is_disturbed)) {
        return err_set(err, STATUS_DISTURBED, "the rounds contradict each other");
    }
    *out = (struct campaign_step){.progress = (double)step / STEPS};
    snprintf(out->message, sizeof out->message, "step %zu", step);
    if (atomic_load(&plan_fills)) {
        out->progress = 0;
        plan_with_fillers(set, out);
        return STATUS_OK;
    }
    if (step < STEPS) {
        out->spec_count = SPECS_A_STEP;
    }
    for (uint32_t i = 0; i < out->spec_count; i++) {
        out->specs[i] = walk_of(4 + set->count + i);
    }
    return STATUS_OK;
}

static bool take_one(atomic_int *left)
{
    return atomic_load(left) > 0 && atomic_fetch_sub(left, 1) > 0;
}

static void conclude_level(struct fingerprint *out)
{
    const uint64_t entry = 2 << 20;
    const int set = atomic_load(&reach_entries);
    const uint64_t entries = (uint64_t)(set ? set : 16) / (take_one(&odd_left) ? 2 : 1);

    out->beyond.probed_bytes = 1 << 30;
    out->level_count = 1;
    out->levels[0].level = 1;
    if (!take_one(&empty_left)) {
        out->levels[0].entry_bytes = KNOWN_U64(entry);
        out->levels[0].entries = KNOWN_U32((uint32_t)entries);
        out->levels[0].reach_bytes = KNOWN_U64(entries * entry);
        out->levels[0].onset_bytes = KNOWN_U64((entries + 1) * entry);
    }
}

enum status analysis_derive(const struct observation_set *set, enum depth depth,
                            struct fingerprint *out, struct err *err)
{
    fingerprint_init(out);
    out->gpu = set->gpu;
    out->depth = depth;
    out->taken_at = 1;
    snprintf(out->conditions.arena, sizeof out->conditions.arena, "simulated");
    conclude_level(out);
    if (depth == DEPTH_FULL) {
        out->throughput.plateau_gbps = KNOWN_F64(100.0);
    }
    if (atomic_load(&disturbed_left) > 0) {
        atomic_fetch_sub(&disturbed_left, 1);
        return err_set(err, STATUS_DISTURBED, "the votes disagree");
    }
    if (atomic_load(&nonsense)) {
        out->level_count = FINGERPRINT_MAX_LEVELS + 1;
    }
    return STATUS_OK;
}

/* ---- the worker's side ------------------------------------------------------------------- */

static int child_main(void)
{
    const char *mode = getenv("REACH_TEST_WORKER");
    const char *marker = getenv("REACH_TEST_MARKER");

    if (mode && strcmp(mode, "dies") == 0) {
        raise(SIGKILL);
    }
    if (mode && marker && strcmp(mode, "sleeps") == 0) {
        close(creat(marker, 0600));
        for (;;) {
            pause();
        }
    }
    if (mode && marker &&
        strcmp(mode, "hangs") == 0) { /* as in a call of the driver, deaf to SIGTERM */
        signal(SIGTERM, SIG_IGN);
        close(creat(marker, 0600));
        for (;;) {
            pause();
        }
    }
    return worker_main(CHILD_FD, CHILD_FD);
}

/* ---- a daemon without its API ------------------------------------------------------------ */

static char folder[] = "/tmp/reach-pipeline-XXXXXX";
static char database[80], marker_path[80];

struct node {
    struct store *store;
    struct snapshot_cell *cell;
    struct pipeline *pipeline;
};

static const char *const two_gpus[] = {"k80", "p100", NULL};
static const char *const one_gpu[] = {"k80", NULL};

static uint32_t grace_ms;                          /* of the next node's workers; 0: as ever */
static bool check_known;                           /* of the next node */
static struct snapshot_cell *_Atomic watched_cell; /* of the node that starts; NULL: none */

static struct node node_start(const char *state, const char *const *simulated, bool measure_unknown)
{
    struct node n = {0};
    struct err err = {0};
    const struct pipeline_options options = {
        .executable = "/proc/self/exe",
        .gpu = {.simulated = simulated, .libcuda = "/nowhere/libcuda.so.1"},
        .measure_unknown = measure_unknown,
        .check_known = check_known,
        .grace_ms = grace_ms,
        .rediscover_ms = 5,
        .retry_ms = 5};

    assert_int_equal(store_open(state, &n.store, &err), STATUS_OK);
    n.cell = snapshot_cell_new();
    assert_non_null(n.cell);
    atomic_store(&watched_cell, n.cell);
    assert_int_equal(pipeline_start(&options, n.store, n.cell, &n.pipeline, &err), STATUS_OK);
    return n;
}

static void node_stop(struct node *n)
{
    pipeline_stop(n->pipeline);
    snapshot_cell_free(n->cell);
    store_close(n->store);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left, not even a dead one */
    assert_int_equal(errno, ECHILD);
}

static struct snapshot_gpu *gpu_of(const struct node *n, uint32_t index)
{
    static struct snapshot_gpu gpu;
    const struct snapshot *s = snapshot_acquire(n->cell);

    assert_true(index < s->gpu_count);
    gpu = s->gpus[index];
    snapshot_release(s);
    return &gpu;
}

static struct measurement submit(const struct node *n, uint32_t index, enum depth depth)
{
    struct measurement measurement;
    struct err err = {0};

    assert_int_equal(
        pipeline_submit(n->pipeline, gpu_of(n, index)->identity.uuid, depth, &measurement, &err),
        STATUS_OK);
    return measurement;
}

/* Waits until it has ended. */
static struct measurement await(const struct node *n, const char *id)
{
    const struct timespec step = {.tv_nsec = 2000000};
    struct measurement measurement;
    struct err err = {0};

    for (;;) {
        assert_int_equal(pipeline_measurement(n->pipeline, id, &measurement, &err), STATUS_OK);
        if (measurement.state == MEASUREMENT_DONE || measurement.state == MEASUREMENT_FAILED) {
            return measurement;
        }
        nanosleep(&step, NULL);
    }
}

static struct measurement measure(const struct node *n, uint32_t index, enum depth depth)
{
    struct measurement measurement = submit(n, index, depth);

    return await(n, measurement.id);
}

/* ---- tests ------------------------------------------------------------------------------- */

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

static void test_a_job_ends_in_a_fingerprint(void **state)
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

/* The observations of the only measurement. */
static void load_only_run(const struct node *n, const char *uuid, struct observation_set *out)
{
    struct store_fingerprint_row row;
    struct err err = {0};
    uint32_t count = 0;

    assert_int_equal(store_list_fingerprints(n->store, uuid, 0, &row, 1, &count, &err), STATUS_OK);
    assert_int_equal(count, 1);
    assert_int_equal(store_load_run(n->store, row.run, out, &err), STATUS_OK);
}

/* One probe ahead of the disk, and still in the order that the plan has asked. */
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

/* A filler runs beside the step that names it and is stored; the step that asks for it takes that
 * answer, and what is pending at the end is awaited. So each probe is stored once. */
static void test_fillers_are_run_once(void **state)
{
    static const uint64_t expected[] = {4, 5, 6, 7, 20, 21, 22, 23};
    struct observation_set set = {0};
    struct node n = node_start(":memory:", one_gpu, false);

    (void)state;
    atomic_store(&plan_fills, 1);
    struct measurement measurement = measure(&n, 0, DEPTH_QUICK);
    atomic_store(&plan_fills, 0);
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
    atomic_store(&plan_waits, 1);
    running = submit(&n, 0, DEPTH_QUICK);
    sem_wait(&plan_is_waiting);
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
    atomic_store(&plan_waits, 0);
    sem_post(&plan_go);
    assert_int_equal(await(&n, running.id).state, MEASUREMENT_DONE);
    assert_int_equal(await(&n, queued.id).state, MEASUREMENT_DONE);
    now = await(&n, other.id);
    assert_int_equal(now.state, MEASUREMENT_DONE);
    assert_string_equal(gpu_of(&n, 0)->fingerprint_id, now.fingerprint_id);
    assert_int_equal(gpu_of(&n, 0)->fingerprint.depth, DEPTH_FULL);
    node_stop(&n);
}

/* Two GPUs that are measured at depth memory would be in each other's way. */
static void test_one_gpu_at_a_time_at_depth_memory(void **state)
{
    struct node n = node_start(":memory:", two_gpus, false);
    struct measurement now;
    struct err err = {0};

    (void)state;
    atomic_store(&plan_waits, 1);
    const struct measurement first = submit(&n, 0, DEPTH_MEMORY);
    sem_wait(&plan_is_waiting);
    const struct measurement second = submit(&n, 1, DEPTH_MEMORY);
    atomic_store(&plan_waits, 0);
    assert_int_equal(measure(&n, 1, DEPTH_QUICK).state, MEASUREMENT_DONE); /* goes first */
    assert_int_equal(pipeline_measurement(n.pipeline, second.id, &now, &err), STATUS_OK);
    assert_int_equal(now.state, MEASUREMENT_QUEUED);
    sem_post(&plan_go);
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
    assert_int_equal(await(&n, "m-1").state, MEASUREMENT_DONE);
    assert_int_equal(await(&n, "m-2").state, MEASUREMENT_DONE);
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

/* The first snapshot of the node that starts, looked for all the time: the state of GPU 0 in it.
 * GPU_STATE_UNKNOWN if this thread slept while it was the newest. */
static void *watch_first_state(void *out)
{
    struct snapshot_cell *cell;
    uint32_t count = 0;

    while (!(cell = atomic_load(&watched_cell)))
        ;
    while (!count) {
        const struct snapshot *s = snapshot_acquire(cell);

        count = s->gpu_count;
        if (count && s->generation == 2) /* 1 is empty */
            *(enum gpu_state *)out = s->gpus[0].state;
        snapshot_release(s);
    }
    return NULL;
}

/* A client that waits until a GPU is ready gets one that has been checked. */
static void test_nothing_is_ready_before_its_check(void **state)
{
    struct node n = node_start(database, one_gpu, true);
    int seen = 0;

    (void)state;
    assert_int_equal(await(&n, "m-1").state, MEASUREMENT_DONE);
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

/* A fingerprint from the time of another driver is served, but said to be out of date. */
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
    assert_int_equal(gpu_of(&n, 0)->fingerprint.depth, DEPTH_QUICK);
    assert_string_equal(gpu_of(&n, 0)->fingerprint.kept[PART_CURVE].id, full.fingerprint_id);
    assert_string_equal(gpu_of(&n, 0)->fingerprint.measurement_id, quick.fingerprint_id);
    assert_int_equal(store_fingerprint(n.store, quick.uuid, quick.fingerprint_id, &measured, &err),
                     STATUS_OK);
    assert_false(IS_KNOWN(measured.throughput.plateau_gbps)); /* history has it as it was */
    node_stop(&n);

    n = node_start(database, one_gpu, false); /* and after a restart */
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

/* Another reach replaces all that was known only if two measurements find the same one. */
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
    assert_string_equal(gpu_of(&n, 0)->fingerprint.dropped.id, before.fingerprint_id);
    node_stop(&n);
}

/* A failed run keeps all that it has seen, the last observation too. */
static void test_failed_runs_keep_their_observations(void **state)
{
    struct node n = node_start(":memory:", one_gpu, false);
    struct store_observation_row rows[20];
    struct err err = {0};
    uint32_t count = 0;
    struct measurement measurement;

    (void)state;
    atomic_store(&plan_is_disturbed, 1);
    measurement = measure(&n, 0, DEPTH_QUICK);
    atomic_store(&plan_is_disturbed, 0);
    assert_int_equal(measurement.error.status, STATUS_DISTURBED);
    assert_int_equal(
        store_list_observations(n.store, measurement.uuid, 0, 0, rows, 20, &count, &err),
        STATUS_OK);
    assert_int_equal(count, 2 * 2 * SPECS_A_STEP); /* two attempts of two steps */
    node_stop(&n);
}

/* Whatever happens to a measurement, the last good fingerprint stays published. */
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

    atomic_store(&nonsense, 1);
    bad = measure(&n, 0, DEPTH_QUICK);
    atomic_store(&nonsense, 0);
    assert_int_equal(bad.state, MEASUREMENT_FAILED);
    assert_int_equal(bad.error.status, STATUS_CORRUPT);
    assert_string_equal(gpu_of(&n, 0)->fingerprint_id, good.fingerprint_id);

    good = measure(&n, 0, DEPTH_QUICK);
    assert_int_equal(good.state, MEASUREMENT_DONE);
    assert_int_equal(gpu_of(&n, 0)->state, GPU_STATE_READY);
    assert_int_equal(gpu_of(&n, 0)->last_error.status, STATUS_OK);
    node_stop(&n);
}

/* The disk is full in the middle of a run: the measurement fails and says so, serving goes on. */
/* What the daemon measures by itself, and could not, it measures again. */
static void test_what_failed_is_tried_again(void **state)
{
    (void)state;
    atomic_store(&disturbed_left, 5); /* two attempts of two measurements, and one */
    struct node n = node_start(":memory:", one_gpu, true);
    struct err err = {0};
    struct measurement measurement;

    assert_int_equal(await(&n, "m-1").error.status, STATUS_DISTURBED);
    while (pipeline_measurement(n.pipeline, "m-3", &measurement, &err) != STATUS_OK) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    assert_int_equal(await(&n, "m-2").error.status, STATUS_DISTURBED);
    assert_int_equal(await(&n, "m-3").state, MEASUREMENT_DONE);
    assert_int_equal(gpu_of(&n, 0)->state, GPU_STATE_READY);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    assert_int_equal(pipeline_measurement(n.pipeline, "m-4", &measurement, &err), STATUS_NOT_FOUND);
    node_stop(&n);
}

/* A worker that does not come back from its driver is left alone and not killed; the GPU is
 * measured by nobody until it has ended, and then looked for again. */
static void test_a_worker_that_hangs_is_left_alone(void **state)
{
    const struct timespec step = {.tv_nsec = 2000000};

    (void)state;
    grace_ms = 10000; /* a thousand times what one needs that does not hang; waited out once */
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

    bad = measure(&n, 0, DEPTH_QUICK); /* without a second worker */
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

static void test_the_store_cannot_be_written(void **state)
{
    struct node n = node_start(database, one_gpu, false);
    struct measurement good = measure(&n, 0, DEPTH_QUICK), bad;
    struct rlimit before, none;
    struct err err = {0};
    bool renewed = false;

    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none = before;
    none.rlim_cur = 1;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    bad = measure(&n, 0, DEPTH_QUICK);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(bad.state, MEASUREMENT_FAILED);
    assert_true(bad.error.status == STATUS_FULL || bad.error.status == STATUS_IO ||
                bad.error.status == STATUS_READ_ONLY);
    assert_string_equal(gpu_of(&n, 0)->fingerprint_id, good.fingerprint_id);
    /* Refused until upkeep has found that there is room. */
    assert_int_equal(
        pipeline_submit(n.pipeline, gpu_of(&n, 0)->identity.uuid, DEPTH_QUICK, &bad, &err),
        STATUS_READ_ONLY);
    assert_int_equal(store_maintain(n.store, &renewed, &err), STATUS_OK);
    good = measure(&n, 0, DEPTH_QUICK);
    assert_int_equal(good.state, MEASUREMENT_DONE);
    node_stop(&n);
}

/* A worker that hangs does not hold up the end; what waits in the queue is forgotten. */
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

/* One measurement while one allocation of this process fails: it ends, whatever its end, and soon
 * what is published is what it says. Returns whether an allocation failed. */
static bool one_short_job(const struct node *n, uint64_t fail_at, uint64_t *failed_jobs)
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
        (*failed_jobs)++;
    }
    while (gpu_of(n, 0)->state !=
           (measurement.state == MEASUREMENT_DONE ? GPU_STATE_READY : GPU_STATE_FAILED)) {
        nanosleep(&step, NULL); /* it is published again without being asked */
    }
    if (measurement.state == MEASUREMENT_DONE) {
        assert_string_equal(gpu_of(n, 0)->fingerprint_id, measurement.fingerprint_id);
        assert_string_equal(gpu_of(n, 0)->identity.uuid, measurement.uuid);
    } else {
        assert_int_equal(gpu_of(n, 0)->last_error.status, STATUS_NO_MEMORY);
    }
    return alloc_fail.failures > 0;
}

/* Every allocation in long tests, otherwise some. */
static void test_allocations_that_fail(void **state)
{
    const uint64_t a_step = getenv("REACH_LONG") ? 1 : SHORT_STEP;
    struct node n = node_start(":memory:", one_gpu, false);
    uint64_t failed_jobs = 0;
    uint64_t lives = 0;
    bool failed = true;

    (void)state;
    for (uint64_t at = 1; failed; at += a_step, lives++) {
        failed = one_short_job(&n, at, &failed_jobs);
    }
    assert_true(lives > 10 && failed_jobs > 0);
    print_message("%llu measurements, %llu failed\n", (unsigned long long)lives,
                  (unsigned long long)failed_jobs);
    assert_int_equal(measure(&n, 0, DEPTH_QUICK).state, MEASUREMENT_DONE);
    node_stop(&n);
}

static void test_job_table(void **state)
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

    /* The oldest of those that have ended makes room. */
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

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder) || sem_init(&plan_is_waiting, 0, 0) || sem_init(&plan_go, 0, 0)) {
        return -1;
    }
    snprintf(database, sizeof database, "%s/reachd.db", folder);
    snprintf(marker_path, sizeof marker_path, "%s/marker", folder);
    return 0;
}

/* Every test starts without a database. */
static int remove_database(void **state)
{
    static const char *const tails[] = {"", "-wal", "-shm", "-lock"};
    char path[100];

    (void)state;
    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        snprintf(path, sizeof path, "%s%s", database, tails[i]);
        unlink(path);
    }
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(int argc, char **argv)
{
#define TEST(f) cmocka_unit_test_teardown(f, remove_database)
    const struct CMUnitTest tests[] = {
        TEST(test_first_snapshot),
        TEST(test_no_driver_is_no_error),
        TEST(test_a_job_ends_in_a_fingerprint),
        TEST(test_observations_keep_their_order),
        TEST(test_fillers_are_run_once),
        TEST(test_unknown_names),
        TEST(test_queue_and_join),
        TEST(test_one_gpu_at_a_time_at_depth_memory),
        TEST(test_unknown_gpus_are_measured_once),
        TEST(test_nothing_is_ready_before_its_check),
        TEST(test_another_driver),
        TEST(test_disturbed_is_repeated_once),
        TEST(test_a_quick_one_keeps_what_a_full_one_found),
        TEST(test_an_empty_one_is_not_published),
        TEST(test_a_change_is_confirmed),
        TEST(test_failed_runs_keep_their_observations),
        TEST(test_failures_leave_the_last_good_one),
        TEST(test_what_failed_is_tried_again),
        TEST(test_a_worker_that_hangs_is_left_alone),
        TEST(test_the_store_cannot_be_written),
        TEST(test_stop_while_measuring),
        TEST(test_allocations_that_fail),
        TEST(test_job_table),
        TEST(test_state_names),
    };

    if (argc == 2 && strcmp(argv[1], "--worker") == 0) {
        return child_main();
    }
    alloc_fail_install();
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
