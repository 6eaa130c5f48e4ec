/* gpus.c: reachctl gpus lists GPUs, reachctl forget deletes lost ones. */
#include "clients/reachctl/client.h"
#include "clients/reachctl/text.h"

#include <stdio.h>
#include <string.h>

/* Prints what no measurement of the GPU has covered yet, and when the daemon tries next. */
static void print_missing(const json_t *gpu)
{
    const json_t *missing = json_object_get(gpu, "missing");

    if (json_array_size(missing) == 0)
        return;
    text_print(gpu, "GPU {index:d} is not completely measured; missing:");
    for (size_t i = 0; i < json_array_size(missing); i++)
        printf("%s %s", i ? "," : "", json_string_value(json_array_get(missing, i)));
    if (json_is_string(json_object_get(gpu, "next_attempt_at")))
        text_print(gpu, "; the next attempt begins at {next_attempt_at}");
    putchar('\n');
}

static void print_gpus(const struct options *options, const json_t *answer)
{
    static const char columns[] =
        ">GPU {index:d}|UUID {uuid}|name {name}|>SMs {sm_count:d}|>memory {memory_bytes:B}|"
        "state {state}|fingerprint {fingerprint_id}|taken at {fingerprint_taken_at}|"
        "origin {origin}";
    const json_t *gpus = json_object_get(answer, "gpus");
    size_t i;
    json_t *gpu;

    (void)options;
    if (json_array_size(gpus) == 0)
        puts("no GPUs");
    else
        text_table(gpus, columns);
    json_array_foreach(gpus, i, gpu)
    {
        print_missing(gpu);
        if (json_is_object(json_object_get(gpu, "last_error")))
            text_print(gpu, "GPU {index:d} is {state}: {last_error.text}\n"
                            "  next step: {last_error.next_step}\n");
    }
    if (json_is_object(json_object_get(answer, "source_error")))
        text_print(answer, "why: {source_error.text}\n  next step: {source_error.next_step}\n");
}

/* Forgets one GPU and prints the response. */
static enum exit_code forget_gpu(struct client *client, const struct options *options,
                                 const char *gpu)
{
    const struct options one = {.gpu = gpu};
    char path[CLIENT_PATH_BYTES];
    struct client_answer answer;

    client_gpu_path(&one, "", path);
    const enum exit_code exit_code = client_change(client, "DELETE", path, NULL, &answer);
    if (exit_code == EXIT_DONE && options->json)
        fputs(answer.body, stdout);
    else if (exit_code == EXIT_DONE)
        text_print(answer.json, "forgotten: {uuid}\n");
    client_answer_free(&answer);
    return exit_code;
}

static enum exit_code forget_lost(struct client *client, const struct options *options)
{
    struct client_answer answer;
    enum exit_code exit_code = client_get(client, "/v1/gpus", NULL, &answer);
    const json_t *gpu;
    size_t count = 0;
    size_t i;

    if (exit_code != EXIT_DONE)
        return exit_code;
    json_array_foreach(json_object_get(answer.json, "gpus"), i, gpu)
    {
        const char *state = json_string_value(json_object_get(gpu, "state"));
        const char *uuid = json_string_value(json_object_get(gpu, "uuid"));
        if (exit_code != EXIT_DONE || !state || !uuid || strcmp(state, "lost") != 0)
            continue;
        exit_code = forget_gpu(client, options, uuid);
        count++;
    }
    if (count == 0 && !options->json)
        puts("no GPU is lost");
    client_answer_free(&answer);
    return exit_code;
}

enum exit_code command_forget(struct client *client, const struct options *options)
{
    const char *const gpu = options->operand_count ? options->operands[0] : NULL;

    if (!options->lost == !gpu)
        return client_usage_error("forget needs a UUID or --lost", NULL);
    return gpu ? forget_gpu(client, options, gpu) : forget_lost(client, options);
}

enum exit_code command_gpus(struct client *client, const struct options *options)
{
    return client_print(client, options, "/v1/gpus", print_gpus);
}
