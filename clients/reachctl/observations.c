/* observations.c: reachctl observations lists all observations, or prints one completely. */
#include "clients/reachctl/client.h"
#include "clients/reachctl/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELD_CHARACTERS = 72 };

/* Prints one line per field; long arrays are truncated. The reason of an absent number is printed
 * in its place. */
static void print_fields(const char *title, json_t *object)
{
    const char *name;
    json_t *value;

    puts(title);
    json_object_foreach(object, name, value)
    {
        size_t bytes; /* the text ends with a line feed */
        char *text = json_writer_render(value, &bytes);
        char template[64];
        const int length = text ? (int)bytes - 1 : 0;
        if (json_is_null(value)) {
            snprintf(template, sizeof(template), "{%.50s:d}\n", name);
            printf("  %-20s ", name);
            text_print(object, template);
        } else if (!strstr(name, "_reason"))
            printf("  %-20s %.*s%s\n", name, length < FIELD_CHARACTERS ? length : FIELD_CHARACTERS,
                   text ? text : "", length > FIELD_CHARACTERS ? "..." : "");
        free(text);
    }
}

static enum exit_code print_one(struct client *client, const struct options *options)
{
    const char *accept = options->csv ? "text/csv" : NULL;
    struct client_answer answer;
    char path[CLIENT_PATH_BYTES];
    char rest[64];
    enum exit_code exit_code;

    snprintf(rest, sizeof(rest), "/observations/%.32s", options->operand);
    client_gpu_path(options, rest, path);
    exit_code = client_get(client, path, accept, &answer);
    if (exit_code != EXIT_DONE)
        return exit_code;
    if (accept || options->json) {
        fwrite(answer.body, 1, answer.body_bytes, stdout);
    } else {
        print_fields("probe", json_object_get(answer.json, "probe"));
        print_fields("conditions", json_object_get(answer.json, "conditions"));
        printf("%zu values: --csv or --json prints them\n",
               json_array_size(json_object_get(answer.json, "values")));
    }
    client_answer_free(&answer);
    return EXIT_DONE;
}

/* Returns all pages as one array; NULL if a request failed. */
static json_t *all_pages(struct client *client, const struct options *options,
                         enum exit_code *out_exit)
{
    json_t *all = json_array();
    char cursor[32] = "";

    do {
        struct client_answer answer;
        const json_t *next;
        char path[CLIENT_PATH_BYTES];
        client_gpu_path(options, "/observations", path);
        client_add_param(path, "limit", "1000");
        client_add_param(path, "run", options->run);
        client_add_param(path, "cursor", *cursor ? cursor : NULL);
        *out_exit = client_get(client, path, NULL, &answer);
        if (*out_exit != EXIT_DONE) {
            json_decref(all);
            return NULL;
        }
        json_array_extend(all, json_object_get(answer.json, "observations"));
        next = json_object_get(answer.json, "next");
        cursor[0] = '\0';
        if (json_is_integer(next))
            snprintf(cursor, sizeof(cursor), "%lld", (long long)json_integer_value(next));
        client_answer_free(&answer);
    } while (*cursor);
    return all;
}

static void print_list(const json_t *all)
{
    static const char columns[] = ">id {id:d}|>run {run:d}|kind {kind}|started at {started_at}|"
                                  ">took {duration_ms:1 ms}|>values {value_count:d}";
    size_t i;
    json_t *row;

    json_array_foreach(all, i, row)
    {
        const double ns = json_number_value(json_object_get(row, "duration_ns"));
        json_object_set_new(row, "duration_ms", json_real(ns / 1e6));
    }
    if (json_array_size(all) == 0)
        puts("no observations");
    else
        text_table(all, columns);
}

enum exit_code command_observations(struct client *client, const struct options *options)
{
    enum exit_code exit_code;
    struct json_writer t;
    json_t *all;

    if (options->operand)
        return print_one(client, options);
    if (options->csv) {
        fputs("reachctl: --csv needs the ID of one observation\n"
              "  next step: list the IDs with reachctl observations\n",
              stderr);
        return EXIT_USAGE;
    }
    all = all_pages(client, options, &exit_code);
    if (!all)
        return exit_code;
    if (options->json) {
        json_writer_begin(&t, 0);
        json_writer_open(&t, NULL, '{');
        json_writer_value(&t, "observations", all);
        json_writer_null(&t, "next");
        json_writer_close(&t, '}');
        exit_code = client_print_json(&t);
    } else {
        print_list(all);
    }
    json_decref(all);
    return exit_code;
}
