/* gpus.c: reachctl gpus. */
#include "clients/reachctl/client.h"
#include "clients/reachctl/text.h"

#include <string.h>

static void add_row(struct text_table *t, const json_t *gpu)
{
    char(*cells)[TEXT_CELL_BYTES] = text_table_row(t);

    text_count(gpu, "index", cells[0]);
    text_word(gpu, "uuid", cells[1]);
    text_word(gpu, "name", cells[2]);
    text_count(gpu, "sm_count", cells[3]);
    text_size(gpu, "memory_bytes", cells[4]);
    text_word(gpu, "state", cells[5]);
    text_word(gpu, "fingerprint_id", cells[6]);
    text_word(gpu, "fingerprint_taken_at", cells[7]);
    text_word(gpu, "origin", cells[8]);
}

static void print_error(const char *whose, const json_t *error)
{
    if (!json_is_object(error))
        return;
    printf("%s: %s\n  next step: %s\n", whose, json_string_value(json_object_get(error, "text")),
           json_string_value(json_object_get(error, "next_step")));
}

enum exit_code command_gpus(struct client *client, const struct options *options)
{
    struct client_answer answer;
    struct text_table table;
    const json_t *gpus;
    size_t i;
    json_t *gpu;
    enum exit_code exit_code = client_get(client, "/v1/gpus", NULL, &answer);

    if (exit_code != EXIT_DONE)
        return exit_code;
    if (options->json) {
        fputs(answer.body, stdout);
        goto out;
    }
    gpus = json_object_get(answer.json, "gpus");
    if (json_array_size(gpus) == 0)
        puts("no GPUs");
    else
        text_table_begin(&table, ">GPU|UUID|name|>SMs|>memory|state|fingerprint|taken at|origin");
    json_array_foreach(gpus, i, gpu)
    {
        add_row(&table, gpu);
    }
    if (json_array_size(gpus) > 0)
        text_table_end(&table, stdout);
    json_array_foreach(gpus, i, gpu)
    {
        char whose[TEXT_CELL_BYTES];
        char index[TEXT_CELL_BYTES];
        snprintf(whose, sizeof(whose), "GPU %.40s, last measurement",
                 text_count(gpu, "index", index));
        print_error(whose, json_object_get(gpu, "last_error"));
    }
    print_error("why", json_object_get(answer.json, "source_error"));
out:
    client_answer_free(&answer);
    return EXIT_DONE;
}
