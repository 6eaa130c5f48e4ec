/* random_read.c: the host side of random_read: strategies and report (random_read.h). */
#include "random_read.h"

#include "base/json_writer.h"
#include "base/stats.h"

#include <string.h>

/* Half of a window that is within the reach lies within it by a wide margin. */
enum { IN_REACH_DIVISOR = 2 };

static int group_of(const struct reach_fingerprint *chip, uint32_t sm)
{
    return sm < chip->sm_slots ? chip->group_of_sm[sm] : REACH_IDLE;
}

/* Returns whether there is an SM of this id. It has a window, or the placement leaves it idle and
 * the fingerprint lists its group. */
static bool sm_exists(const struct answers *answers, uint32_t sm)
{
    const struct reach_windows *placed = &reach_answer_placement(answers->placement)->windows;

    return placed->window_of_sm[sm] != REACH_IDLE ||
           group_of(reach_answer_fingerprint(answers->fingerprint), sm) != REACH_IDLE;
}

static uint64_t longest_window(const struct reach_windows *windows)
{
    uint64_t longest = 0;

    for (uint32_t w = 0; w < windows->window_count; w++) {
        if (windows->window[w].length_bytes > longest)
            longest = windows->window[w].length_bytes;
    }
    return longest;
}

/* Points the windows of a strategy to its own arrays. */
static void own_windows(struct strategy *out, uint32_t window_count, uint32_t sm_slots)
{
    out->windows = (struct reach_windows){.window_count = window_count,
                                          .sm_slots = sm_slots,
                                          .window = out->window,
                                          .window_of_sm = out->window_of_sm};
}

/* Makes one window of `bytes` at the start of the allocation, for every SM. */
static void make_single(const struct answers *answers, uint64_t bytes, struct strategy *out)
{
    own_windows(out, 1, reach_answer_placement(answers->placement)->windows.sm_slots);
    out->window[0].length_bytes = bytes;
    for (uint32_t sm = 0; sm < out->windows.sm_slots; sm++)
        out->window_of_sm[sm] = sm_exists(answers, sm) ? 0 : REACH_IDLE;
}

/* Assigns the SMs round robin, one group after the other: window 0, 1, .., 0, 1, .., or by id if no
 * groups are known. The length of a window is proportional to its SMs. */
static void make_by_sm(const struct answers *answers, uint64_t bytes, struct strategy *out)
{
    const struct reach_windows *placed = &reach_answer_placement(answers->placement)->windows;
    const struct reach_fingerprint *chip = reach_answer_fingerprint(answers->fingerprint);
    uint32_t assigned = 0;

    own_windows(out, placed->window_count, placed->sm_slots);
    for (uint32_t sm = 0; sm < placed->sm_slots; sm++)
        out->window_of_sm[sm] = REACH_IDLE;
    for (int group = REACH_IDLE; group < REACH_SM_MAX; group++) {
        for (uint32_t sm = 0; sm < placed->sm_slots; sm++) {
            if (group_of(chip, sm) != group || !sm_exists(answers, sm))
                continue;
            const uint32_t w = assigned++ % placed->window_count;

            out->window_of_sm[sm] = (int16_t)w;
            out->window[w].sm_count++;
        }
    }
    job_windows_divide(out->window, placed->window_count, bytes);
}

void strategies_make(const struct answers *answers, uint64_t bytes, struct strategy *strategies)
{
    static const char *const names[STRATEGY_COUNT] = {"in reach (plateau)", "naive",
                                                      "windows by SM", "recommended"};
    const struct reach_placement *placement = reach_answer_placement(answers->placement);
    const struct reach_fingerprint *chip = reach_answer_fingerprint(answers->fingerprint);

    memset(strategies, 0, STRATEGY_COUNT * sizeof *strategies);
    make_single(answers, longest_window(&placement->windows) / IN_REACH_DIVISOR,
                &strategies[STRATEGY_IN_REACH]);
    make_single(answers, bytes, &strategies[STRATEGY_NAIVE]);
    make_by_sm(answers, bytes, &strategies[STRATEGY_BY_SM]);
    strategies[STRATEGY_PLACED].windows = placement->windows;
    strategies[STRATEGY_IN_REACH].predicted_gbps = chip->plateau_gbps;
    strategies[STRATEGY_NAIVE].predicted_gbps = placement->naive_gbps;
    strategies[STRATEGY_PLACED].predicted_gbps = placement->predicted_gbps;
    for (int i = 0; i < STRATEGY_COUNT; i++) {
        strategies[i].name = names[i];
        strategies[i].region_bytes = job_windows_bytes(&strategies[i].windows);
    }
}

/* ---- report ---------------------------------------------------------------------------------- */

/* The least gains of a good placement. The second number is for an H200, whose memory is more than
 * twice the reach of one group. A GPU with less memory has less to gain. */
static const double target_of_plateau = 0.98;
static const double target_times_naive = 4.5;

static const double bytes_per_gib = 1024.0 * 1024.0 * 1024.0;

void timing_derive(struct timing *t, uint32_t repeats)
{
    const double median = stats_median_f64(t->milliseconds, repeats);

    t->gbps = (double)t->lines * LINE_BYTES / (median * 1e6);
}

/* Returns the throughput of strategy `i` over the throughput of strategy `reference`. */
static double times(const struct report *report, int i, int reference)
{
    return report->timings ? report->timings[i].gbps / report->timings[reference].gbps : 0;
}

static const char *word(const char *name)
{
    return name ? name : "";
}

/* ---- as a table ------------------------------------------------------------------------------ */

static void print_row(FILE *out, const struct report *report, int i)
{
    const struct strategy *s = &report->strategies[i];
    const bool measured = report->timings != NULL;

    fprintf(out, "%-20s %7u", s->name, s->windows.window_count);
    job_print_number(out, 11, 2, true, (double)s->region_bytes / bytes_per_gib);
    job_print_number(out, 9, 1, measured, measured ? report->timings[i].gbps : 0);
    job_print_number(out, 8, 2, measured, times(report, i, STRATEGY_NAIVE));
    job_print_number(out, 12, 1, measured, 100 * times(report, i, STRATEGY_IN_REACH));
    job_print_number(out, 15, 1, s->predicted_gbps.known, s->predicted_gbps.value);
    fprintf(out, "\n");
}

static void print_plan(FILE *out, const struct strategy *s)
{
    fprintf(out, "\n%s:\n", s->name);
    for (uint32_t w = 0; w < s->windows.window_count; w++) {
        fprintf(out, "  window %u: first byte %llu, %llu bytes, SMs", w,
                (unsigned long long)s->windows.window[w].first_byte,
                (unsigned long long)s->windows.window[w].length_bytes);
        for (uint32_t sm = 0; sm < s->windows.sm_slots; sm++) {
            if (s->windows.window_of_sm[sm] == (int16_t)w)
                fprintf(out, " %u", sm);
        }
        fprintf(out, "\n");
    }
}

static void print_target(FILE *out, const char *what, double value, double target)
{
    fprintf(out, "target: %-52s %8.3f  %s\n", what, value, value >= target ? "met" : "missed");
}

static void print_verdict(FILE *out, const struct report *report)
{
    uint64_t mismatches = 0;

    for (int i = 0; i < STRATEGY_COUNT; i++)
        mismatches += report->timings[i].mismatches;
    fprintf(out, "\nwords that differ from their address: %llu\n", (unsigned long long)mismatches);
    print_target(out, "recommended, at least 0.98 of the in-reach plateau",
                 times(report, STRATEGY_PLACED, STRATEGY_IN_REACH), target_of_plateau);
    print_target(out, "recommended, at least 4.5 times naive (on an H200)",
                 times(report, STRATEGY_PLACED, STRATEGY_NAIVE), target_times_naive);
}

void report_print(FILE *out, const struct report *report)
{
    const struct answers *a = report->answers;
    const struct reach_provenance *from = reach_answer_provenance(a->placement);
    const struct reach_placement *placement = reach_answer_placement(a->placement);
    const struct reach_scope *scope = reach_answer_scope(a->scope);

    fprintf(out, "random 128-byte reads over %.2f GiB of %s (%s)\n",
            (double)report->bytes / bytes_per_gib, reach_answer_fingerprint(a->fingerprint)->name,
            from->gpu_uuid);
    if (report->timings)
        fprintf(out, "%llu lines a strategy, median of %u, seed %u\n",
                (unsigned long long)report->timings[STRATEGY_NAIVE].lines, report->options->repeats,
                report->options->seed);
    fprintf(out, "fingerprint %s (%s), advice: %s\n%s\n", from->fingerprint_id,
            word(reach_origin_name(from->origin)), word(reach_advice_name(placement->advice)),
            placement->reason);
    fprintf(out, "in passes instead: %llu of at most %.2f GiB\n\n",
            (unsigned long long)scope->passes, (double)scope->scope_bytes / bytes_per_gib);
    fprintf(out, "%-20s %7s %11s %9s %8s %12s %15s\n", "strategy", "windows", "region GiB", "GB/s",
            "x naive", "% of plateau", "predicted GB/s");
    for (int i = 0; i < STRATEGY_COUNT; i++)
        print_row(out, report, i);
    if (report->timings)
        print_verdict(out, report);
    for (int i = 0; i < STRATEGY_COUNT && !report->timings; i++)
        print_plan(out, &report->strategies[i]);
}

/* ---- as JSON --------------------------------------------------------------------------------- */

static void write_windows(struct json_writer *t, const struct reach_windows *in)
{
    json_writer_open(t, "windows", '[');
    for (uint32_t w = 0; w < in->window_count; w++) {
        json_writer_open(t, NULL, '{');
        json_writer_u64(t, "first_byte", in->window[w].first_byte);
        json_writer_u64(t, "length_bytes", in->window[w].length_bytes);
        json_writer_close(t, '}');
    }
    json_writer_close(t, ']');
    json_writer_i16s(t, "window_of_sm", in->window_of_sm, in->sm_slots); /* REACH_IDLE is null */
}

static void write_strategy(struct json_writer *t, const struct report *report, int i)
{
    const struct strategy *s = &report->strategies[i];

    json_writer_open(t, NULL, '{');
    json_writer_text(t, "strategy", s->name);
    json_writer_u64(t, "region_bytes", s->region_bytes);
    job_write_number(t, "predicted_gbps", s->predicted_gbps.known, s->predicted_gbps.value);
    write_windows(t, &s->windows);
    if (report->timings) {
        const struct timing *m = &report->timings[i];

        json_writer_u64(t, "lines", m->lines);
        job_write_numbers(t, "milliseconds", m->milliseconds, report->options->repeats);
        job_write_number(t, "gbps", true, m->gbps);
        job_write_number(t, "times_naive", true, times(report, i, STRATEGY_NAIVE));
        job_write_number(t, "of_plateau", true, times(report, i, STRATEGY_IN_REACH));
        json_writer_u64(t, "mismatches", m->mismatches);
    }
    json_writer_close(t, '}');
}

static void write_gpu(struct json_writer *t, const char *name, const char *uuid)
{
    json_writer_open(t, "gpu", '{');
    json_writer_text(t, "name", name);
    json_writer_text(t, "uuid", uuid);
    json_writer_close(t, '}');
}

bool report_write_json(const char *path, const struct report *report, char *why)
{
    const struct answers *a = report->answers;
    const struct reach_provenance *from = reach_answer_provenance(a->placement);
    const struct reach_placement *placement = reach_answer_placement(a->placement);
    const struct reach_scope *scope = reach_answer_scope(a->scope);
    struct json_writer t;

    job_begin_document(&t);
    write_gpu(&t, reach_answer_fingerprint(a->fingerprint)->name, from->gpu_uuid);
    json_writer_text(&t, "fingerprint_id", from->fingerprint_id);
    json_writer_text(&t, "origin", word(reach_origin_name(from->origin)));
    json_writer_text(&t, "advice", word(reach_advice_name(placement->advice)));
    json_writer_text(&t, "reason", placement->reason);
    json_writer_open(&t, "scope", '{');
    json_writer_u64(&t, "scope_bytes", scope->scope_bytes);
    json_writer_u64(&t, "passes", scope->passes);
    json_writer_close(&t, '}');
    json_writer_u64(&t, "bytes", report->bytes);
    json_writer_u64(&t, "repeats", report->options->repeats);
    json_writer_u64(&t, "seed", report->options->seed);
    json_writer_bool(&t, "measured", report->timings != NULL);
    json_writer_open(&t, "strategies", '[');
    for (int i = 0; i < STRATEGY_COUNT; i++)
        write_strategy(&t, report, i);
    json_writer_close(&t, ']');
    return job_end_document(&t, path, why);
}
