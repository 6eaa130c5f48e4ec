/* oneshot.c: measure (and export), conclude. The same pipeline, store and analysis as the daemon
 * has, without the serving. */
#include "oneshot.h"

#include "analysis/analysis.h"
#include "base/clock.h"
#include "base/log.h"
#include "export.h"
#include "pipeline/pipeline.h"
#include "report.h"
#include "serve.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ONESHOT_POLL_MS = 5 };

/* All that one --measure needs. */
struct oneshot {
    const struct config *config;
    const char *version;
    int argc;
    char **argv;
    struct store *store;
    struct snapshot_cell *cell;
    struct pipeline *pipeline;
    uint32_t gpu_count;
    struct gpu_identity gpus[REACH_MAX_GPUS];
    struct job jobs[REACH_MAX_GPUS];
    uint64_t structures[REACH_MAX_GPUS]; /* of the first fingerprint of each GPU */
    uint32_t measured[REACH_MAX_GPUS];
    uint32_t different[REACH_MAX_GPUS]; /* with another structure than the first */
    uint32_t failures;
};

static volatile sig_atomic_t oneshot_stopped;

static void oneshot_on_signal(int number)
{
    (void)number;
    oneshot_stopped = 1;
}

static bool oneshot_ended(const struct job *job)
{
    return job->state == JOB_DONE || job->state == JOB_FAILED;
}

/* Queues `depth` for every GPU and waits until all have ended. */
static enum status oneshot_round(struct oneshot *o, enum depth depth, struct err *err)
{
    const struct timespec step = {.tv_nsec = (long)(ONESHOT_POLL_MS * NSEC_PER_MSEC)};
    enum status status = STATUS_OK;

    for (uint32_t i = 0; i < o->gpu_count && !status; i++) {
        status = pipeline_submit(o->pipeline, o->gpus[i].uuid, depth, &o->jobs[i], err);
    }
    for (uint32_t i = 0; i < o->gpu_count && !status;) {
        status = pipeline_job(o->pipeline, o->jobs[i].id, &o->jobs[i], err);
        if (!status && oneshot_ended(&o->jobs[i])) {
            i++;
        } else if (!status && oneshot_stopped) {
            status = err_set(err, STATUS_CANCELLED, "stopped by a signal");
        } else {
            nanosleep(&step, NULL);
        }
    }
    return status;
}

/* The run that the newest observation of this GPU belongs to, or 0. */
static int64_t oneshot_newest_run(struct oneshot *o, const char *uuid)
{
    struct store_observation_row row = {0};
    uint32_t count = 0;

    return store_list_observations(o->store, uuid, 0, 0, &row, 1, &count, NULL) == STATUS_OK &&
                   count == 1
               ? row.run
               : 0;
}

/* Appends what a reader must know about the circumstances. */
static void oneshot_conditions(struct oneshot *o, const char *folder, uint32_t i)
{
    char path[EXPORT_PATH_BYTES + 32], now[32];
    const struct gpu_identity *gpu = &o->gpus[i];
    const struct job *job = &o->jobs[i];

    snprintf(path, sizeof path, "%s/conditions.txt", folder);
    FILE *out = fopen(path, "ae");

    if (!out) {
        log_warning("cannot write %s: %s", path, strerror(errno));
        return;
    }
    fprintf(out,
            "date: %s\nreachd: %s\ncommand:", clock_rfc3339(clock_wall_seconds(), now, sizeof now),
            o->version);
    for (int a = 0; a < o->argc; a++) {
        /* Of the program its name: where it lies says nothing about the measurement. */
        const char *slash = a == 0 ? strrchr(o->argv[a], '/') : NULL;
        fprintf(out, " %s", slash ? slash + 1 : o->argv[a]);
    }
    fprintf(out,
            "\ngpu: %s\nuuid: %s\nserial: %s\norigin: %s\ndriver: %s\ncuda: %s\n"
            "depth: %s\nresult: %s\n\n",
            gpu->name, gpu->uuid, gpu->serial[0] ? gpu->serial : "not told",
            origin_name(gpu->origin), gpu->driver_version, gpu->cuda_version,
            depth_name(job->depth), job->sentence);
    fclose(out);
}

/* Writes table-DEPTH.txt. */
static enum status oneshot_table(const char *folder, const struct fingerprint *fp, struct err *err)
{
    char path[EXPORT_PATH_BYTES + 32];

    snprintf(path, sizeof path, "%s/table-%s.txt", folder, depth_name(fp->depth));
    FILE *out = fopen(path, "we");

    if (!out) {
        return err_set(err, STATUS_IO, "cannot write %s: %s", path, strerror(errno));
    }
    report_print(out, fp);
    return fclose(out) ? err_set(err, STATUS_IO, "cannot write %s: %s", path, strerror(errno))
                       : STATUS_OK;
}

/* Exports the newest run of GPU `i`: its observations in any case, and its fingerprint (NULL: the
 * run has failed; what it saw is then the more wanted). */
static enum status oneshot_export(struct oneshot *o, uint32_t i, const struct fingerprint *fp,
                                  struct err *err)
{
    char folder[EXPORT_PATH_BYTES - 64], path[EXPORT_PATH_BYTES];
    struct observation_set set = {0};
    const char *depth = depth_name(o->jobs[i].depth);
    int64_t run = oneshot_newest_run(o, o->gpus[i].uuid);
    enum status status = export_folder(o->config->export_dir, &o->gpus[i], clock_wall_seconds(),
                                       folder, sizeof folder, err);

    if (status) {
        return status;
    }
    oneshot_conditions(o, folder, i);
    if (run) {
        snprintf(path, sizeof path, "%s/observations-%s%s.jsonl", folder, depth,
                 fp ? "" : "-failed");
        status = store_load_run(o->store, run, &set, err);
        status = status ? status : export_observations(path, &set, o->jobs[i].depth, err);
        observation_set_free(&set);
    }
    if (!status && fp) {
        snprintf(path, sizeof path, "%s/fingerprint-%s.json", folder, depth);
        status = export_fingerprint(path, fp, err);
        status = status ? status : oneshot_table(folder, fp, err);
    }
    if (!status) {
        printf("exported to %s\n", folder);
    }
    return status;
}

/* Counts how often a GPU has shown another structure than the first time. */
static void oneshot_compare(struct oneshot *o, uint32_t i, const struct fingerprint *fp)
{
    uint64_t structure = fingerprint_structure_hash(fp);

    if (o->measured[i]++ == 0) {
        o->structures[i] = structure;
    } else if (o->structures[i] != structure) {
        o->different[i]++;
    }
}

/* Prints and exports what the round has found for GPU `i`. */
static enum status oneshot_result(struct oneshot *o, uint32_t i, struct err *err)
{
    const struct job *job = &o->jobs[i];
    struct fingerprint *fp = NULL;
    enum status status = STATUS_OK;

    if (job->state == JOB_FAILED) {
        o->failures++;
        printf("gpu %u %s: depth %s failed (%s): %s\n", i, job->uuid, depth_name(job->depth),
               status_info(job->error.status)->slug, job->error.text);
    } else {
        fp = calloc(1, sizeof *fp);
        status = fp ? store_fingerprint(o->store, job->uuid, job->fingerprint_id, fp, err)
                    : err_set(err, STATUS_NO_MEMORY, "no memory for a fingerprint");
        if (!status) {
            oneshot_compare(o, i, fp);
            printf("\n== gpu %u: %s\n", i, job->sentence);
            report_print(stdout, fp);
        }
    }
    if (!status && o->config->export_dir) {
        status = oneshot_export(o, i, fp, err);
    }
    fflush(stdout);
    free(fp);
    return status;
}

static enum status oneshot_start(struct oneshot *o, struct err *err)
{
    const struct pipeline_options options = {.executable = "/proc/self/exe",
                                             .gpu = config_gpu_options(o->config)};
    enum status status = o->config->state_given ? serve_open_store(o->config, &o->store, err)
                                                : store_open(":memory:", &o->store, err);

    if (status) {
        return status;
    }
    o->cell = snapshot_cell_new();
    if (!o->cell) {
        return err_set(err, STATUS_NO_MEMORY, "no memory for a snapshot");
    }
    status = pipeline_start(&options, o->store, o->cell, &o->pipeline, err);
    if (status) {
        return status;
    }
    const struct snapshot *view = snapshot_acquire(o->cell);

    o->gpu_count = view->gpu_count;
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        o->gpus[i] = view->gpus[i].identity;
    }
    if (view->gpu_count == 0) {
        status = err_set(err, view->source_error.status, "%s", view->source_error.text);
    }
    snapshot_release(view);
    return status;
}

/* All rounds, then one line a GPU about how alike they were. */
static enum status oneshot_rounds(struct oneshot *o, struct err *err)
{
    const uint32_t repeats = o->config->repeats ? o->config->repeats : 1;
    enum status status = STATUS_OK;

    for (uint32_t d = 0; d < o->config->depth_count; d++) {
        for (uint32_t r = 0; r < repeats && !status; r++) {
            status = oneshot_round(o, o->config->depths[d], err);
            for (uint32_t i = 0; i < o->gpu_count && !status; i++) {
                status = oneshot_result(o, i, err);
            }
        }
    }
    for (uint32_t i = 0; i < o->gpu_count; i++) {
        if (o->measured[i] > 1) {
            printf("gpu %u %s: %u fingerprints, %u of them with another structure than the first\n",
                   i, o->gpus[i].uuid, o->measured[i], o->different[i]);
        }
    }
    if (!status && o->failures) {
        status = err_set(err, STATUS_GPU_FAULT, "%u measurements have failed", o->failures);
    }
    return status;
}

enum status oneshot_measure(const struct config *config, const char *version, int argc, char **argv,
                            struct err *err)
{
    const struct sigaction stop = {.sa_handler = oneshot_on_signal};
    struct oneshot *o = calloc(1, sizeof *o);

    if (!o) {
        return err_set(err, STATUS_NO_MEMORY, "no memory to start");
    }
    o->config = config;
    o->version = version;
    o->argc = argc;
    o->argv = argv;
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);
    enum status status = oneshot_start(o, err);

    status = status ? status : oneshot_rounds(o, err);
    pipeline_stop(o->pipeline);
    snapshot_cell_free(o->cell);
    store_close(o->store);
    free(o);
    return status;
}

/* What the pipeline adds to a conclusion, as far as observations can tell. */
static void oneshot_complete(const struct observation_set *set, struct fingerprint *fp)
{
    nsec_t total = 0;

    for (size_t i = 0; i < set->count; i++) {
        total += set->items[i].result.conditions.duration_ns;
    }
    fp->probe_ms = (uint32_t)(total / NSEC_PER_MSEC);
    fp->duration_ms = fp->probe_ms;
    fp->device_memory_bytes = set->limits.device_memory_bytes;
}

enum status oneshot_conclude(const struct config *config, struct err *err)
{
    bool from_stdin = strcmp(config->conclude, "-") == 0;
    FILE *in = from_stdin ? stdin : fopen(config->conclude, "re");
    struct fingerprint *fp = calloc(1, sizeof *fp);
    struct observation_set set = {0};
    enum depth depth = DEPTH_FULL;
    enum status status = STATUS_OK;

    if (!in) {
        status = err_set(err, STATUS_IO, "cannot read %s: %s", config->conclude, strerror(errno));
    } else if (!fp) {
        status = err_set(err, STATUS_NO_MEMORY, "no memory for a fingerprint");
    }
    status = status ? status : export_read_observations(in, &set, &depth, err);
    if (config->conclude_depth_given) {
        depth = config->conclude_depth;
    }
    status = status ? status : analysis_conclude(&set, depth, fp, err);
    if (!status) {
        oneshot_complete(&set, fp);
        status = fingerprint_check(fp, err);
    }
    if (!status) {
        json_t *json = fingerprint_to_json(fp);

        status = export_json(stdout, json, err);
        json_decref(json);
    }
    observation_set_free(&set);
    free(fp);
    if (in && !from_stdin) {
        fclose(in);
    }
    return status;
}
