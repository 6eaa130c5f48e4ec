/* report.c: see report.h. */
#include "report.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a good placement must reach. The second number is that of an H200, whose memory is more than
 * twice what one group reaches; a chip with less memory has less to gain. */
static const double target_of_plateau = 0.98;
static const double target_times_naive = 4.5;

static const double bytes_per_gib = 1024.0 * 1024.0 * 1024.0;

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double report_median(const double *values, uint32_t count)
{
    double sorted[REPORT_MAX_REPEATS];

    memcpy(sorted, values, count * sizeof *values);
    qsort(sorted, count, sizeof *sorted, by_size);
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

/* How fast strategy `i` was, as a multiple of strategy `reference`. */
static double times(const struct report *report, int i, int reference)
{
    return report->timings[i].gbps / report->timings[reference].gbps;
}

/* ---- for a person --------------------------------------------------------------------------- */

static void print_number(FILE *out, int width, int digits, double value)
{
    if (isnan(value))
        fprintf(out, " %*s", width, "-");
    else
        fprintf(out, " %*.*f", width, digits, value);
}

static void print_row(FILE *out, const struct report *report, int i)
{
    const struct strategy *s = &report->strategies[i];
    const double unknown = (double)NAN;
    const struct timing *t = report->timings ? &report->timings[i] : NULL;

    fprintf(out, "%-20s %7u", s->name, s->window_count);
    print_number(out, 11, 2, (double)s->region_bytes / bytes_per_gib);
    print_number(out, 9, 1, t ? t->gbps : unknown);
    print_number(out, 8, 2, t ? times(report, i, STRATEGY_NAIVE) : unknown);
    print_number(out, 12, 1, t ? 100 * times(report, i, STRATEGY_IN_REACH) : unknown);
    print_number(out, 15, 1, s->predicted_gbps);
    fprintf(out, "\n");
}

static void print_plan(FILE *out, const struct strategy *s)
{
    fprintf(out, "\n%s:\n", s->name);
    for (uint32_t w = 0; w < s->window_count; w++) {
        fprintf(out, "  window %u: first byte %llu, %llu bytes, SMs", w,
                (unsigned long long)s->windows[w].first_byte,
                (unsigned long long)s->windows[w].length_bytes);
        for (uint32_t sm = 0; sm < s->sm_slots; sm++) {
            if (s->window_of_sm[sm] == (int16_t)w)
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
    fprintf(out, "\nwords that were not what their address says: %llu\n",
            (unsigned long long)mismatches);
    print_target(out, "recommended, at least 0.98 of the in-reach plateau",
                 times(report, STRATEGY_PLACED, STRATEGY_IN_REACH), target_of_plateau);
    print_target(out, "recommended, at least 4.5 times naive (on an H200)",
                 times(report, STRATEGY_PLACED, STRATEGY_NAIVE), target_times_naive);
}

void report_print(FILE *out, const struct report *report)
{
    const struct ask_placement *p = report->placement;

    fprintf(out, "random 128-byte reads over %.2f GiB of %s (%s)\n",
            (double)report->bytes / bytes_per_gib, report->chip->name, report->chip->uuid);
    if (report->timings)
        fprintf(out, "%llu lines a strategy, median of %u, seed %u\n",
                (unsigned long long)report->timings[STRATEGY_NAIVE].lines, report->repeats,
                report->seed);
    fprintf(out, "fingerprint %s (%s), advice: %s\n%s\n", p->fingerprint_id, p->origin, p->advice,
            p->reason);
    fprintf(out, "in passes instead: %llu of at most %.2f GiB\n\n",
            (unsigned long long)report->scope->passes,
            (double)report->scope->scope_bytes / bytes_per_gib);
    fprintf(out, "%-20s %7s %11s %9s %8s %12s %15s\n", "strategy", "windows", "region GiB", "GB/s",
            "x naive", "% of plateau", "predicted GB/s");
    for (int i = 0; i < STRATEGY_COUNT; i++)
        print_row(out, report, i);
    if (report->timings) {
        print_verdict(out, report);
        return;
    }
    for (int i = 0; i < STRATEGY_COUNT; i++)
        print_plan(out, &report->strategies[i]);
}

/* ---- for a program -------------------------------------------------------------------------- */

static json_t *number_or_null(double value)
{
    return isnan(value) ? json_null() : json_real(value);
}

static json_t *windows_to_json(const struct strategy *s)
{
    json_t *windows = json_array();

    for (uint32_t w = 0; w < s->window_count; w++)
        json_array_append_new(
            windows, json_pack("{s:I,s:I}", "first_byte", (json_int_t)s->windows[w].first_byte,
                               "length_bytes", (json_int_t)s->windows[w].length_bytes));
    return windows;
}

static json_t *window_of_sm_to_json(const struct strategy *s)
{
    json_t *array = json_array();

    for (uint32_t sm = 0; sm < s->sm_slots; sm++) {
        const int16_t w = s->window_of_sm[sm];

        json_array_append_new(array, w == ASK_NO_WINDOW ? json_null() : json_integer(w));
    }
    return array;
}

static json_t *strategy_to_json(const struct report *report, int i)
{
    const struct strategy *s = &report->strategies[i];
    json_t *object =
        json_pack("{s:s,s:I,s:o,s:o,s:o}", "strategy", s->name, "region_bytes",
                  (json_int_t)s->region_bytes, "predicted_gbps", number_or_null(s->predicted_gbps),
                  "windows", windows_to_json(s), "window_of_sm", window_of_sm_to_json(s));

    if (!object || !report->timings)
        return object;
    const struct timing *t = &report->timings[i];
    json_t *milliseconds = json_array();

    for (uint32_t r = 0; r < report->repeats; r++)
        json_array_append_new(milliseconds, json_real(t->milliseconds[r]));
    json_object_set_new(object, "lines", json_integer((json_int_t)t->lines));
    json_object_set_new(object, "milliseconds", milliseconds);
    json_object_set_new(object, "gbps", json_real(t->gbps));
    json_object_set_new(object, "times_naive", json_real(times(report, i, STRATEGY_NAIVE)));
    json_object_set_new(object, "of_plateau", json_real(times(report, i, STRATEGY_IN_REACH)));
    json_object_set_new(object, "mismatches", json_integer((json_int_t)t->mismatches));
    return object;
}

static json_t *report_to_json(const struct report *report)
{
    const struct ask_placement *p = report->placement;
    json_t *strategies = json_array();

    for (int i = 0; i < STRATEGY_COUNT; i++)
        json_array_append_new(strategies, strategy_to_json(report, i));
    return json_pack(
        "{s:{s:s,s:s}, s:s,s:s,s:s,s:s, s:{s:I,s:I}, s:I,s:i,s:I,s:b,s:o}", "gpu", "name",
        report->chip->name, "uuid", report->chip->uuid, "fingerprint_id", p->fingerprint_id,
        "origin", p->origin, "advice", p->advice, "reason", p->reason, "scope", "scope_bytes",
        (json_int_t)report->scope->scope_bytes, "passes", (json_int_t)report->scope->passes,
        "bytes", (json_int_t)report->bytes, "repeats", (int)report->repeats, "seed",
        (json_int_t)report->seed, "measured", report->timings != NULL, "strategies", strategies);
}

bool report_write_json(const char *path, const struct report *report, char *why)
{
    enum { DIGITS = 8 };
    json_t *document = report_to_json(report);
    const bool written =
        document &&
        json_dump_file(document, path, JSON_INDENT(1) | JSON_REAL_PRECISION(DIGITS)) == 0;

    if (!written)
        snprintf(why, ASK_TEXT_BYTES, "cannot write %.300s: %s", path,
                 document ? strerror(errno) : "no memory");
    json_decref(document);
    return written;
}
