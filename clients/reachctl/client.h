/* client.h: requests through libreach, fingerprints, and the messages when a request fails. */
#ifndef REACHCTL_CLIENT_H
#define REACHCTL_CLIENT_H

#include "clients/reachctl/options.h"

#include "base/status.h"
#include "fingerprint/fingerprint.h"

#include <jansson.h>
#include <stddef.h>

enum { CLIENT_PATH_BYTES = 2048 };

struct client;

struct client_answer {
    struct reach_answer *answer; /* owned */
    const char *body;            /* of it, terminated */
    size_t body_bytes;
    json_t *json; /* owned; NULL if the body is not JSON */
};

/* The source is --url (a URI of libreach: file:PATH too), --socket, REACHD_URL, the default socket
 * if there is one, else the default address. NULL, with a line on stderr, if it cannot be opened.
 */
struct client *client_new(const struct options *options);
void client_free(struct client *take);

/* GET, POST and DELETE, made again while the daemon's GPU discovery runs. A `json_body` of NULL
 * posts nothing; `accept` of NULL means JSON. A status other than 2xx is printed to stderr and
 * returned as an exit code; `*out` is then empty. */
enum exit_code client_get(struct client *client, const char *path, const char *accept,
                          struct client_answer *out);
enum exit_code client_post(struct client *client, const char *path, const char *json_body,
                           struct client_answer *out);
enum exit_code client_delete(struct client *client, const char *path, struct client_answer *out);
void client_answer_free(struct client_answer *take);

typedef void client_print_fn(const struct options *options, const json_t *answer);
/* GETs `path` and prints the answer, with --json as it is. */
enum exit_code client_print(struct client *client, const struct options *options, const char *path,
                            client_print_fn *print);

/* "/v1/gpus/{gpu}" + rest, with the GPU escaped. */
void client_gpu_path(const struct options *options, const char *rest, char *out);
/* Appends "?name=value" or "&name=value", the value escaped. NULL adds nothing. */
void client_add_param(char *path, const char *name, const char *value);

/* Appends every option that is a parameter of requests to the planner. */
void client_add_options(char *path, const struct options *options);

/* Print a message to stderr and return the exit code. `which` is appended to `what`; NULL: nothing.
 */
enum exit_code client_usage_error(const char *what, const char *which);
enum exit_code client_print_error(const struct err *err);

/* A fingerprint as a value. It passes the same checks as one that the daemon loads, so that a
 * command can rely on its counts and indices. `which` is an id of the daemon's history, "current"
 * (of the GPU that `options` name), or the path of an exported file, which needs no daemon. Errors
 * are printed. `out_id`, of FINGERPRINT_ID_BYTES or NULL, gets the id in the document or, without
 * one, that of the value. */
enum exit_code client_get_fingerprint(struct client *client, const struct options *options,
                                      const char *which, struct fingerprint *out, char *out_id);
/* Reads a fingerprint from a document. `name` is for the error message. */
enum exit_code client_read_fingerprint(const json_t *json, const char *name,
                                       struct fingerprint *out, char *out_id);
/* The same without a message. */
enum status client_parse_fingerprint(const json_t *json, struct fingerprint *out, char *out_id,
                                     struct err *err);

#endif
