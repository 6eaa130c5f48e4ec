/* plan.c: reachctl plan, reachctl split and reachctl explain. */
#include "clients/reachctl/answers.h"
#include "clients/reachctl/client.h"
#include "clients/reachctl/text.h"

#include <stdio.h>
#include <string.h>

enum { SIZES_BYTES = 512, RANGES_BYTES = 1024 };

/* ---- plan ---- */

/* "-" for a zero, which here means none. */
static void count_or_none(const json_t *object, const char *name, char *out)
{
    if (json_integer_value(json_object_get(object, name)) == 0)
        snprintf(out, TEXT_CELL_BYTES, "-");
    else
        text_count(object, name, out);
}

static void option_row(struct text_table *t, const json_t *option)
{
    char(*cells)[TEXT_CELL_BYTES] = text_table_row(t);
    const bool possible = json_is_true(json_object_get(option, "possible"));

    text_word(option, "strategy", cells[0]);
    if (!possible) {
        snprintf(cells[1], TEXT_CELL_BYTES, "not possible");
        return;
    }
    text_real(option, "gbps", 0, "", cells[1]);
    text_real(option, "times_naive", 2, "", cells[2]);
    count_or_none(option, "passes", cells[3]);
    count_or_none(option, "windows", cells[4]);
    if (json_integer_value(json_object_get(option, "scope_bytes")) > 0)
        text_size(option, "scope_bytes", cells[5]);
    else
        snprintf(cells[5], TEXT_CELL_BYTES, "-");
    text_real(option, "extra_bytes_per_access", 1, "", cells[6]);
    text_word(option, "bound", cells[7]);
}

static void print_plan(const json_t *answer)
{
    const json_t *options = json_object_get(answer, "options");
    char cell[TEXT_CELL_BYTES];
    struct text_table t;
    size_t i;
    json_t *option;

    printf("recommended %s\n", text_word(answer, "recommended", cell));
    printf("inside      %s", text_real(answer, "inside_gbps", 0, "GB/s inside the reach", cell));
    printf(" (%s)\n", text_word(answer, "basis", cell));
    text_table_begin(&t, "strategy|>GB/s|>x naive|>passes|>windows|>scope|>extra B|limit");
    json_array_foreach(options, i, option)
    {
        option_row(&t, option);
    }
    text_table_end(&t, stdout);
    json_array_foreach(options, i, option)
    {
        const char *why = json_string_value(json_object_get(option, "why"));
        printf("%-20s %s\n", text_word(option, "strategy", cell), why ? why : "-");
    }
    if (json_is_object(json_object_get(answer, "placement")))
        answers_print_windows(json_object_get(answer, "placement"));
    answers_print_foot(answer);
}

enum exit_code command_plan(struct client *client, const struct options *options)
{
    char path[CLIENT_PATH_BYTES];

    client_gpu_path(options, "/plan", path);
    client_add_param(path, "bytes", options->operand);
    client_add_options(path, options);
    return answers_ask(client, options, path, print_plan);
}

/* ---- split ---- */

static void print_split(const json_t *answer)
{
    const json_t *jobs = json_object_get(answer, "jobs");
    char ranges[RANGES_BYTES];
    struct text_table t;
    size_t i;
    json_t *job;

    text_table_begin(&t, ">job|>bytes|>SMs|>groups|>windows|>GB/s|>GB/s unsplit|fits");
    json_array_foreach(jobs, i, job)
    {
        char(*cells)[TEXT_CELL_BYTES] = text_table_row(&t);
        snprintf(cells[0], TEXT_CELL_BYTES, "%zu", i);
        text_size(job, "bytes", cells[1]);
        text_count(job, "sm_count", cells[2]);
        text_count(job, "group_count", cells[3]);
        text_count(job, "window_count", cells[4]);
        text_real(job, "gbps", 0, "", cells[5]);
        text_real(job, "unsplit_gbps", 0, "", cells[6]);
        snprintf(cells[7], TEXT_CELL_BYTES, "%s",
                 json_is_true(json_object_get(job, "fits")) ? "yes" : "no");
    }
    text_table_end(&t, stdout);
    json_array_foreach(jobs, i, job)
    {
        const char *why = json_string_value(json_object_get(job, "why"));
        printf("job %zu: %s\n", i, why ? why : "-");
        printf("SMs of it   %s\n",
               text_ranges(json_object_get(job, "sms"), ranges, sizeof(ranges)));
        answers_print_windows(job);
    }
    answers_print_foot(answer);
}

/* "20G", "40G" and "20G,40G" mean the same. */
static void join_sizes(const struct options *options, char *out)
{
    size_t at = 0;

    out[0] = '\0';
    for (int i = 0; i < options->operand_count && at + 1 < SIZES_BYTES; i++)
        at += (size_t)snprintf(out + at, SIZES_BYTES - at, "%s%.40s", i > 0 ? "," : "",
                               options->operands[i]);
}

enum exit_code command_split(struct client *client, const struct options *options)
{
    char path[CLIENT_PATH_BYTES];
    char sizes[SIZES_BYTES];

    join_sizes(options, sizes);
    client_gpu_path(options, "/split", path);
    client_add_param(path, "bytes", sizes);
    client_add_options(path, options);
    return answers_ask(client, options, path, print_split);
}

/* ---- explain ---- */

static void print_explain(const json_t *answer)
{
    const json_t *share = json_object_get(answer, "translation_share");
    char cell[TEXT_CELL_BYTES];
    size_t i;
    json_t *check;

    printf("verdict     %s\n", text_word(answer, "verdict", cell));
    printf("seen        %s\n", text_real(answer, "seen_gbps", 0, "GB/s", cell));
    printf("here        %s\n", text_real(answer, "here_gbps", 0, "GB/s expected", cell));
    printf("inside      %s\n", text_real(answer, "inside_gbps", 0, "GB/s expected", cell));
    printf("loss        %s\n", text_real(answer, "loss_gbps", 0, "GB/s", cell));
    if (json_is_number(share))
        printf("translation %.0f%% of the time lost\n", json_number_value(share) * 100);
    answers_print_foot(answer);
    json_array_foreach(json_object_get(answer, "checks"), i, check)
    {
        printf("check %zu     %s\n", i + 1, json_string_value(check));
    }
}

enum exit_code command_explain(struct client *client, const struct options *options)
{
    char path[CLIENT_PATH_BYTES];

    client_gpu_path(options, "/explain", path);
    client_add_param(path, "bytes", options->operand);
    client_add_options(path, options);
    return answers_ask(client, options, path, print_explain);
}
