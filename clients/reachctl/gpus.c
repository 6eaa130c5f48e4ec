/* gpus.c: reachctl gpus. */
#include "clients/reachctl/client.h"
#include "clients/reachctl/text.h"

#include <stdio.h>

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
        if (json_is_object(json_object_get(gpu, "last_error")))
            text_print(gpu, "GPU {index:d}, last measurement: {last_error.text}\n"
                            "  next step: {last_error.next_step}\n");
    }
    if (json_is_object(json_object_get(answer, "source_error")))
        text_print(answer, "why: {source_error.text}\n  next step: {source_error.next_step}\n");
}

enum exit_code command_gpus(struct client *client, const struct options *options)
{
    return client_print(client, options, "/v1/gpus", print_gpus);
}
