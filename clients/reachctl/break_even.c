/* break_even.c: reachctl break-even prints what a chip gains by the best strategy over naive, for
 * sizes of rows and of the table. One table is for rows that are read in place, one for rows that
 * are copied out. The planner computes the numbers from the fingerprint. */
#include "clients/reachctl/client.h"

#include "planner/format_size.h"
#include "planner/next_step.h"
#include "planner/strategy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 10, FINEST_STEP = 16, CELL_BYTES = 16, DEFAULT_INPUT = 8 };

/* An item is one access of this many bytes. */
struct column {
    enum access access;
    uint32_t element_bytes;
};
static const struct column columns[] = {
    {ACCESS_READ, 32},  {ACCESS_READ, 64},   {ACCESS_READ, 128}, {ACCESS_READ, 256},
    {ACCESS_READ, 512}, {ACCESS_READ, 1024}, {ACCESS_ATOMIC, 8},
};
enum { COLUMN_COUNT = sizeof(columns) / sizeof(*columns) };

/* What the job does with a row. */
static const char *const works[] = {"in-place", "copied"};
enum { IN_PLACE, COPIED, WORK_COUNT };

struct table {
    struct fingerprint fp;
    char id[FINGERPRINT_ID_BYTES];
    double input_bytes;
    double scan_gps; /* 0 if it is not given */
};

/* ---- the numbers ---- */

/* Returns {"gain", "strategy"}, or null if the gain is unknown or the work does not exist. */
static json_t *make_cell(const struct table *t, uint64_t bytes, const struct column *c, int work)
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
        return json_null();
    if (strategy_plan(&t->fp, &job, &answer, &err) != STATUS_OK ||
        !IS_KNOWN(answer.options[0].times_naive))
        return json_null();
    return json_pack("{s:f,s:s}", "gain", answer.options[0].times_naive.v, "strategy",
                     strategy_name(answer.options[0].strategy));
}

/* Returns the step between rows: the power of two near a 16th of the reach, or the next one with
 * which the memory out of reach has at most MOST_ROWS rows. */
static uint64_t row_step(uint64_t reach, uint64_t memory)
{
    uint64_t step = 1;

    while (step <= reach / FINEST_STEP / 2)
        step *= 2;
    while ((memory - reach) / step > MOST_ROWS)
        step *= 2;
    return step;
}

static json_t *make_row(const struct table *t, uint64_t bytes, int work)
{
    json_t *cells = json_array();

    for (int c = 0; c < COLUMN_COUNT; c++)
        json_array_append_new(cells, make_cell(t, bytes, &columns[c], work));
    return json_pack("{s:I,s:o}", "bytes", (json_int_t)bytes, "cells", cells);
}

/* The rows go from the reach to the whole memory. */
static json_t *make_rows(const struct table *t, int work)
{
    const uint64_t reach = t->fp.windows.reach_bytes.v;
    const uint64_t memory = t->fp.gpu.memory_bytes;
    const uint64_t step = row_step(reach, memory);
    json_t *rows = json_array();

    json_array_append_new(rows, make_row(t, reach, work));
    for (uint64_t bytes = (reach / step + 1) * step; bytes < memory; bytes += step)
        json_array_append_new(rows, make_row(t, bytes, work));
    json_array_append_new(rows, make_row(t, memory, work));
    return rows;
}

static json_t *make_columns(void)
{
    json_t *list = json_array();

    for (int c = 0; c < COLUMN_COUNT; c++)
        json_array_append_new(list, json_pack("{s:s,s:i}", "access", access_name(columns[c].access),
                                              "element_bytes", (int)columns[c].element_bytes));
    return list;
}

static json_t *make_document(const struct table *t)
{
    json_t *tables = json_array();

    for (int work = 0; work < WORK_COUNT; work++)
        json_array_append_new(
            tables, json_pack("{s:s,s:o}", "work", works[work], "rows", make_rows(t, work)));
    return json_pack("{s:s,s:s,s:s,s:s,s:I,s:I,s:f,s:o,s:o,s:o}", "gpu", t->fp.gpu.uuid, "name",
                     t->fp.gpu.name, "fingerprint_id", t->id, "origin",
                     origin_name(t->fp.gpu.origin), "reach_bytes",
                     (json_int_t)t->fp.windows.reach_bytes.v, "memory_bytes",
                     (json_int_t)t->fp.gpu.memory_bytes, "input_bytes", t->input_bytes, "scan_gps",
                     t->scan_gps > 0 ? json_real(t->scan_gps) : json_null(), "columns",
                     make_columns(), "tables", tables);
}

/* ---- as text ---- */

/* Writes the gain and the first letter of the strategy: "4.2 f". */
static const char *cell_text(const json_t *cell, char *out)
{
    const double gain = json_real_value(json_object_get(cell, "gain"));
    const char *strategy = json_string_value(json_object_get(cell, "strategy"));

    if (!strategy)
        snprintf(out, CELL_BYTES, "-");
    else if (strcmp(strategy, strategy_name(STRATEGY_NAIVE)) == 0)
        snprintf(out, CELL_BYTES, "1.0");
    else
        snprintf(out, CELL_BYTES, "%.*f %c", gain < 2 ? 2 : 1, gain, strategy[0]);
    return out;
}

/* `mark` is "|" for markdown and "" for plain text. */
static void print_table(const json_t *table, const char *mark)
{
    const bool copied =
        strcmp(json_string_value(json_object_get(table, "work")), works[COPIED]) == 0;
    const int shown = copied ? COLUMN_COUNT - 1 : COLUMN_COUNT;
    char text[FORMAT_SIZE_BYTES];
    char cell[CELL_BYTES];
    size_t i;
    json_t *row;

    printf("%s\n%s%s%12s ",
           copied ? "Rows copied out (read and written once):" : "Rows read in place:",
           *mark ? "\n" : "", mark, "table");
    for (int c = 0; c < shown; c++) {
        snprintf(cell, sizeof(cell), "%s%u B", columns[c].access == ACCESS_READ ? "" : "atomic ",
                 columns[c].element_bytes);
        printf("%s %10s ", mark, cell);
    }
    printf("%s\n", mark);
    for (int c = 0; *mark && c <= shown; c++)
        printf("%s---:%s", mark, c == shown ? "|\n" : "");
    json_array_foreach(json_object_get(table, "rows"), i, row)
    {
        const json_t *cells = json_object_get(row, "cells");
        const uint64_t bytes = (uint64_t)json_integer_value(json_object_get(row, "bytes"));
        printf("%s%12s ", mark, format_size(bytes, text));
        for (int c = 0; c < shown; c++)
            printf("%s %10s ", mark, cell_text(json_array_get(cells, (size_t)c), cell));
        printf("%s\n", mark);
    }
}

static void print_document(const struct table *t, const json_t *document, bool markdown)
{
    char reach[FORMAT_SIZE_BYTES];
    char memory[FORMAT_SIZE_BYTES];
    char scan[64] = "assuming that the scan costs nothing";
    size_t i;
    json_t *table;

    if (t->scan_gps > 0)
        snprintf(scan, sizeof(scan), "scanned at %.6g G/s", t->scan_gps);
    printf("%s (%s), fingerprint %s: an SM group reaches %s of %s.\n", t->fp.gpu.name,
           origin_name(t->fp.gpu.origin), t->id, format_size(t->fp.windows.reach_bytes.v, reach),
           format_size(t->fp.gpu.memory_bytes, memory));
    printf("Predicted gain of the best strategy over naive, input of %.6g bytes per access, %s.\n",
           t->input_bytes, scan);
    puts("w windows, f filtered windows, s scopes, p partitioned windows; 1.0: nothing gains; -: "
         "not "
         "measured.");
    json_array_foreach(json_object_get(document, "tables"), i, table)
    {
        puts("");
        print_table(table, markdown ? "|" : "");
    }
}

/* ---- the command ---- */

/* Reads a number above 0; returns false if the text is not one. NULL leaves `*out` as it is. */
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
    printf("%s, fingerprint %s: every SM reaches all of its %s, so nothing gains.\n",
           t->fp.gpu.name, t->id, format_size(t->fp.gpu.memory_bytes, memory));
    return EXIT_PARTLY;
}

static enum exit_code print_all(const struct table *t, const struct options *options)
{
    json_t *document = make_document(t);

    if (!document)
        return client_no_memory();
    if (options->json) {
        json_dumpf(document, stdout, JSON_REAL_PRECISION(6) | JSON_INDENT(1));
        puts("");
    } else {
        print_document(t, document, options->format != NULL);
    }
    json_decref(document);
    return EXIT_DONE;
}

enum exit_code command_break_even(struct client *client, const struct options *options)
{
    struct options with_gpu = *options;
    struct table *t = calloc(1, sizeof(*t)); /* too large for a stack */
    enum exit_code exit_code;

    if (!t)
        return client_no_memory();
    t->input_bytes = DEFAULT_INPUT;
    if (options->operand)
        with_gpu.gpu = options->operand;
    if (!parse_number(options_param(options, "input_bytes"), &t->input_bytes) ||
        !parse_number(options_param(options, "scan_gps"), &t->scan_gps))
        exit_code =
            client_usage_error("--input-bytes and --scan-gps must be numbers above 0", NULL);
    else if (options->format && strcmp(options->format, "markdown") != 0)
        exit_code = client_usage_error("--format must be markdown, not", options->format);
    else
        exit_code = client_get_fingerprint(client, &with_gpu,
                                           options->fingerprint ? options->fingerprint : "current",
                                           &t->fp, t->id);
    if (exit_code == EXIT_DONE)
        exit_code = check_reach(t);
    if (exit_code == EXIT_DONE)
        exit_code = print_all(t, options);
    free(t);
    return exit_code == EXIT_PARTLY ? EXIT_DONE : exit_code;
}
