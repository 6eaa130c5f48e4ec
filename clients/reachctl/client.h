/* client.h: requests through libreach, fingerprints, and the messages when a request fails. */
#pragma once

#include "clients/reachctl/options.h"

#include "base/json_writer.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

enum { CLIENT_PATH_BYTES = 2048 };

struct client;

struct client_answer {
    struct reach_answer *answer; /* owned */
    const char *body;            /* borrowed from `answer`, terminated */
    size_t body_bytes;
    json_t *json; /* owned; NULL if the body is not JSON */
};

/* The source is --url (any URI of libreach, such as file:PATH) or --socket if one is given.
 * Otherwise it is REACHD_URL, the default socket if that exists, or the default address. Returns
 * NULL, with a message, if the source cannot be opened. */
struct client *client_new(const struct options *options);
void client_free(struct client *take);

/* Send a request, and repeat it while GPU discovery of the daemon runs. A `json_body` of NULL posts
 * an empty body; `accept` of NULL means JSON. If the status is not 2xx, a message is printed, the
 * exit code returned, and `*out` is empty. */
enum exit_code client_get(struct client *client, const char *path, const char *accept,
                          struct client_answer *out);
enum exit_code client_change(struct client *client, const char *method, const char *path,
                             const char *json_body, struct client_answer *out);
void client_answer_free(struct client_answer *take);

typedef void client_print_fn(const struct options *options, const json_t *answer);
/* GETs `path` and prints the response; with --json the response is unchanged. */
enum exit_code client_print(struct client *client, const struct options *options, const char *path,
                            client_print_fn *print);
/* Ends a document and prints it. */
enum exit_code client_print_json(struct json_writer *take);

/* Writes "/v1/gpus/{gpu}" and `rest` to out[CLIENT_PATH_BYTES], with the GPU escaped. */
void client_gpu_path(const struct options *options, const char *rest, char *out);
/* Appends "?name=value" or "&name=value", with the value escaped. A value of NULL adds nothing. */
void client_add_param(char *path, const char *name, const char *value);

/* Appends every option that is a parameter of requests to the planner. */
void client_add_options(char *path, const struct options *options);

/* Reads a file that was just opened, or reports why it could not be opened, and closes it unless it
 * is stdin. Reads at most `most_bytes` + 1 bytes, so the caller can refuse a larger file. The
 * caller frees `*out_text`, which is NULL on failure. */
enum status client_read_file(FILE *take, const char *name, size_t most_bytes, char **out_text,
                             size_t *out_bytes, struct err *err);

/* Print a message to stderr and return the exit code. `which` is appended to `what` unless it is
 * NULL. */
enum exit_code client_usage_error(const char *what, const char *which);
enum exit_code client_print_error(const struct err *err);
enum exit_code client_no_memory(void);

/* Reads a fingerprint, with the same checks as when the daemon loads one, so that a command can
 * rely on its counts and indices. `which` is an id of the daemon's history, "current" (of the GPU
 * in `options`), or the path of an exported file, which needs no daemon. Errors are printed.
 * `out_id`, of FINGERPRINT_ID_BYTES or NULL, gets the id in the document, or the computed id if the
 * document has none. */
enum exit_code client_get_fingerprint(struct client *client, const struct options *options,
                                      const char *which, struct fingerprint *out, char *out_id);
/* Calls client_get_fingerprint with allocated memory, which the caller frees. If it fails, prints a
 * message and returns NULL; `*out` is the exit code. */
struct fingerprint *client_load_fingerprint(struct client *client, const struct options *options,
                                            const char *which, char *out_id, enum exit_code *out);
/* Reads a fingerprint from a document. `name` is for the error message. */
enum exit_code client_read_fingerprint(const json_t *json, const char *name,
                                       struct fingerprint *out, char *out_id);
/* Reads a fingerprint from a document without printing a message. */
enum status client_parse_fingerprint(const json_t *json, struct fingerprint *out, char *out_id,
                                     struct err *err);
