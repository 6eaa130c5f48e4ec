/* test_lost_gpu.c: a GPU that the driver loses and shows again, over a real store, real workers and
 * the real plan. The worker is this program, started with --worker. Which simulated GPU its driver
 * shows it reads from a file, so that a test can take the GPU away and put it, or another, back.
 */
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

enum { CHILD_FD = 3, TEXT_BYTES = 256, LOOK_AGAIN_MS = 5 };

#define CHIP                                                                                       \
    "sms=8 memory=1G latency=200 noise=gauss:1 l1=16@2M/2;miss=20 l2=128@2M/%s;miss=150 uuid=%s"

static char folder[] = "/tmp/reach-lost-XXXXXX";
static char shown_path[80], draft_path[80];

/* ---- the driver of the worker ------------------------------------------------------------ */

/* In the place of the file's own source (gpu.c): whatever was asked for, what the file describes.
 */
static enum status shown(const struct gpu_options *options, char *text, const char **texts,
                         struct gpu_options *out, struct err *err)
{
    const char *const path = getenv("REACH_TEST_SHOWN");
    FILE *const file = path ? fopen(path, "re") : NULL;

    if (!file || !fgets(text, TEXT_BYTES, file)) {
        if (file) {
            fclose(file);
        }
        return err_set(err, STATUS_NO_DRIVER, "no file says which GPU there is");
    }
    fclose(file);
    texts[0] = text;
    texts[1] = NULL;
    *out = *options;
    out->simulated = texts;
    return STATUS_OK;
}

enum status gpu_list(const struct gpu_options *options, struct gpu_identity *out, uint32_t max,
                     uint32_t *out_count, struct err *err)
{
    char text[TEXT_BYTES];
    const char *texts[2];
    struct gpu_options now;
    enum status status = shown(options, text, texts, &now, err);

    *out_count = 0;
    return status ? status : sim_gpu_ops.list(&now, out, max, out_count, err);
}

enum status gpu_open(const struct gpu_options *options, const char *uuid, struct gpu **out,
                     struct err *err)
{
    char text[TEXT_BYTES];
    const char *texts[2];
    struct gpu_options now;
    enum status status = shown(options, text, texts, &now, err);

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
    memset(out, 0, sizeof *out);
    return gpu->ops->run(gpu, spec, out, err);
}

void gpu_close(struct gpu *take)
{
    if (take) {
        take->ops->close(take);
    }
}

/* ---- the daemon's side ------------------------------------------------------------------- */

/* From now on the driver shows this GPU and no other. */
static void show(const char *groups, const char *uuid)
{
    FILE *const file = fopen(draft_path, "we");

    assert_non_null(file);
    fprintf(file, CHIP, groups, uuid);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename(draft_path, shown_path), 0); /* at once: a worker may be reading */
}

/* Waits until there is such a measurement and it has ended. */
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

/* The driver shows another GPU; the next measurement finds out. The fingerprint stays. */
static void lose(struct pipeline *p, struct snapshot_cell *cell)
{
    const struct snapshot_gpu before = *gpu_of(cell);
    struct measurement measurement;
    struct err err = {0};

    show("4", "SIM-other");
    assert_int_equal(pipeline_submit(p, "SIM-lost", DEPTH_QUICK, &measurement, &err), STATUS_OK);
    measurement = await(p, measurement.id);
    assert_int_equal(measurement.state, MEASUREMENT_FAILED);
    assert_int_equal(measurement.error.status, STATUS_NOT_FOUND);

    const struct snapshot_gpu *const gpu = gpu_of(cell);

    assert_int_equal(gpu->state, GPU_STATE_LOST);
    assert_int_equal(gpu->last_error.status, STATUS_NOT_FOUND);
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
    measurement = await(p, "m-1");
    assert_int_equal(measurement.kind, MEASUREMENT_NEW);
    assert_int_equal(measurement.state, MEASUREMENT_DONE);

    char first[FINGERPRINT_ID_BYTES];

    memcpy(first, gpu_of(cell)->fingerprint_id, sizeof first);
    assert_int_equal(gpu_of(cell)->fingerprint.topology.partition.group_count, 2);

    /* The same chip: looked at, and not measured again. */
    lose(p, cell);
    show("4", "SIM-lost");
    measurement = await(p, "m-3");
    assert_int_equal(measurement.kind, MEASUREMENT_CHECK);
    assert_int_equal(measurement.state, MEASUREMENT_DONE);
    assert_int_equal(gpu_of(cell)->state, GPU_STATE_READY);
    assert_false(gpu_of(cell)->fingerprint_stale);
    assert_int_equal(gpu_of(cell)->last_error.status, STATUS_OK);
    assert_string_equal(gpu_of(cell)->fingerprint_id, first);

    /* With other groups: what was measured is stale, and it is measured again. */
    lose(p, cell);
    show("0,1,2,4:3,5,6,7", "SIM-lost");
    measurement = await(p, "m-5");
    assert_int_equal(measurement.kind, MEASUREMENT_CHECK);
    assert_int_equal(measurement.state, MEASUREMENT_DONE);
    assert_non_null(strstr(measurement.message, "changed"));
    measurement = await(p, "m-6");
    assert_int_equal(measurement.kind, MEASUREMENT_NEW);
    assert_int_equal(measurement.state, MEASUREMENT_DONE);
    assert_int_equal(gpu_of(cell)->state, GPU_STATE_READY);
    assert_false(gpu_of(cell)->fingerprint_stale);
    assert_string_not_equal(gpu_of(cell)->fingerprint_id, first);
    assert_int_equal(gpu_of(cell)->fingerprint.topology.partition.group_of_sm[4], 0);
    assert_int_equal(pipeline_measurement(p, "m-7", &measurement, &err), STATUS_NOT_FOUND);
    pipeline_stop(p);
    snapshot_cell_free(cell);
    store_close(store);
}

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) {
        return -1;
    }
    snprintf(shown_path, sizeof shown_path, "%s/shown", folder);
    snprintf(draft_path, sizeof draft_path, "%s/draft", folder);
    return setenv("REACH_TEST_SHOWN", shown_path, 1);
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(shown_path);
    return rmdir(folder);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_lost_gpu_comes_back)};

    if (argc == 2 && strncmp(argv[1], "--worker", 8) == 0) {
        return worker_main(CHILD_FD, CHILD_FD);
    }
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
