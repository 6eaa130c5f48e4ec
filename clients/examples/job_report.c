/* job_report.c: predictions and measurements, as a table and as JSON (job.h). */
#include "job.h"

#include "base/json_writer.h"

#include <errno.h>
#include <stdlib.h>
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

void job_write_number(struct json_writer *t, const char *name, bool known, double value)
{
    enum { NUMBER_BYTES = 32 };
    char text[NUMBER_BYTES];

    if (known && snprintf(text, sizeof text, "%.8g", value) > 0)
        json_writer_real(t, name, strtod(text, NULL));
    else
        json_writer_null(t, name);
}

void job_write_numbers(struct json_writer *t, const char *name, const double *values,
                       uint32_t count)
{
    json_writer_open(t, name, '[');
    for (uint32_t i = 0; i < count; i++)
        job_write_number(t, NULL, true, values[i]);
    json_writer_close(t, ']');
}

void job_begin_document(struct json_writer *t)
{
    json_writer_begin(t, 0);
    t->indent = 1;
    json_writer_open(t, NULL, '{');
}

bool job_end_document(struct json_writer *t, const char *path, char *why)
{
    FILE *const out = fopen(path, "we");
    struct err err;
    bool written;

    json_writer_close(t, '}');
    if (!out) {
        json_writer_discard(t);
        job_fail(why, "cannot write %.300s: %s", path, strerror(errno));
        return false;
    }
    written = json_writer_print(t, out, &err) == STATUS_OK;
    if (!written)
        job_fail(why, "%.300s: %.200s", path, err.text);
    if (fclose(out) != 0 && written) {
        job_fail(why, "cannot write %.300s: %s", path, strerror(errno));
        written = false;
    }
    return written;
}

static void write_result(struct json_writer *t, const struct job *job,
                         const struct job_result *result)
{
    json_writer_open(t, "result", '{');
    for (uint32_t i = 0; i < JOB_RESULTS && job->result_names[i]; i++) {
        char text[32]; /* unsigned 64-bit numbers do not fit a JSON integer in every reader */

        snprintf(text, sizeof text, "%llu", (unsigned long long)result->number[i]);
        json_writer_text(t, job->result_names[i], text);
    }
    json_writer_close(t, '}');
}

static void write_choice(struct json_writer *t, const struct job *job, const struct job_run *run,
                         const struct job_choice *choice)
{
    const struct reach_number *predicted = &choice->predicted_gbps;

    json_writer_open(t, NULL, '{');
    json_writer_text(t, "strategy", reach_strategy_name(choice->strategy));
    json_writer_text(t, "label", choice->label);
    json_writer_u64(t, "passes", choice->pass_count);
    json_writer_u64(t, "windows", choice->windows);
    json_writer_u64(t, "scope_bytes", choice->scope_bytes);
    job_write_number(t, "predicted_gbps", predicted->known, predicted->value);
    if (run->repeats > 0) {
        job_write_numbers(t, "milliseconds", choice->milliseconds, run->repeats);
        job_write_number(t, "gbps", true, choice->gbps);
        write_result(t, job, &choice->result);
        json_writer_bool(t, "right", choice->right);
    }
    json_writer_close(t, '}');
}

static void write_run(struct json_writer *t, const struct job *job, const struct job_run *run)
{
    const struct reach_provenance *from = reach_answer_provenance(run->plan);

    json_writer_open(t, NULL, '{');
    json_writer_u64(t, "bytes", run->bytes);
    json_writer_text(t, "gpu_uuid", from->gpu_uuid);
    json_writer_text(t, "fingerprint_id", from->fingerprint_id);
    json_writer_text(t, "origin", reach_origin_name(from->origin));
    json_writer_bool(t, "stale", from->stale);
    json_writer_text(t, "reason", reach_answer_plan(run->plan)->reason);
    json_writer_u64(t, "repeats", run->repeats);
    job_write_number(t, "useful_bytes", true, run->useful_bytes);
    job_write_number(t, "in_reach_gbps", run->in_reach_gbps > 0, run->in_reach_gbps);
    job_write_number(t, "scan_rate", run->scan_rate > 0, run->scan_rate);
    json_writer_open(t, "choices", '[');
    for (uint32_t i = 0; i < run->choice_count; i++)
        write_choice(t, job, run, &run->choices[i]);
    json_writer_close(t, ']');
    json_writer_close(t, '}');
}

bool job_write_json(const char *path, const struct job *job, const struct job_options *options,
                    const struct job_run *runs, uint32_t count, char *why)
{
    struct json_writer t;

    job_begin_document(&t);
    json_writer_text(&t, "job", job->name);
    json_writer_text(&t, "unit", job->unit);
    json_writer_u64(&t, "count", options->count);
    json_writer_u64(&t, "row_bytes", options->row_bytes);
    json_writer_text(&t, "input", options->host_input ? "host" : "device");
    json_writer_u64(&t, "seed", options->seed);
    json_writer_open(&t, "sizes", '[');
    for (uint32_t i = 0; i < count; i++)
        write_run(&t, job, &runs[i]);
    json_writer_close(&t, ']');
    return job_end_document(&t, path, why);
}
