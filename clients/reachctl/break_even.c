/* break_even.c: reachctl break-even prints the gain of the best strategy over naive, for sizes of
 * rows and of the table. One output is for rows that are read in place, one for rows that are
 * copied out. The planner computes the numbers from the fingerprint. */
#include "clients/reachctl/client.h"

#include "base/format_number.h"
#include "base/format_size.h"
#include "planner/next_step.h"
#include "planner/strategy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 10, FINEST_STEP = 16, CELL_BYTES = 16, DEFAULT_INPUT = 8 };

/* A column of the tables: an item of the job is one access of `element_bytes`. */
struct column {
    enum access access;
    uint32_t element_bytes;
};
static const struct column columns[] = {
    {ACCESS_READ, 32},  {ACCESS_READ, 64},   {ACCESS_READ, 128}, {ACCESS_READ, 256},
    {ACCESS_READ, 512}, {ACCESS_READ, 1024}, {ACCESS_ATOMIC, 8},
};
enum { COLUMN_COUNT = sizeof(columns) / sizeof(*columns) };

/* The use of a row by the job. */
static const char *const works[] = {"in-place", "copied"};
enum { IN_PLACE, COPIED, WORK_COUNT };

struct table {
    struct fingerprint fp;
    char id[FINGERPRINT_ID_BYTES];
    double input_bytes;
    double scan_gps; /* 0 if it is not given */
};

/* ---- the numbers ---- */

/* The gain of the best strategy. It is unknown if the planner lacks numbers, or if the access
 * cannot do this work. */
struct cell {
    bool known;
    double gain;
    enum strategy strategy;
};

static struct cell make_cell(const struct table *t, uint64_t bytes, const struct column *c,
                             int work)
{
    static struct strategy_answer answer; /* this program has one thread */
    const struct job_request job = {.bytes = bytes,
                                    .access = c->access,
                                    .element_bytes = c->element_bytes,
                                    .input_bytes = t->input_bytes,
                                    .written_bytes = work == COPIED ? c->element_bytes : 0,
                                    .scan_gps = t->scan_gps,
                                    .fingerprint_id = t->id};
    struct err err;

    if (work == COPIED && c->access != ACCESS_READ)
        return (struct cell){.known = false};
    if (strategy_plan(&t->fp, &job, &answer, &err) != STATUS_OK ||
        !IS_KNOWN(answer.options[0].times_naive))
        return (struct cell){.known = false};
    return (struct cell){true, answer.options[0].times_naive.v, answer.options[0].strategy};
}

/* Returns the step between rows: the power of two near a 16th of the reach. The step is doubled
 * until the memory out of reach has at most MOST_ROWS rows. */
static uint64_t row_step(uint64_t reach, uint64_t memory)
{
    uint64_t step = 1;

    while (step <= reach / FINEST_STEP / 2)
        step *= 2;
    while ((memory - reach) / step > MOST_ROWS)
        step *= 2;
    return step;
}

/* Returns the table size that follows `bytes`. The first size, after 0, is the reach. The last size
 * is the whole memory, and 0 follows it. */
static uint64_t next_row(const struct table *t, uint64_t bytes)
{
    const uint64_t reach = t->fp.windows.reach_bytes.v;
    const uint64_t memory = t->fp.gpu.memory_bytes;
    const uint64_t step = row_step(reach, memory);
    const uint64_t next = (bytes / step + 1) * step;

    if (bytes == 0)
        return reach;
    if (bytes == memory)
        return 0;
    return next < memory ? next : memory;
}

/* ---- as JSON ---- */

static void write_row(struct json_writer *out, const struct table *t, uint64_t bytes, int work)
{
    json_writer_open(out, NULL, '{');
    json_writer_u64(out, "bytes", bytes);
    json_writer_open(out, "cells", '[');
    for (int c = 0; c < COLUMN_COUNT; c++) {
        const struct cell cell = make_cell(t, bytes, &columns[c], work);
        if (!cell.known) {
            json_writer_null(out, NULL);
            continue;
        }
        json_writer_open(out, NULL, '{');
        json_writer_real(out, "gain", round_six_digits(cell.gain));
        json_writer_text(out, "strategy", strategy_name(cell.strategy));
        json_writer_close(out, '}');
    }
    json_writer_close(out, ']');
    json_writer_close(out, '}');
}

static void write_tables(struct json_writer *out, const struct table *t)
{
    json_writer_open(out, "columns", '[');
    for (int c = 0; c < COLUMN_COUNT; c++) {
        json_writer_open(out, NULL, '{');
        json_writer_text(out, "access", access_name(columns[c].access));
        json_writer_u64(out, "element_bytes", columns[c].element_bytes);
        json_writer_close(out, '}');
    }
    json_writer_close(out, ']');
    json_writer_open(out, "tables", '[');
    for (int work = 0; work < WORK_COUNT; work++) {
        json_writer_open(out, NULL, '{');
        json_writer_text(out, "work", works[work]);
        json_writer_open(out, "rows", '[');
        for (uint64_t bytes = 0; (bytes = next_row(t, bytes)) > 0;)
            write_row(out, t, bytes, work);
        json_writer_close(out, ']');
        json_writer_close(out, '}');
    }
    json_writer_close(out, ']');
}

static enum exit_code print_json(const struct table *t)
{
    struct json_writer out;

    json_writer_begin(&out, 0);
    out.indent = 1;
    json_writer_open(&out, NULL, '{');
    json_writer_text(&out, "gpu", t->fp.gpu.uuid);
    json_writer_text(&out, "name", t->fp.gpu.name);
    json_writer_text(&out, "fingerprint_id", t->id);
    json_writer_text(&out, "origin", origin_name(t->fp.gpu.origin));
    json_writer_u64(&out, "reach_bytes", t->fp.windows.reach_bytes.v);
    json_writer_u64(&out, "memory_bytes", t->fp.gpu.memory_bytes);
    json_writer_real(&out, "input_bytes", t->input_bytes);
    if (t->scan_gps > 0)
        json_writer_real(&out, "scan_gps", t->scan_gps);
    else
        json_writer_null(&out, "scan_gps");
    write_tables(&out, t);
    json_writer_close(&out, '}');
    return client_print_json(&out);
}

/* ---- as text ---- */

/* Writes the gain and the first letter of the strategy: "4.2 f". */
static const char *format_cell(struct cell cell, char *out)
{
    if (!cell.known)
        snprintf(out, CELL_BYTES, "-");
    else if (cell.strategy == STRATEGY_NAIVE)
        snprintf(out, CELL_BYTES, "1.0");
    else
        snprintf(out, CELL_BYTES, "%.*f %c", cell.gain < 2 ? 2 : 1, cell.gain,
                 strategy_name(cell.strategy)[0]);
    return out;
}

/* `mark` is "|" for markdown and "" for plain text. */
static void print_table(const struct table *t, int work, const char *mark)
{
    const int shown = work == COPIED ? COLUMN_COUNT - 1 : COLUMN_COUNT;
    char text[FORMAT_SIZE_BYTES];
    char cell[CELL_BYTES];

    printf("%s\n%s%s%12s ",
           work == COPIED ? "Rows copied out (read and written once):" : "Rows read in place:",
           *mark ? "\n" : "", mark, "table");
    for (int c = 0; c < shown; c++) {
        snprintf(cell, sizeof(cell), "%s%u B", columns[c].access == ACCESS_READ ? "" : "atomic ",
                 columns[c].element_bytes);
        printf("%s %10s ", mark, cell);
    }
    printf("%s\n", mark);
    for (int c = 0; *mark && c <= shown; c++)
        printf("%s---:%s", mark, c == shown ? "|\n" : "");
    for (uint64_t bytes = 0; (bytes = next_row(t, bytes)) > 0;) {
        printf("%s%12s ", mark, format_size(bytes, text));
        for (int c = 0; c < shown; c++)
            printf("%s %10s ", mark, format_cell(make_cell(t, bytes, &columns[c], work), cell));
        printf("%s\n", mark);
    }
}

static enum exit_code print_text(const struct table *t, bool markdown)
{
    char reach[FORMAT_SIZE_BYTES];
    char memory[FORMAT_SIZE_BYTES];
    char scan[64] = "assuming that the scan costs nothing";

    if (t->scan_gps > 0)
        snprintf(scan, sizeof(scan), "scanned at %.6g G/s", t->scan_gps);
    printf("%s (%s), fingerprint %s: an SM group reaches %s of %s.\n", t->fp.gpu.name,
           origin_name(t->fp.gpu.origin), t->id, format_size(t->fp.windows.reach_bytes.v, reach),
           format_size(t->fp.gpu.memory_bytes, memory));
    printf("The tables have the predicted gain of the best strategy over naive access,\n"
           "for an input of %.6g bytes per access, %s.\n",
           t->input_bytes, scan);
    puts("A letter names the best strategy: w is windows, f is filtered windows, s is scopes,\n"
         "and p is partitioned windows. At 1.0 no strategy gains. A gain of - was not measured.");
    for (int work = 0; work < WORK_COUNT; work++) {
        puts("");
        print_table(t, work, markdown ? "|" : "");
    }
    return EXIT_DONE;
}

/* ---- the command ---- */

/* Reads a number above 0; returns false if the text is not one. NULL leaves `*out` unchanged. */
static bool parse_number(const char *text, double *out)
{
    char *end = NULL;

    if (!text)
        return true;
    *out = strtod(text, &end);
    return end != text && *end == '\0' && *out > 0 && *out <= STRATEGY_MAX_RATE;
}

static enum exit_code refuse_missing(const struct table *t, const char *what, enum reason why)
{
    fprintf(stderr, "reachctl: fingerprint %s has no %s (%s)\n  next step: %s\n", t->id, what,
            reason_slug(why), next_step_full(&t->fp, why));
    return EXIT_FAILED;
}

static enum exit_code check_reach(const struct table *t)
{
    char memory[FORMAT_SIZE_BYTES];
    const struct maybe_u64 reach = t->fp.windows.reach_bytes;
    const struct maybe_f64 plateau = t->fp.throughput.plateau_gbps;

    if (IS_KNOWN(reach) && reach.v < t->fp.gpu.memory_bytes)
        return IS_KNOWN(plateau) ? EXIT_DONE
                                 : refuse_missing(t, "throughput within the reach", plateau.reason);
    if (!IS_KNOWN(reach) && reach.known != MAYBE_NOT_OBSERVABLE) {
        return refuse_missing(t, "reach of an SM group", reach.reason);
    }
    printf("%s, fingerprint %s: every SM reaches all of its %s, so no strategy gains.\n",
           t->fp.gpu.name, t->id, format_size(t->fp.gpu.memory_bytes, memory));
    return EXIT_PARTLY;
}

enum exit_code command_break_even(struct client *client, const struct options *options)
{
    struct table *t = calloc(1, sizeof(*t)); /* too large for a stack */
    enum exit_code exit_code;

    if (!t)
        return client_no_memory();
    t->input_bytes = DEFAULT_INPUT;
    if (!parse_number(options_param(options, "input_bytes"), &t->input_bytes) ||
        !parse_number(options_param(options, "scan_gps"), &t->scan_gps))
        exit_code =
            client_usage_error("--input-bytes and --scan-gps must be numbers above 0", NULL);
    else if (options->format && strcmp(options->format, "markdown") != 0)
        exit_code = client_usage_error("--format must be markdown, not", options->format);
    else
        exit_code = client_get_fingerprint(client, options,
                                           options->fingerprint ? options->fingerprint : "current",
                                           &t->fp, t->id);
    if (exit_code == EXIT_DONE)
        exit_code = check_reach(t);
    if (exit_code == EXIT_DONE)
        exit_code = options->json ? print_json(t) : print_text(t, options->format != NULL);
    free(t);
    return exit_code == EXIT_PARTLY ? EXIT_DONE : exit_code;
}
