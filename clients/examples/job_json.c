/* job_json.c: the results of a job as one JSON document (job.h). */
#include "job.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

static json_t *number_or_null(bool known, double value)
{
    return known ? json_real(value) : json_null();
}

static json_t *result_to_json(const struct job *job, const struct job_result *result)
{
    json_t *object = json_object();

    for (uint32_t i = 0; i < JOB_RESULTS && job->result_names[i]; i++) {
        char text[32]; /* 64 bits without a sign do not fit a JSON integer everywhere */

        snprintf(text, sizeof text, "%llu", (unsigned long long)result->number[i]);
        json_object_set_new(object, job->result_names[i], json_string(text));
    }
    return object;
}

static json_t *way_to_json(const struct job *job, const struct job_run *run,
                           const struct job_way *way)
{
    const struct reach_number *predicted = &way->predicted_gbps;
    json_t *object =
        json_pack("{s:s,s:s,s:i,s:i,s:I,s:o}", "strategy", reach_strategy_name(way->strategy),
                  "label", way->label, "passes", (int)way->pass_count, "windows", (int)way->windows,
                  "scope_bytes", (json_int_t)way->scope_bytes, "predicted_gbps",
                  number_or_null(predicted->known, predicted->value));

    if (!object || run->repeats == 0)
        return object;
    json_t *milliseconds = json_array();

    for (uint32_t r = 0; r < run->repeats; r++)
        json_array_append_new(milliseconds, json_real(way->milliseconds[r]));
    json_object_set_new(object, "milliseconds", milliseconds);
    json_object_set_new(object, "gbps", json_real(way->gbps));
    json_object_set_new(object, "result", result_to_json(job, &way->result));
    json_object_set_new(object, "right", json_boolean(way->right));
    return object;
}

static json_t *run_to_json(const struct job *job, const struct job_run *run)
{
    const struct reach_provenance *from = reach_answer_provenance(run->plan);
    json_t *ways = json_array();

    for (uint32_t i = 0; i < run->way_count; i++)
        json_array_append_new(ways, way_to_json(job, run, &run->ways[i]));
    return json_pack("{s:I,s:s,s:s,s:s,s:b,s:s,s:i,s:f,s:o,s:o,s:o}", "bytes",
                     (json_int_t)run->bytes, "gpu_uuid", from->gpu_uuid, "fingerprint_id",
                     from->fingerprint_id, "origin", reach_origin_name(from->origin), "stale",
                     (int)from->stale, "reason", reach_answer_plan(run->plan)->reason, "repeats",
                     (int)run->repeats, "useful_bytes", run->useful_bytes, "inside_gbps",
                     number_or_null(run->inside_gbps > 0, run->inside_gbps), "scan_rate",
                     number_or_null(run->scan_rate > 0, run->scan_rate), "ways", ways);
}

bool job_write_json(const char *path, const struct job *job, const struct job_options *options,
                    const struct job_run *runs, uint32_t count, char *why)
{
    enum { DIGITS = 8 };
    json_t *sizes = json_array();

    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(sizes, run_to_json(job, &runs[i]));
    json_t *document = json_pack(
        "{s:s,s:s,s:I,s:i,s:s,s:i,s:o}", "job", job->name, "unit", job->unit, "count",
        (json_int_t)options->count, "row_bytes", (int)options->row_bytes, "input",
        options->host_input ? "host" : "device", "seed", (int)options->seed, "sizes", sizes);
    const bool written =
        document &&
        json_dump_file(document, path, JSON_INDENT(1) | JSON_REAL_PRECISION(DIGITS)) == 0;

    if (!written)
        snprintf(why, JOB_TEXT_BYTES, "cannot write %.300s: %s", path,
                 document ? strerror(errno) : "no memory");
    json_decref(document);
    return written;
}
