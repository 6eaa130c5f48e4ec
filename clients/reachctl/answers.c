/* answers.c: reachctl scope and reachctl placement, and what all answers have in common. */
#include "clients/reachctl/answers.h"

#include "clients/reachctl/client.h"
#include "clients/reachctl/text.h"

#include <stdlib.h>
#include <string.h>

enum { RANGES_BYTES = 1024, IDLE = -1 };

void answers_print_foot(const json_t *answer)
{
    const char *origin = json_string_value(json_object_get(answer, "origin"));
    const char *reason = json_string_value(json_object_get(answer, "reason"));

    printf("reason      %s\n", reason ? reason : "-");
    if (origin && strcmp(origin, "measured") != 0)
        printf("origin      %s: not measured on this hardware\n", origin);
}

static void print_predictions(const json_t *answer)
{
    char cell[TEXT_CELL_BYTES];

    printf("with        %s\n", text_real(answer, "with_gbps", 0, "GB/s predicted", cell));
    printf("without     %s\n", text_real(answer, "without_gbps", 0, "GB/s predicted", cell));
}

static void print_scope(const json_t *answer)
{
    char cell[TEXT_CELL_BYTES];

    printf("advice      %s\n", text_word(answer, "advice", cell));
    printf("scope       %s\n", text_size(answer, "scope_bytes", cell));
    printf("passes      %s\n", text_count(answer, "passes", cell));
    print_predictions(answer);
    answers_print_foot(answer);
}

/* The SMs of one window, or of none (IDLE), as an array. */
static json_t *sms_of(const json_t *window_of_sm, long long window)
{
    json_t *sms = json_array();
    size_t sm;
    json_t *value;

    json_array_foreach(window_of_sm, sm, value)
    {
        long long w = json_is_integer(value) ? (long long)json_integer_value(value) : IDLE;
        if (w == window)
            json_array_append_new(sms, json_integer((json_int_t)sm));
    }
    return sms;
}

static void print_sms(const char *who, const json_t *window_of_sm, long long window)
{
    json_t *sms = sms_of(window_of_sm, window);
    char ranges[RANGES_BYTES];

    if (json_array_size(sms) > 0)
        printf("%-10s  SMs %s\n", who, text_ranges(sms, ranges, sizeof(ranges)));
    json_decref(sms);
}

void answers_print_windows(const json_t *answer)
{
    const json_t *windows = json_object_get(answer, "windows");
    const json_t *window_of_sm = json_object_get(answer, "window_of_sm");
    struct text_table t;
    size_t i;
    json_t *window;

    if (json_array_size(windows) == 0)
        return;
    text_table_begin(&t, ">window|>first byte|>length|>bytes|>SMs|>groups");
    json_array_foreach(windows, i, window)
    {
        char(*cells)[TEXT_CELL_BYTES] = text_table_row(&t);
        text_count(window, "index", cells[0]);
        text_count(window, "first_byte", cells[1]);
        text_size(window, "length_bytes", cells[2]);
        text_count(window, "length_bytes", cells[3]);
        text_count(window, "sm_count", cells[4]);
        text_count(window, "group_count", cells[5]);
    }
    text_table_end(&t, stdout);
    json_array_foreach(windows, i, window)
    {
        char who[TEXT_CELL_BYTES];
        snprintf(who, sizeof(who), "window %zu", i);
        print_sms(who, window_of_sm, (long long)i);
    }
    print_sms("no work", window_of_sm, IDLE);
}

static void print_placement(const json_t *answer)
{
    char cell[TEXT_CELL_BYTES];

    printf("advice      %s\n", text_word(answer, "advice", cell));
    answers_print_windows(answer);
    if (json_is_integer(json_object_get(answer, "margin_bytes")))
        printf("margin      %s\n", text_size(answer, "margin_bytes", cell));
    print_predictions(answer);
    answers_print_foot(answer);
}

enum exit_code answers_ask(struct client *client, const struct options *options, const char *path,
                           answers_print_fn *print)
{
    struct client_answer answer;
    enum exit_code exit_code = client_get(client, path, NULL, &answer);

    if (exit_code != EXIT_DONE)
        return exit_code;
    if (options->json)
        fputs(answer.body, stdout);
    else
        print(answer.json);
    client_answer_free(&answer);
    return EXIT_DONE;
}

enum exit_code command_scope(struct client *client, const struct options *options)
{
    char path[CLIENT_PATH_BYTES];

    client_gpu_path(options, "/scope", path);
    client_add_param(path, "bytes", options->operand);
    client_add_options(path, options);
    return answers_ask(client, options, path, print_scope);
}

enum exit_code command_placement(struct client *client, const struct options *options)
{
    char path[CLIENT_PATH_BYTES];

    client_gpu_path(options, "/placement", path);
    client_add_param(path, "bytes", options->operand);
    client_add_options(path, options);
    return answers_ask(client, options, path, print_placement);
}
