/* pipeline.h: a daemon without its API, with a real store and real workers, for the tests of
 * measurements. A test program includes this file once. The campaign and the analysis are stand-ins
 * defined here, so a test decides when the campaign ends or waits, and whether the measurement is
 * disturbed. The worker is the test program itself, started with --worker. The worker measures a
 * simulated K80, or fails in the way that REACH_TEST_WORKER names. */
#pragma once

#include "analysis/analysis.h"
#include "measure/queue.h"
#include "measure/pipeline.h"
#include "campaign/campaign.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

static atomic_int disturbed_left; /* number of results that will be disturbed */
static atomic_int breaks_rules;   /* whether the result breaks the rules of a fingerprint */
static atomic_int empty_left;     /* number of results without the reach of any level */
static atomic_int reach_entries; /* number of entries of the only level that is found; 0 means 16 */
static atomic_int odd_left;      /* number of results with half of these entries */
static atomic_int campaign_is_disturbed; /* whether the third step is disturbed */
static atomic_int campaign_waits;        /* whether the first step waits for `campaign_go` */
static sem_t campaign_is_waiting, campaign_go;
static atomic_int campaign_fills; /* whether the steps are the steps of steps_with_fillers */

static inline struct probe_spec walk_of(uint64_t pages)
{
    return (struct probe_spec){.kind = PROBE_CHASE,
                               .stride_bytes = 2 << 20,
                               .point_count = 1,
                               .points = {pages},
                               .samples = 8,
                               .warm_laps = 1,
                               .sm_count = 1};
}

/* Returns the number of observations of walks over this number of pages. */
static inline uint32_t times_walked(const struct observation_set *set, uint64_t pages)
{
    uint32_t n = 0;

    for (size_t i = 0; i < set->count; i++) {
        n += set->items[i].spec.points[0] == pages;
    }
    return n;
}

enum { CAMPAIGN_STEPS = 2, CAMPAIGN_SPECS = 3, CAMPAIGN_FILLERS = 2 };

/* Makes two steps. The first step has a filler that the second step requests, and a filler that no
 * step requests. The latter filler is pending when the campaign ends. */
static const uint64_t step_pages[CAMPAIGN_STEPS][CAMPAIGN_SPECS] = {{4, 5, 6}, {7, 20, 21}};
static const uint64_t filler_pages[CAMPAIGN_STEPS][CAMPAIGN_FILLERS] = {{22, 20}, {23, 24}};

static inline void steps_with_fillers(const struct observation_set *set, struct campaign_step *out)
{
    for (uint32_t step = 0; step < CAMPAIGN_STEPS && out->spec_count == 0; step++) {
        for (uint32_t i = 0; i < CAMPAIGN_SPECS; i++) {
            if (times_walked(set, step_pages[step][i]) == 0) {
                out->specs[out->spec_count++] = walk_of(step_pages[step][i]);
            }
        }
        for (uint32_t i = 0; out->spec_count > 0 && i < CAMPAIGN_FILLERS; i++) {
            if (times_walked(set, filler_pages[step][i]) == 0) {
                out->specs[out->spec_count + out->filler_count++] = walk_of(filler_pages[step][i]);
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
    if (set->count == 0 && atomic_load(&campaign_waits)) {
        sem_post(&campaign_is_waiting);
        sem_wait(&campaign_go);
    }
    if (step == 2 && atomic_load(&campaign_is_disturbed)) {
        return err_set(err, STATUS_DISTURBED, "the rounds contradict each other");
    }
    *out = (struct campaign_step){.progress = (double)step / STEPS};
    snprintf(out->message, sizeof out->message, "step %zu", step);
    if (atomic_load(&campaign_fills)) {
        out->progress = 0;
        steps_with_fillers(set, out);
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

static inline bool take_one(atomic_int *left)
{
    return atomic_load(left) > 0 && atomic_fetch_sub(left, 1) > 0;
}

static inline void derive_level(struct fingerprint *out)
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
    derive_level(out);
    if (depth == DEPTH_FULL) {
        out->throughput.plateau_gbps = KNOWN_F64(100.0);
    }
    if (atomic_load(&disturbed_left) > 0) {
        atomic_fetch_sub(&disturbed_left, 1);
        return err_set(err, STATUS_DISTURBED, "the votes disagree");
    }
    if (atomic_load(&breaks_rules)) {
        out->level_count = FINGERPRINT_MAX_LEVELS + 1;
    }
    return STATUS_OK;
}

/* ---- the worker's side ------------------------------------------------------------------- */

static inline int child_main(void)
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
        strcmp(mode, "hangs") ==
            0) { /* the worker hangs like in a call of the driver, and ignores SIGTERM */
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

static uint32_t grace_ms; /* grace period of the next node in ms; 0 means the default */
static uint32_t busy_ms;  /* first pause of the next node beside other work in ms; 0 means 5 */
static bool check_known;  /* whether the next node checks known GPUs */
static struct snapshot_cell
    *_Atomic watched_cell; /* cell of the starting node; NULL if no node starts */

static inline struct node node_start(const char *state, const char *const *simulated,
                                     bool measure_unknown)
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
        .retry_ms = 5,
        .busy_ms = busy_ms ? busy_ms : 5};

    assert_int_equal(store_open(state, &n.store, &err), STATUS_OK);
    n.cell = snapshot_cell_new();
    assert_non_null(n.cell);
    atomic_store(&watched_cell, n.cell);
    assert_int_equal(pipeline_start(&options, n.store, n.cell, &n.pipeline, &err), STATUS_OK);
    return n;
}

static inline void node_stop(struct node *n)
{
    pipeline_stop(n->pipeline);
    snapshot_cell_free(n->cell);
    store_close(n->store);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left, not even a zombie */
    assert_int_equal(errno, ECHILD);
}

static inline struct snapshot_gpu *gpu_of(const struct node *n, uint32_t index)
{
    static struct snapshot_gpu gpu;
    const struct snapshot *s = snapshot_acquire(n->cell);

    assert_true(index < s->gpu_count);
    gpu = s->gpus[index];
    snapshot_release(s);
    return &gpu;
}

static inline struct measurement submit(const struct node *n, uint32_t index, enum depth depth)
{
    struct measurement measurement;
    struct err err = {0};

    assert_int_equal(
        pipeline_submit(n->pipeline, gpu_of(n, index)->identity.uuid, depth, &measurement, &err),
        STATUS_OK);
    return measurement;
}

/* Waits until the measurement has ended. */
static inline struct measurement await(const struct node *n, const char *id)
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

static inline struct measurement measure(const struct node *n, uint32_t index, enum depth depth)
{
    struct measurement measurement = submit(n, index, depth);

    return await(n, measurement.id);
}

/* ---- each test --------------------------------------------------------------------------- */

static inline int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder) || sem_init(&campaign_is_waiting, 0, 0) || sem_init(&campaign_go, 0, 0)) {
        return -1;
    }
    snprintf(database, sizeof database, "%s/reachd.db", folder);
    snprintf(marker_path, sizeof marker_path, "%s/marker", folder);
    return 0;
}

/* Every test starts without a database. */
static inline int remove_database(void **state)
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

static inline int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

#define PIPELINE_TEST(f) cmocka_unit_test_teardown(f, remove_database)
