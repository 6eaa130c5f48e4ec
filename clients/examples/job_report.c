/* job_report.c: predictions and measurements, as a table and as JSON (job.h). */
#include "job.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

static const double bytes_per_gib = 1024.0 * 1024.0 * 1024.0;

void job_print_number(FILE *out, int width, int digits, bool known, double value)
{
    if (known)
        fprintf(out, " %*.*f", width, digits, value);
    else
        fprintf(out, " %*s", width, "-");
}

static const struct job_choice *find_naive(const struct job_run *run)
{
    const struct job_choice *naive = NULL;

    for (uint32_t i = 0; i < run->choice_count; i++) {
        if (run->choices[i].strategy == REACH_NAIVE &&
            (!naive || run->choices[i].gbps > naive->gbps))
            naive = &run->choices[i];
    }
    return naive;
}

static void print_choice(FILE *out, const struct job_run *run, const struct job_choice *choice,
                         const struct job_choice *naive)
{
    const bool measured = run->repeats > 0;
    const bool predicted = choice->predicted_gbps.known;
    const double expected = choice->predicted_gbps.value;

    fprintf(out, "%-28s", choice->label);
    if (choice->strategy == REACH_SCOPES)
        fprintf(out, " %7u passes ", choice->pass_count);
    else if (choice->windows)
        fprintf(out, " %7u windows", choice->windows);
    else
        fprintf(out, " %15s", "");
    job_print_number(out, 10, 1, predicted, expected);
    job_print_number(out, 10, 1, measured, choice->gbps);
    job_print_number(out, 9, 3, measured && predicted, choice->gbps / expected);
    job_print_number(out, 8, 2, measured && naive, naive ? choice->gbps / naive->gbps : 0);
    job_print_number(out, 10, 1, measured && run->in_reach_gbps > 0,
                     run->in_reach_gbps > 0 ? 100 * choice->gbps / run->in_reach_gbps : 0);
    fprintf(out, "  %s\n", !measured ? "" : choice->right ? "same" : "WRONG");
}

static void print_results(FILE *out, const struct job *job, const struct job_run *run)
{
    const struct job_choice *best = &run->choices[job_best(run)], *first = &run->choices[0];

    fprintf(out, "first choice %s: %.1f %% of the best (%s)\nresults:", first->label,
            100 * first->gbps / best->gbps, best->label);
    for (uint32_t i = 0; i < JOB_RESULTS && job->result_names[i]; i++)
        fprintf(out, " %s %llu%s", job->result_names[i],
                (unsigned long long)first->result.number[i],
                run->reference_known >> i & 1 ? " (as the CPU finds)" : "");
    fprintf(out, "\n");
}

void job_report(FILE *out, const struct job *job, const struct job_options *options,
                const struct job_run *run)
{
    const struct reach_provenance *from = reach_answer_provenance(run->plan);
    const struct reach_plan *plan = reach_answer_plan(run->plan);
    const struct reach_option *option;

    fprintf(out, "\n%s over %.2f GiB, %llu %s, GPU %s\nfingerprint %s (%s%s)\n%s\n", job->title,
            (double)run->bytes / bytes_per_gib, (unsigned long long)options->count, job->unit,
            from->gpu_uuid, from->fingerprint_id, reach_origin_name(from->origin),
            from->stale ? ", stale" : "", plan->reason);
    if (run->in_reach_gbps > 0)
        fprintf(out, "within the reach: %.1f GB/s; looking alone: %.1f G/s\n", run->in_reach_gbps,
                run->scan_rate);
    fprintf(out, "%-28s %15s %10s %10s %9s %8s %10s  %s\n", "strategy", "", "predicted", "measured",
            "of pred.", "x naive", "% inside", "result");
    for (uint32_t i = 0; i < run->choice_count; i++)
        print_choice(out, run, &run->choices[i], find_naive(run));
    if (run->repeats && run->choice_count)
        print_results(out, job, run);
    for (uint32_t o = 0; run->repeats == 0 && (option = reach_answer_option(run->plan, o)); o++)
        fprintf(out, "  %s: %s\n", reach_strategy_name(option->strategy), option->why);
}

/* ---- JSON ---- */

json_t *job_json_number(bool known, double value)
{
    return known ? json_real(value) : json_null();
}

json_t *job_json_numbers(const double *values, uint32_t count)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(array, json_real(values[i]));
    return array;
}

bool job_json_write(json_t *take, const char *path, char *why)
{
    enum { DIGITS = 8 };
    const bool written =
        take && json_dump_file(take, path, JSON_INDENT(1) | JSON_REAL_PRECISION(DIGITS)) == 0;

    if (!written)
        job_fail(why, "cannot write %.300s: %s", path, take ? strerror(errno) : "out of memory");
    json_decref(take);
    return written;
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

static json_t *choice_to_json(const struct job *job, const struct job_run *run,
                              const struct job_choice *choice)
{
    const struct reach_number *predicted = &choice->predicted_gbps;
    json_t *object =
        json_pack("{s:s,s:s,s:i,s:i,s:I,s:o}", "strategy", reach_strategy_name(choice->strategy),
                  "label", choice->label, "passes", (int)choice->pass_count, "windows",
                  (int)choice->windows, "scope_bytes", (json_int_t)choice->scope_bytes,
                  "predicted_gbps", job_json_number(predicted->known, predicted->value));

    if (!object || run->repeats == 0)
        return object;
    json_object_set_new(object, "milliseconds",
                        job_json_numbers(choice->milliseconds, run->repeats));
    json_object_set_new(object, "gbps", json_real(choice->gbps));
    json_object_set_new(object, "result", result_to_json(job, &choice->result));
    json_object_set_new(object, "right", json_boolean(choice->right));
    return object;
}

static json_t *run_to_json(const struct job *job, const struct job_run *run)
{
    const struct reach_provenance *from = reach_answer_provenance(run->plan);
    json_t *choices = json_array();

    for (uint32_t i = 0; i < run->choice_count; i++)
        json_array_append_new(choices, choice_to_json(job, run, &run->choices[i]));
    return json_pack("{s:I,s:s,s:s,s:s,s:b,s:s,s:i,s:f,s:o,s:o,s:o}", "bytes",
                     (json_int_t)run->bytes, "gpu_uuid", from->gpu_uuid, "fingerprint_id",
                     from->fingerprint_id, "origin", reach_origin_name(from->origin), "stale",
                     (int)from->stale, "reason", reach_answer_plan(run->plan)->reason, "repeats",
                     (int)run->repeats, "useful_bytes", run->useful_bytes, "in_reach_gbps",
                     job_json_number(run->in_reach_gbps > 0, run->in_reach_gbps), "scan_rate",
                     job_json_number(run->scan_rate > 0, run->scan_rate), "choices", choices);
}

bool job_write_json(const char *path, const struct job *job, const struct job_options *options,
                    const struct job_run *runs, uint32_t count, char *why)
{
    json_t *sizes = json_array();

    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(sizes, run_to_json(job, &runs[i]));
    json_t *document = json_pack(
        "{s:s,s:s,s:I,s:i,s:s,s:i,s:o}", "job", job->name, "unit", job->unit, "count",
        (json_int_t)options->count, "row_bytes", (int)options->row_bytes, "input",
        options->host_input ? "host" : "device", "seed", (int)options->seed, "sizes", sizes);
    return job_json_write(document, path, why);
}
