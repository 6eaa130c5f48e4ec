/* measure_once.c: measures (and exports), or analyzes, and exits. It uses the daemon's pipeline,
 * store and analysis, but serves no clients. */
#include "batch/measure_once.h"

#include "analysis/analysis.h"
#include "base/clock.h"
#include "batch/export.h"
#include "batch/report.h"
#include "fingerprint/fingerprint_check.h"
#include "measure/pipeline.h"
#include "service/state_file.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ONESHOT_POLL_MS = 5 };

/* The state of one --measure. */
struct measure_once {
    const struct config *config;
    const char *version;
    int argc;
    char **argv;
    struct store *store;
    struct snapshot_cell *cell;
    struct pipeline *pipeline;
    uint32_t gpu_count;
    struct gpu_identity gpus[REACH_MAX_GPUS];
    struct measurement queue[REACH_MAX_GPUS];
    uint64_t structures[REACH_MAX_GPUS]; /* structure of the first fingerprint of each GPU */
    uint32_t measured[REACH_MAX_GPUS];
    uint32_t different[REACH_MAX_GPUS]; /* rounds with another structure than the first */
    uint32_t failures;
};

static volatile sig_atomic_t measure_once_stopped;

static void measure_once_on_signal(int number)
{
    (void)number;
    measure_once_stopped = 1;
}

/* Queues `depth` for every GPU and waits until all measurements have ended. */
static enum status measure_once_round(struct measure_once *o, enum depth depth, struct err *err)
{
    const struct timespec step = {.tv_nsec = (long)(ONESHOT_POLL_MS * NSEC_PER_MSEC)};
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < o->gpu_count && !status; i++)
        status = pipeline_submit(o->pipeline, o->gpus[i].uuid, depth, &o->queue[i], err);
    for (uint32_t i = 0; i < o->gpu_count && !status;) {
        status = pipeline_measurement(o->pipeline, o->queue[i].id, &o->queue[i], err);
        if (!status && measurement_is_ended(&o->queue[i])) {
            i++;
        } else if (!status && measure_once_stopped) {
            status = err_set(err, STATUS_CANCELLED, "stopped by a signal");
        } else {
            nanosleep(&step, NULL);
        }
    }
    return status;
}

/* Returns the run of the newest observation of this GPU, or 0 if there is none. */
static int64_t measure_once_newest_run(struct measure_once *o, const char *uuid)
{
    struct store_observation_row row = {0};
    uint32_t count = 0;

    return store_list_observations(o->store, uuid, 0, 0, &row, 1, &count, NULL) == STATUS_OK &&
                   count == 1
               ? row.run
               : 0;
}

/* Appends the circumstances that affect the numbers. */
static enum status measure_once_conditions(struct measure_once *o, const char *folder, uint32_t i,
                                           struct err *err)
{
    char path[EXPORT_PATH_BYTES + 32], now[32];
    const struct gpu_identity *gpu = &o->gpus[i];
    const struct measurement *measurement = &o->queue[i];

    snprintf(path, sizeof path, "%s/conditions.txt", folder);
    FILE *out = fopen(path, "ae");

    if (!out)
        return err_set(err, STATUS_IO, "cannot write %s: %s", path, strerror(errno));
    fprintf(out,
            "date: %s\nreachd: %s\ncommand:", clock_rfc3339(clock_wall_seconds(), now, sizeof now),
            o->version);
    for (int a = 0; a < o->argc; a++) {
        /* The name of the program is written without its folder. */
        const char *slash = a == 0 ? strrchr(o->argv[a], '/') : NULL;
        fprintf(out, " %s", slash ? slash + 1 : o->argv[a]);
    }
    fprintf(out,
            "\ngpu: %s\nuuid: %s\nserial: %s\norigin: %s\ndriver: %s\ncuda: %s\n"
            "depth: %s\nresult: %s\n\n",
            gpu->name, gpu->uuid, gpu->serial[0] ? gpu->serial : "not reported",
            origin_name(gpu->origin), gpu->driver_version, gpu->cuda_version,
            depth_name(measurement->depth), measurement->message);
    const bool broken = ferror(out) != 0;

    return fclose(out) != 0 || broken
               ? err_set(err, STATUS_IO, "cannot write %s: %s", path, strerror(errno))
               : STATUS_OK;
}

/* Returns the failure to store results. The results were printed, but only a stored run can be
 * exported. */
static enum status measure_once_check_stored(struct measure_once *o, struct err *err)
{
    struct store_health health;

    store_health(o->store, &health);
    if (health.last_error.status == STATUS_OK)
        return STATUS_OK;
    return err_set(err, health.last_error.status, "cannot store the results: %s",
                   health.last_error.text);
}

/* Exports the newest run of GPU `i`: its observations and its fingerprint. The fingerprint is NULL
 * if the run failed; the observations are exported all the same. */
static enum status measure_once_export(struct measure_once *o, uint32_t i,
                                       const struct fingerprint *fp, struct err *err)
{
    char folder[EXPORT_PATH_BYTES - 64], path[EXPORT_PATH_BYTES];
    struct observation_set set = {0};
    const char *depth = depth_name(o->queue[i].depth);
    int64_t run = measure_once_newest_run(o, o->gpus[i].uuid);
    enum status status = export_folder(o->config->export_dir, &o->gpus[i], clock_wall_seconds(),
                                       folder, sizeof folder, err);

    status = status ? status : measure_once_conditions(o, folder, i, err);
    if (status)
        return status;
    if (run) {
        snprintf(path, sizeof path, "%s/observations-%s%s.jsonl", folder, depth,
                 fp ? "" : "-failed");
        status = store_load_run(o->store, run, &set, err);
        status = status ? status : export_observations(path, &set, o->queue[i].depth, err);
        observation_set_free(&set);
    }
    if (!status && fp) {
        snprintf(path, sizeof path, "%s/fingerprint-%s.json", folder, depth);
        status = export_fingerprint(path, fp, err);
        snprintf(path, sizeof path, "%s/table-%s.txt", folder, depth_name(fp->depth));
        status = status ? status : export_table(path, fp, err);
    }
    if (!status)
        printf("exported to %s\n", folder);
    return status;
}

/* Counts how often the structure of a GPU differs from its first structure. */
static void measure_once_compare(struct measure_once *o, uint32_t i, const struct fingerprint *fp)
{
    uint64_t structure = fingerprint_structure_hash(fp);

    if (o->measured[i]++ == 0) {
        o->structures[i] = structure;
    } else if (o->structures[i] != structure) {
        o->different[i]++;
    }
}

/* Prints and exports the results of the round for GPU `i`. */
static enum status measure_once_result(struct measure_once *o, uint32_t i, struct err *err)
{
    const struct measurement *measurement = &o->queue[i];
    struct fingerprint *fp = NULL;
    enum status status = STATUS_OK;

    if (measurement->state == MEASUREMENT_FAILED) {
        o->failures++;
        printf("gpu %u %s: depth %s failed (%s): %s\n", i, measurement->uuid,
               depth_name(measurement->depth), status_info(measurement->error.status)->slug,
               measurement->error.text);
    } else {
        fp = calloc(1, sizeof *fp);
        status =
            fp ? store_fingerprint(o->store, measurement->uuid, measurement->measured_id, fp, err)
               : err_no_memory(err, "a fingerprint");
        if (!status) {
            measure_once_compare(o, i, fp);
            printf("\n== gpu %u: %s\n", i, measurement->message);
            status = report_fingerprint(stdout, fp, true, err);
        }
    }
    if (!status)
        status = measure_once_check_stored(o, err);
    if (!status && o->config->export_dir)
        status = measure_once_export(o, i, fp, err);
    fflush(stdout);
    free(fp);
    return status;
}

static enum status measure_once_start(struct measure_once *o, struct err *err)
{
    const struct pipeline_options options = {.executable = "/proc/self/exe",
                                             .gpu = config_gpu_options(o->config)};
    enum status status = config_check_simulated(o->config, err);

    if (!status)
        status = o->config->state_given ? state_file_open(o->config, &o->store, err)
                                        : store_open(":memory:", &o->store, err);
    if (status)
        return status;
    o->cell = snapshot_cell_new();
    if (!o->cell)
        return err_no_memory(err, "a snapshot");
    status = pipeline_start(&options, o->store, o->cell, &o->pipeline, err);
    if (status)
        return status;
    const struct snapshot *view = snapshot_acquire(o->cell);

    /* A GPU that MIG divides is measured through its instances, which are in the list too. */
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        if (!identity_is_divided(&view->gpus[i].identity) && !view->gpus[i].unidentified)
            o->gpus[o->gpu_count++] = view->gpus[i].identity;
    }
    if (view->gpu_count == 0)
        status = err_set(err, view->source_error.status, "%s", view->source_error.text);
    else if (o->gpu_count == 0)
        status = err_set(err, STATUS_NOT_SUPPORTED, "GPU %s cannot be measured: %s",
                         view->gpus[0].identity.uuid, view->gpus[0].last_error.text);
    snapshot_release(view);
    return status;
}

/* Runs all rounds, then prints one line per GPU about the differences between them. */
static enum status measure_once_rounds(struct measure_once *o, struct err *err)
{
    const uint32_t repeats = o->config->repeats ? o->config->repeats : 1;
    enum status status = STATUS_OK;

    for (uint32_t d = 0; d < o->config->depth_count; d++) {
        for (uint32_t r = 0; r < repeats && !status; r++) {
            status = measure_once_round(o, o->config->depths[d], err);
            for (uint32_t i = 0; i < o->gpu_count && !status; i++)
                status = measure_once_result(o, i, err);
        }
    }
    for (uint32_t i = 0; i < o->gpu_count; i++) {
        if (o->measured[i] > 1)
            printf("gpu %u %s: %u fingerprints, %u with another structure than the first\n", i,
                   o->gpus[i].uuid, o->measured[i], o->different[i]);
    }
    if (!status && o->failures)
        status = err_set(err, STATUS_GPU_FAULT, "%u measurements failed", o->failures);
    return status;
}

enum status measure_once_run(const struct config *config, const char *version, int argc,
                             char **argv, struct err *err)
{
    const struct sigaction stop = {.sa_handler = measure_once_on_signal};
    struct measure_once *o = calloc(1, sizeof *o);

    if (!o)
        return err_set(err, STATUS_NO_MEMORY, "cannot start: out of memory");
    o->config = config;
    o->version = version;
    o->argc = argc;
    o->argv = argv;
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);
    enum status status = measure_once_start(o, err);

    status = status ? status : measure_once_rounds(o, err);
    pipeline_stop(o->pipeline);
    snapshot_cell_free(o->cell);
    store_close(o->store);
    free(o);
    return status;
}

/* Fills in the parts of a fingerprint that the pipeline adds, as far as the observations contain
 * them. */
static void measure_once_complete(const struct observation_set *set, struct fingerprint *fp)
{
    nsec_t total = 0;

    for (size_t i = 0; i < set->count; i++)
        total += set->items[i].result.conditions.duration_ns;
    fp->probe_ms = (uint32_t)(total / NSEC_PER_MSEC);
    fp->duration_ms = fp->probe_ms;
    fp->device_memory_bytes = set->limits.device_memory_bytes;
}

enum status measure_once_analyze(const struct config *config, struct err *err)
{
    bool from_stdin = strcmp(config->analyze, "-") == 0;
    FILE *in = from_stdin ? stdin : fopen(config->analyze, "re");
    struct fingerprint *fp = calloc(1, sizeof *fp);
    struct observation_set set = {0};
    enum depth depth = DEPTH_FULL;
    enum status status = STATUS_OK;

    if (!in) {
        status = err_set(err, STATUS_IO, "cannot read %s: %s", config->analyze, strerror(errno));
    } else if (!fp) {
        status = err_no_memory(err, "a fingerprint");
    }
    status = status ? status : export_read_observations(in, &set, &depth, err);
    if (config->analyze_depth_given)
        depth = config->analyze_depth;
    status = status ? status : analysis_derive(&set, depth, fp, err);
    if (!status) {
        measure_once_complete(&set, fp);
        status = fingerprint_check(fp, err);
    }
    status = status ? status : export_print(stdout, fp, err);
    observation_set_free(&set);
    free(fp);
    if (in && !from_stdin)
        fclose(in);
    return status;
}
