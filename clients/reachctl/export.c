/* export.c: reachctl export writes the fingerprint of a GPU to a file, from which every client
 * plans without a daemon (file:FILE). */
#include "clients/reachctl/client.h"

#include "batch/export.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_FILE "fingerprint.json"

static enum exit_code write_document(const struct options *options, const char *file,
                                     const struct client_answer *answer,
                                     const struct fingerprint *fp)
{
    struct err err = {0};

    if (strcmp(file, "-") == 0) {
        fputs(answer->body, stdout); /* main.c reports a failure */
        return EXIT_DONE;
    }
    if (export_text(file, answer->body, answer->body_bytes, &err) != STATUS_OK)
        return client_print_error(&err);
    if (options->json)
        fputs(answer->body, stdout);
    else
        printf("%s: fingerprint of %s, %s, depth %s\n", file, fp->gpu.name,
               origin_name(fp->gpu.origin), depth_name(fp->depth));
    return EXIT_DONE;
}

enum exit_code command_export(struct client *client, const struct options *options)
{
    const char *const file = options->second ? options->second : DEFAULT_FILE;
    struct fingerprint *const fp = malloc(sizeof(*fp));
    struct client_answer answer;
    char path[CLIENT_PATH_BYTES];
    enum exit_code exit_code;

    if (!fp)
        return client_no_memory();
    client_gpu_path(options, "/fingerprint", path);
    client_add_param(path, "at", options->at);
    exit_code = client_get(client, path, NULL, &answer);
    if (exit_code == EXIT_DONE) {
        exit_code = client_read_fingerprint(answer.json, path, fp, NULL);
        if (exit_code == EXIT_DONE)
            exit_code = write_document(options, file, &answer, fp);
        client_answer_free(&answer);
    }
    free(fp);
    return exit_code;
}
