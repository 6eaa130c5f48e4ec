/* job_report.c: what a job prints for one size: predicted beside measured (job.h). */
#include "job.h"

static const double bytes_per_gib = 1024.0 * 1024.0 * 1024.0;

static void print_number(FILE *out, int width, int digits, bool known, double value)
{
    if (known)
        fprintf(out, " %*.*f", width, digits, value);
    else
        fprintf(out, " %*s", width, "-");
}

static const struct job_way *find_naive(const struct job_run *run)
{
    const struct job_way *naive = NULL;

    for (uint32_t i = 0; i < run->way_count; i++) {
        if (run->ways[i].strategy == REACH_NAIVE && (!naive || run->ways[i].gbps > naive->gbps))
            naive = &run->ways[i];
    }
    return naive;
}

static void print_way(FILE *out, const struct job_run *run, const struct job_way *way,
                      const struct job_way *naive)
{
    const bool measured = run->repeats > 0;
    const bool predicted = way->predicted_gbps.known;
    const double expected = way->predicted_gbps.value;

    fprintf(out, "%-28s", way->label);
    if (way->strategy == REACH_SCOPES)
        fprintf(out, " %7u passes ", way->pass_count);
    else if (way->windows)
        fprintf(out, " %7u windows", way->windows);
    else
        fprintf(out, " %15s", "");
    print_number(out, 10, 1, predicted, expected);
    print_number(out, 10, 1, measured, way->gbps);
    print_number(out, 9, 3, measured && predicted, way->gbps / expected);
    print_number(out, 8, 2, measured && naive, naive ? way->gbps / naive->gbps : 0);
    print_number(out, 10, 1, measured && run->inside_gbps > 0,
                 run->inside_gbps > 0 ? 100 * way->gbps / run->inside_gbps : 0);
    fprintf(out, "  %s\n", !measured ? "" : way->right ? "same" : "WRONG");
}

static void print_results(FILE *out, const struct job *job, const struct job_run *run)
{
    const struct job_way *best = &run->ways[job_best(run)], *first = &run->ways[0];

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
    if (run->inside_gbps > 0)
        fprintf(out, "inside the reach: %.1f GB/s; looking alone: %.1f G/s\n", run->inside_gbps,
                run->scan_rate);
    fprintf(out, "%-28s %15s %10s %10s %9s %8s %10s  %s\n", "strategy", "", "predicted", "measured",
            "of pred.", "x naive", "% inside", "result");
    for (uint32_t i = 0; i < run->way_count; i++)
        print_way(out, run, &run->ways[i], find_naive(run));
    if (run->repeats && run->way_count)
        print_results(out, job, run);
    for (uint32_t o = 0; run->repeats == 0 && (option = reach_answer_option(run->plan, o)); o++)
        fprintf(out, "  %s: %s\n", reach_strategy_name(option->strategy), option->why);
}
