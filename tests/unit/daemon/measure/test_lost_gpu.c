/* test_lost_gpu.c: GPUs that the driver loses, reports again, or reports for the first time, with a
 * real store, real workers and the real plan. The worker is this program, started with --worker.
 * The worker reads the list of simulated GPUs from a file. So a test can remove a GPU and restore
 * it, or add another GPU. */
#include "gpu/gpu.h"

#include "gpu/sim/sim_desc.h"
#include "measure/pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { CHILD_FD = 3, TEXT_BYTES = 256, MOST_SHOWN = REACH_MAX_GPUS + 2, LOOK_AGAIN_MS = 5 };

#define CHIP                                                                                       \
    "sms=8 memory=1G latency=200 noise=gauss:1 l1=16@2M/2;miss=20 l2=128@2M/%s;miss=150 uuid=%s"

static char folder[] = "/tmp/reach-lost-XXXXXX";
static char shown_path[80], draft_path[80], reset_path[80];

/* ---- the driver of the worker ------------------------------------------------------------ */

/* Replaces the source of gpu.c. For any request, the GPUs are listed in a file, one on each line.
 * If the file is empty, there is no driver. */
static enum status shown(const struct gpu_options *options, struct gpu_options *out,
                         struct err *err)
{
    static char text[MOST_SHOWN][TEXT_BYTES];
    static const char *texts[MOST_SHOWN + 1];
    const char *const path = getenv("REACH_TEST_SHOWN");
    FILE *const file = path ? fopen(path, "re") : NULL;
    int n = 0;

    while (file && n < MOST_SHOWN && fgets(text[n], TEXT_BYTES, file)) {
        text[n][strcspn(text[n], "\n")] = '\0';
        texts[n] = text[n];
        n++;
    }
    if (file)
        fclose(file);
    if (n == 0)
        return err_set(err, STATUS_NO_DRIVER, "no file says which GPU there is");
    texts[n] = NULL;
    *out = *options;
    out->simulated = texts;
    return STATUS_OK;
}

enum status gpu_find(const struct gpu_options *options, gpu_found_fn *found, void *self,
                     struct err *err)
{
    const char *one[] = {NULL, NULL};
    struct gpu_options now, next;
    enum status status = shown(options, &now, err);

    for (uint32_t i = 0; !status && now.simulated[i]; i++) {
        one[0] = now.simulated[i];
        next = now;
        next.simulated = one;
        status = sim_gpu_ops.list(&next, found, self, err);
    }
    return status;
}

/* Without a UUID the first GPU would be opened, but no test requests that. */
enum status gpu_list(const struct gpu_options *options, struct gpu_identity *out, uint32_t max,
                     uint32_t *out_count, struct err *err)
{
    (void)options;
    (void)out;
    (void)max;
    *out_count = 0;
    return err_set(err, STATUS_INTERNAL, "a list of all GPUs is not needed");
}

enum status gpu_open(const struct gpu_options *options, const char *uuid, struct gpu **out,
                     struct err *err)
{
    struct gpu_options now;
    enum status status = shown(options, &now, err);

    *out = NULL;
    return status ? status : sim_gpu_ops.open(&now, uuid, out, err);
}

void gpu_describe(const struct gpu *gpu, struct gpu_identity *identity, struct gpu_limits *limits)
{
    struct gpu_identity unwanted_identity;
    struct gpu_limits unwanted_limits;

    gpu->ops->describe(gpu, identity ? identity : &unwanted_identity,
                       limits ? limits : &unwanted_limits);
}

enum status gpu_run(struct gpu *gpu, const struct probe_spec *spec, struct probe_result *out,
                    struct err *err)
{
    const char *const reset = getenv("REACH_TEST_RESET");

    memset(out, 0, sizeof *out);
    if (reset && access(reset, F_OK) == 0)
        return err_set(err, STATUS_GPU_LOST, "another process has reset the GPU");
    return gpu->ops->run(gpu, spec, out, err);
}

void gpu_close(struct gpu *take)
{
    if (take) {
        take->ops->close(take);
    }
}

/* ---- the daemon's side ------------------------------------------------------------------- */

/* Makes the driver report these GPUs from now on, one on each line. */
static void show_all(const char *lines)
{
    FILE *const file = fopen(draft_path, "we");

    assert_non_null(file);
    assert_true(fputs(lines, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename(draft_path, shown_path),
                     0); /* the file is replaced atomically, because a worker may be reading it */
}

/* Makes the driver report only this GPU from now on. */
static void show(const char *groups, const char *uuid)
{
    char line[TEXT_BYTES];

    (void)snprintf(line, sizeof line, CHIP, groups, uuid);
    show_all(line);
}

/* Waits until this measurement exists and has ended. */
static struct measurement await(struct pipeline *p, const char *id)
{
    const struct timespec step = {.tv_nsec = 2000000};
    struct measurement measurement = {.state = MEASUREMENT_QUEUED};
    struct err err = {0};

    while (pipeline_measurement(p, id, &measurement, &err) ||
           measurement.state == MEASUREMENT_QUEUED || measurement.state == MEASUREMENT_RUNNING) {
        nanosleep(&step, NULL);
    }
    return measurement;
}

static struct snapshot_gpu *gpu_of(struct snapshot_cell *cell)
{
    static struct snapshot_gpu gpu;
    const struct snapshot *s = snapshot_acquire(cell);

    assert_int_equal(s->gpu_count, 1);
    gpu = s->gpus[0];
    snapshot_release(s);
    return &gpu;
}

/* The driver reports no GPU, and the next measurement detects the loss. The fingerprint stays. */
static void lose(struct pipeline *p, struct snapshot_cell *cell)
{
    const struct snapshot_gpu before = *gpu_of(cell);
    struct measurement measurement;
    struct err err = {0};

    show_all("");
    assert_int_equal(pipeline_submit(p, "SIM-lost", DEPTH_QUICK, &measurement, &err), STATUS_OK);
    measurement = await(p, measurement.id);
    assert_int_equal(measurement.state, MEASUREMENT_FAILED);
    assert_int_equal(measurement.error.status, STATUS_NO_DRIVER);

    const struct snapshot_gpu *const gpu = gpu_of(cell);

    assert_int_equal(gpu->state, GPU_STATE_LOST);
    assert_int_equal(gpu->last_error.status, STATUS_NO_DRIVER);
    assert_true(gpu->has_fingerprint);
    assert_string_equal(gpu->fingerprint_id, before.fingerprint_id);
}

static void a_lost_gpu_comes_back(void **state)
{
    static const char *const any[] = {"k80", NULL};
    const struct pipeline_options options = {.executable = "/proc/self/exe",
                                             .gpu = {.simulated = any},
                                             .measure_unknown = true,
                                             .check_known = true,
                                             .rediscover_ms = LOOK_AGAIN_MS};
    struct store *store = NULL;
    struct snapshot_cell *const cell = snapshot_cell_new();
    struct pipeline *p = NULL;
    struct measurement measurement;
    struct err err = {0};

    (void)state;
    show("4", "SIM-lost");
    assert_non_null(cell);
    assert_int_equal(store_open(":memory:", &store, &err), STATUS_OK);
    assert_int_equal(pipeline_start(&options, store, cell, &p, &err), STATUS_OK);
    for (const char *const *id = (const char *const[]){"m-1", "m-2", NULL}; *id; id++) {
        measurement = await(p, *id);
        assert_int_equal(measurement.kind, MEASUREMENT_NEW);
        assert_int_equal(measurement.state, MEASUREMENT_DONE);
    }

    char first[FINGERPRINT_ID_BYTES];

    memcpy(first, gpu_of(cell)->fingerprint_id, sizeof first);
    assert_int_equal(gpu_of(cell)->fingerprint.topology.partition.group_count, 2);

    /* If the same chip returns, it is checked and not measured again. */
    lose(p, cell);
    show("4", "SIM-lost");
    measurement = await(p, "m-4");
    assert_int_equal(measurement.kind, MEASUREMENT_CHECK);
    assert_int_equal(measurement.state, MEASUREMENT_DONE);
    assert_int_equal(gpu_of(cell)->state, GPU_STATE_READY);
    assert_false(gpu_of(cell)->fingerprint_stale);
    assert_int_equal(gpu_of(cell)->last_error.status, STATUS_OK);
    assert_string_equal(gpu_of(cell)->fingerprint_id, first);

    /* If the groups have changed, the fingerprint is stale, and the chip is measured again. */
    lose(p, cell);
    show("0,1,2,4:3,5,6,7", "SIM-lost");
    measurement = await(p, "m-6");
    assert_int_equal(measurement.kind, MEASUREMENT_CHECK);
    assert_int_equal(measurement.state, MEASUREMENT_DONE);
    assert_non_null(strstr(measurement.message, "changed"));
    measurement = await(p, "m-7");
    assert_int_equal(measurement.kind, MEASUREMENT_NEW);
    assert_int_equal(measurement.state, MEASUREMENT_DONE);
    assert_int_equal(gpu_of(cell)->state, GPU_STATE_READY);
    assert_false(gpu_of(cell)->fingerprint_stale);
    assert_string_not_equal(gpu_of(cell)->fingerprint_id, first);
    assert_int_equal(gpu_of(cell)->fingerprint.topology.partition.group_of_sm[4], 0);
    assert_int_equal(pipeline_measurement(p, "m-8", &measurement, &err), STATUS_NOT_FOUND);
    pipeline_stop(p);
    snapshot_cell_free(cell);
    store_close(store);
}

/* ---- GPUs that come and go ---------------------------------------------------------------- */

#define ONE       CHIP_OF("SIM-one", "driver=1")
#define ONE_NEWER CHIP_OF("SIM-one", "driver=2")
#define TWO       CHIP_OF("SIM-two", "driver=1")
#define THREE     CHIP_OF("SIM-three", "driver=1")
#define CHIP_OF(uuid, more)                                                                        \
    "sms=8 memory=1G latency=200 noise=gauss:1 l1=16@2M/2;miss=20 l2=128@2M/4;miss=150 "           \
    "uuid=" uuid " " more "\n"

struct node {
    struct store *store;
    struct snapshot_cell *cell;
    struct pipeline *p;
};

static void begin(struct node *n, const char *lines, bool later)
{
    static const char *const any[] = {"k80", NULL};
    const struct pipeline_options options = {.executable = "/proc/self/exe",
                                             .gpu = {.simulated = any},
                                             .measure_unknown = true,
                                             .check_known = true,
                                             .discover_later = later,
                                             .rediscover_ms = LOOK_AGAIN_MS,
                                             .retry_ms = LOOK_AGAIN_MS,
                                             .busy_ms = LOOK_AGAIN_MS};
    struct err err = {0};

    show_all(lines);
    n->cell = snapshot_cell_new();
    assert_non_null(n->cell);
    assert_int_equal(store_open(":memory:", &n->store, &err), STATUS_OK);
    assert_int_equal(pipeline_start(&options, n->store, n->cell, &n->p, &err), STATUS_OK);
}

static void end(struct node *n)
{
    pipeline_stop(n->p);
    snapshot_cell_free(n->cell);
    store_close(n->store);
}

/* The driver is queried again, like on SIGHUP. */
static void ask(struct node *n, const char *lines)
{
    struct err err = {0};

    show_all(lines);
    assert_int_equal(pipeline_rediscover(n->p, &err), STATUS_OK);
}

/* Waits until the GPU at this place has this UUID and state, and returns it. */
static const struct snapshot_gpu *reaches(struct node *n, uint32_t index, const char *uuid,
                                          enum gpu_state state)
{
    static struct snapshot_gpu gpu;
    const struct timespec step = {.tv_nsec = 2000000};

    for (bool there = false; !there; nanosleep(&step, NULL)) {
        const struct snapshot *s = snapshot_acquire(n->cell);
        there = index < s->gpu_count && s->gpus[index].state == state;
        if (there)
            gpu = s->gpus[index];
        snapshot_release(s);
    }
    assert_string_equal(gpu.identity.uuid, uuid);
    return &gpu;
}

static void a_gpu_is_added_and_another_goes(void **state)
{
    struct node n;
    struct measurement measurement;
    struct err err = {0};
    char first[FINGERPRINT_ID_BYTES];

    (void)state;
    begin(&n, ONE, false);
    memcpy(first, reaches(&n, 0, "SIM-one", GPU_STATE_READY)->fingerprint_id, sizeof first);

    /* A GPU is added in front of the other one, which keeps its place and is not measured again. */
    ask(&n, TWO ONE);
    assert_true(reaches(&n, 1, "SIM-two", GPU_STATE_READY)->has_fingerprint);
    assert_string_equal(reaches(&n, 0, "SIM-one", GPU_STATE_READY)->fingerprint_id, first);
    assert_int_equal(pipeline_submit(n.p, "SIM-two", DEPTH_QUICK, &measurement, &err), STATUS_OK);
    assert_int_equal(await(n.p, measurement.id).state, MEASUREMENT_DONE);

    /* A GPU is removed while no measurement runs. Its state is lost immediately, and the other GPU
     * is unchanged. */
    ask(&n, TWO);
    const struct snapshot_gpu *gpu = reaches(&n, 0, "SIM-one", GPU_STATE_LOST);
    assert_int_equal(gpu->last_error.status, STATUS_NOT_FOUND);
    assert_string_equal(gpu->fingerprint_id, first);
    (void)reaches(&n, 1, "SIM-two", GPU_STATE_READY);

    /* The search for a lost GPU also finds a third GPU, without a request. */
    show_all(TWO THREE);
    assert_true(reaches(&n, 2, "SIM-three", GPU_STATE_READY)->has_fingerprint);
    (void)reaches(&n, 0, "SIM-one", GPU_STATE_LOST);
    show_all(ONE TWO THREE);
    assert_int_equal(reaches(&n, 0, "SIM-one", GPU_STATE_READY)->last_error.status, STATUS_OK);
    end(&n);
}

/* The driver is unloaded, and every GPU is lost. A newer driver is loaded, and the fingerprints
 * are stale. */
static void the_driver_is_reloaded(void **state)
{
    struct node n;
    char first[FINGERPRINT_ID_BYTES];

    (void)state;
    begin(&n, ONE TWO, true);
    memcpy(first, reaches(&n, 0, "SIM-one", GPU_STATE_READY)->fingerprint_id, sizeof first);
    (void)reaches(&n, 1, "SIM-two", GPU_STATE_READY);
    ask(&n, "");
    (void)reaches(&n, 0, "SIM-one", GPU_STATE_LOST);
    (void)reaches(&n, 1, "SIM-two", GPU_STATE_LOST);
    show_all(ONE_NEWER TWO);
    const struct snapshot_gpu *const gpu = reaches(&n, 0, "SIM-one", GPU_STATE_READY);
    assert_string_equal(gpu->identity.driver_version, "2");
    assert_string_equal(gpu->fingerprint.gpu.driver_version, "2");
    assert_false(gpu->fingerprint_stale);
    assert_string_not_equal(gpu->fingerprint_id, first);
    (void)reaches(&n, 1, "SIM-two", GPU_STATE_READY);

    /* The driver is replaced, and there is no moment without a driver. */
    ask(&n, ONE TWO);
    for (bool old = true; old;)
        old = strcmp(reaches(&n, 0, "SIM-one", GPU_STATE_READY)->identity.driver_version, "1") != 0;
    assert_string_equal(reaches(&n, 0, "SIM-one", GPU_STATE_READY)->fingerprint.gpu.driver_version,
                        "1");
    end(&n);
}

/* Makes every probe report its context as lost from now on, or ends this fault. */
static void reset_gpu(bool lost)
{
    if (!lost) {
        assert_int_equal(unlink(reset_path), 0);
        return;
    }
    FILE *const file = fopen(reset_path, "we");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
}

/* Runs a measurement during which the GPU is reset, is exchanged or falls off the bus. */
static void fails(struct node *n, const char *id)
{
    struct measurement measurement;
    struct err err = {0};

    reset_gpu(true);
    assert_int_equal(pipeline_submit(n->p, "SIM-one", DEPTH_QUICK, &measurement, &err), STATUS_OK);
    assert_int_equal(await(n->p, measurement.id).error.status, STATUS_GPU_LOST);
    const struct snapshot_gpu *const gpu = reaches(n, 0, "SIM-one", GPU_STATE_FAILED);
    assert_int_equal(gpu->last_error.status, STATUS_GPU_LOST);
    assert_string_equal(gpu->fingerprint_id, id);
}

static void a_gpu_is_reset_while_it_is_measured(void **state)
{
    struct node n;
    char first[FINGERPRINT_ID_BYTES];

    (void)state;
    begin(&n, ONE, false);
    memcpy(first, reaches(&n, 0, "SIM-one", GPU_STATE_READY)->fingerprint_id, sizeof first);
    fails(&n, first);
    reset_gpu(false); /* the GPU works again, so it is checked and not measured */
    const struct snapshot_gpu *gpu = reaches(&n, 0, "SIM-one", GPU_STATE_READY);
    assert_string_equal(gpu->fingerprint_id, first);
    assert_int_equal(gpu->last_error.status, STATUS_OK);

    fails(&n, first);
    show_all(ONE_NEWER);
    reset_gpu(false); /* the GPU has changed, so it is measured */
    gpu = reaches(&n, 0, "SIM-one", GPU_STATE_READY);
    /* A check that reads the list of GPUs before it is replaced finds no change. */
    while (strcmp(gpu->fingerprint.gpu.driver_version, "2") != 0) {
        ask(&n, ONE_NEWER);
        gpu = reaches(&n, 0, "SIM-one", GPU_STATE_READY);
    }
    memcpy(first, gpu->fingerprint_id, sizeof first);

    fails(&n, first);
    /* The GPU is removed, and its state becomes lost. The test lets its probes fail
     * until then; otherwise a check that reads the old list would find the GPU unchanged. */
    show_all("");
    gpu = reaches(&n, 0, "SIM-one", GPU_STATE_LOST);
    assert_int_equal(gpu->last_error.status, STATUS_NO_DRIVER);
    assert_string_equal(gpu->fingerprint_id, first);
    reset_gpu(false);
    show_all(ONE_NEWER);
    assert_string_equal(reaches(&n, 0, "SIM-one", GPU_STATE_READY)->fingerprint_id, first);
    end(&n);
}

/* Waits until all places are taken, and this many GPUs with this UUID are not lost.
 * Returns the number of GPUs. */
static uint32_t count_once(struct node *n, const char *uuid, uint32_t wanted)
{
    const struct timespec step = {.tv_nsec = 2000000};
    uint32_t count = 0;

    for (uint32_t found = wanted + 1; found != wanted || count < REACH_MAX_GPUS;
         nanosleep(&step, NULL)) {
        const struct snapshot *const s = snapshot_acquire(n->cell);
        const struct snapshot_gpu *const gpu = snapshot_find(s, uuid);
        count = s->gpu_count;
        found = gpu && gpu->state != GPU_STATE_LOST;
        assert_true(count <= REACH_MAX_GPUS);
        snapshot_release(s);
    }
    return count;
}

/* The driver reports more GPUs than the node has places for, and the list of GPUs is requested many
 * times in a row. */
static void more_than_there_is_room_for(void **state)
{
    char lines[MOST_SHOWN * TEXT_BYTES] = "";
    size_t length = 0;
    struct node n;
    struct err err = {0};

    (void)state;
    begin(&n, ONE, true);
    (void)reaches(&n, 0, "SIM-one", GPU_STATE_READY);
    for (int i = 0; i < MOST_SHOWN; i++)
        length +=
            (size_t)snprintf(lines + length, sizeof lines - length,
                             "sms=2 memory=64M latency=200 l1=16@2M/2;miss=20 uuid=SIM-%d\n", i);
    show_all(lines);
    for (int i = 0; i < 50; i++)
        assert_int_equal(pipeline_rediscover(n.p, &err), STATUS_OK);
    /* The place of the lost GPU is given to a present GPU. The lost GPU gets a place again when it
     * returns. */
    assert_int_equal(count_once(&n, "SIM-one", 0), REACH_MAX_GPUS);
    ask(&n, ONE);
    assert_int_equal(count_once(&n, "SIM-one", 1), REACH_MAX_GPUS);
    end(&n); /* during measurements */
}

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) {
        return -1;
    }
    snprintf(shown_path, sizeof shown_path, "%s/shown", folder);
    snprintf(draft_path, sizeof draft_path, "%s/draft", folder);
    snprintf(reset_path, sizeof reset_path, "%s/reset", folder);
    return setenv("REACH_TEST_RESET", reset_path, 1) ? -1
                                                     : setenv("REACH_TEST_SHOWN", shown_path, 1);
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(shown_path);
    return rmdir(folder);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_lost_gpu_comes_back),
                                       cmocka_unit_test(a_gpu_is_added_and_another_goes),
                                       cmocka_unit_test(the_driver_is_reloaded),
                                       cmocka_unit_test(a_gpu_is_reset_while_it_is_measured),
                                       cmocka_unit_test(more_than_there_is_room_for)};

    if (argc == 2 && strncmp(argv[1], "--worker", 8) == 0) {
        return worker_main(CHILD_FD, CHILD_FD);
    }
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
