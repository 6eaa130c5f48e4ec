/* health.c: reachctl health reports whether the GPUs of a node are usable, for programs that check
 * nodes. Its exit statuses are those of the custom plugins of node-problem-detector: 0 healthy, 1 a
 * problem, any other status unknown. */
#include "clients/reachctl/client.h"
#include "clients/reachctl/text.h"

#include <stdio.h>

static void print_health(const json_t *answer)
{
    const json_t *const problems = json_object_get(answer, "problems");
    const json_t *problem;
    const json_t *check;
    size_t i;

    if (json_array_size(problems) == 0)
        text_print(answer, "healthy: {gpus.found:d} GPUs were found\n");
    json_array_foreach(problems, i, problem)
    {
        text_print(problem, json_is_string(json_object_get(problem, "gpu"))
                                ? "{kind} {gpu}: {text}\n"
                                : "{kind}: {text}\n");
        text_print(problem, "  next step: {next_step}\n");
    }
    json_array_foreach(json_object_get(answer, "checks"), i, check)
    {
        if (json_is_string(json_object_get(check, "checked_at")))
            text_print(check, "  quick check of {gpu} made at {checked_at}\n");
        if (json_is_string(json_object_get(check, "put_off_at")))
            text_print(check, "  quick check of {gpu} put off at {put_off_at}: {put_off}\n");
    }
}

enum exit_code command_health(struct client *client, const struct options *options)
{
    struct client_answer answer;
    enum exit_code exit_code = EXIT_DONE;

    if (client_get(client, "/v1/health", NULL, &answer) != EXIT_DONE)
        return EXIT_UNREACHABLE; /* nothing is known about the node, whatever the reason is */
    const json_t *const gpus = json_object_get(answer.json, "gpus");

    if (json_array_size(json_object_get(answer.json, "problems")) > 0) {
        exit_code = EXIT_FAILED;
    } else if (!json_is_integer(json_object_get(gpus, "found"))) {
        fputs("reachctl: the daemon has not counted the GPUs of this node\n"
              "  next step: wait for GPU discovery, or start reachd without --no-gpus\n",
              stderr);
        exit_code = EXIT_UNREACHABLE;
    }
    if (options->json)
        fputs(answer.body, stdout);
    else if (exit_code != EXIT_UNREACHABLE)
        print_health(answer.json);
    client_answer_free(&answer);
    return exit_code;
}
