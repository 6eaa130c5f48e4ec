/* client.c: requests through libreach, and the messages when a request fails. */
#include "clients/reachctl/client.h"

#include "clients/c/reach.h"

#include "base/clock.h"
#include "fingerprint/fingerprint_json.h"
#include "fingerprint/fingerprint_read.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A response takes microseconds, or milliseconds if it has several megabytes. */
enum { TIMEOUT_MS = 60000, TOKEN_BYTES = 260, HTTP_UNAVAILABLE = 503 };

#define DISCOVERY_PAUSE (NSEC_PER_SEC / 10)

struct client {
    struct reach *reach;
};

/* Returns the source in the notation of libreach, which the caller frees; NULL if out of memory. */
static char *source_uri(const struct options *options)
{
    char *uri = NULL;
    char *folder;

    if (options->url || !options->socket_path)
        return strdup(options->url ? options->url : "daemon:");
    folder = options->socket_path[0] == '/' ? strdup("") : getcwd(NULL, 0);
    if (folder &&
        asprintf(&uri, "unix:%s%s%s", folder, *folder ? "/" : "", options->socket_path) < 0)
        uri = NULL;
    free(folder);
    return uri;
}

struct client *client_new(const struct options *options)
{
    struct client *client = calloc(1, sizeof(*client));
    char *uri = source_uri(options);
    struct reach_error error = {.text = "cannot open a connection: out of memory"};

    if (!client || !uri || reach_open(uri, &client->reach, &error) != REACH_OK) {
        fprintf(stderr, "reachctl: %s\n", error.text);
        free(client);
        client = NULL;
    } else {
        reach_set_timeout_ms(client->reach, TIMEOUT_MS, NULL);
        /* This program marks a stale response as stale, and reports that it waits for GPUs. */
        reach_allow(client->reach, REACH_ALLOW_STALE | REACH_ALLOW_DISCOVERY, NULL);
    }
    free(uri);
    return client;
}

void client_free(struct client *take)
{
    if (!take)
        return;
    reach_close(take->reach);
    free(take);
}

enum exit_code client_usage_error(const char *what, const char *which)
{
    fprintf(stderr, "reachctl: %s%s%s\n  next step: reachctl --help\n", what, which ? " " : "",
            which ? which : "");
    return EXIT_USAGE;
}

enum exit_code client_print_error(const struct err *err)
{
    fprintf(stderr, "reachctl: %s\n  next step: %s\n", err->text, err_next_step(err));
    return EXIT_FAILED;
}

enum exit_code client_no_memory(void)
{
    fputs("reachctl: cannot finish the command: out of memory\n", stderr);
    return EXIT_FAILED;
}

static void print_problem(const json_t *problem)
{
    const char *title = json_string_value(json_object_get(problem, "title"));
    const char *detail = json_string_value(json_object_get(problem, "detail"));
    const char *next_step = json_string_value(json_object_get(problem, "next_step"));

    fprintf(stderr, "reachctl: %s\n", title ? title : "the daemon refused the request");
    if (detail)
        fprintf(stderr, "  %s\n", detail);
    if (next_step)
        fprintf(stderr, "  next step: %s\n", next_step);
}

/* Reads the token for requests that change something from the file that REACHD_TOKEN_FILE names; ""
 * if the variable is not set. Returns false, with a message, if the file cannot be read. */
static bool read_token(char *out, size_t out_size)
{
    const char *path = getenv("REACHD_TOKEN_FILE");
    FILE *file;

    out[0] = '\0';
    if (!path || !*path)
        return true;
    file = fopen(path, "re");
    if (!file || !fgets(out, (int)out_size, file)) {
        fprintf(stderr, "reachctl: cannot read the token in %s; check REACHD_TOKEN_FILE\n", path);
        out[0] = '\0';
    }
    out[strcspn(out, "\r\n")] = '\0';
    if (file)
        fclose(file);
    return out[0] != '\0';
}

/* Reports a failed request: the problem document if there is one, else the error of libreach. */
static enum exit_code report_failure(enum reach_status status, const struct reach_error *error,
                                     const json_t *problem)
{
    const bool unreachable = status == REACH_UNREACHABLE || status == REACH_TIMEOUT;

    if (json_object_get(problem, "slug"))
        print_problem(problem);
    else
        fprintf(stderr, "reachctl: %s\n", error->text);
    if (unreachable)
        fputs("  next step: name another source with --socket or --url\n", stderr);
    return unreachable ? EXIT_UNREACHABLE : EXIT_FAILED;
}

/* ---- GPU discovery ---- */

/* The daemon serves before the driver has listed the GPUs. Until then a field in its list of GPUs
 * reports this, and a request for one GPU fails with "not-ready". */
static bool is_discovering(const struct reach_answer *answer, const json_t *json)
{
    const char *discovery = json_string_value(json_object_get(json, "discovery"));
    const char *slug = json_string_value(json_object_get(json, "slug"));

    if (reach_answer_http_status(answer) == HTTP_UNAVAILABLE)
        return slug && strcmp(slug, "not-ready") == 0;
    return discovery && strcmp(discovery, "running") == 0;
}

static enum exit_code still_discovering(void)
{
    fprintf(stderr,
            "reachctl: GPU discovery is still running after %d s\n"
            "  the NVIDIA driver does not list its GPUs\n"
            "  next step: check whether nvidia-smi responds, and search the kernel log for Xid "
            "lines\n",
            TIMEOUT_MS / 1000);
    return EXIT_FAILED;
}

/* Sends a request, and repeats it while GPU discovery runs, for TIMEOUT_MS at most. The caller owns
 * the JSON of the response, which is NULL if the response is not JSON. */
static enum reach_status send_discovered(struct client *client, const struct reach_request *request,
                                         struct reach_answer **out, json_t **out_json,
                                         struct reach_error *error)
{
    const struct timespec pause = {.tv_nsec = DISCOVERY_PAUSE};
    const nsec_t began = clock_monotonic();
    bool told = false;

    for (;;) {
        const enum reach_status status = reach_send(client->reach, request, out, error);
        const nsec_t waited = clock_monotonic() - began;
        size_t bytes = 0;
        const char *body = reach_answer_body(*out, &bytes);
        *out_json = body ? json_loadb(body, bytes, 0, NULL) : NULL;
        if (!is_discovering(*out, *out_json) || waited >= TIMEOUT_MS * NSEC_PER_MSEC)
            return status;
        if (!told && waited >= NSEC_PER_SEC)
            fputs("reachctl: waiting for GPU discovery: the driver has not responded yet\n",
                  stderr);
        told = told || waited >= NSEC_PER_SEC;
        json_decref(*out_json);
        reach_answer_free(*out);
        nanosleep(&pause, NULL);
    }
}

static enum exit_code send_request(struct client *client, const struct reach_request *request,
                                   struct client_answer *out)
{
    struct reach_error error = {.status = REACH_OK};
    enum exit_code exit_code = EXIT_DONE;
    enum reach_status status;

    *out = (struct client_answer){.body = NULL};
    status = send_discovered(client, request, &out->answer, &out->json, &error);
    out->body = reach_answer_body(out->answer, &out->body_bytes);
    if (is_discovering(out->answer, out->json))
        exit_code = still_discovering();
    else if (status != REACH_OK)
        exit_code = report_failure(status, &error, out->json);
    if (exit_code != EXIT_DONE)
        client_answer_free(out);
    return exit_code;
}

/* A response that is not JSON came from another server. */
static enum exit_code need_json(enum exit_code exit_code, struct client_answer *out)
{
    if (exit_code != EXIT_DONE || json_is_object(out->json))
        return exit_code;
    fputs("reachctl: the response did not come from reachd\n  next step: check --url\n", stderr);
    client_answer_free(out);
    return EXIT_FAILED;
}

enum exit_code client_get(struct client *client, const char *path, const char *accept,
                          struct client_answer *out)
{
    const struct reach_request request = {
        .size = sizeof(request), .target = path, .accept = accept};
    const enum exit_code exit_code = send_request(client, &request, out);

    return accept ? exit_code : need_json(exit_code, out);
}

enum exit_code client_change(struct client *client, const char *method, const char *path,
                             const char *json_body, struct client_answer *out)
{
    struct reach_request request = {
        .size = sizeof(request), .method = method, .target = path, .body = json_body};
    char token[TOKEN_BYTES];

    *out = (struct client_answer){.body = NULL};
    if (!read_token(token, sizeof(token)))
        return EXIT_FAILED;
    request.token = token[0] ? token : NULL;
    return need_json(send_request(client, &request, out), out);
}

void client_answer_free(struct client_answer *take)
{
    json_decref(take->json);
    reach_answer_free(take->answer);
    *take = (struct client_answer){.body = NULL};
}

enum exit_code client_print(struct client *client, const struct options *options, const char *path,
                            client_print_fn *print)
{
    struct client_answer answer;
    enum exit_code exit_code = client_get(client, path, NULL, &answer);

    if (exit_code != EXIT_DONE)
        return exit_code;
    if (options->json)
        fputs(answer.body, stdout);
    else
        print(options, answer.json);
    client_answer_free(&answer);
    return EXIT_DONE;
}

enum exit_code client_print_json(struct json_writer *take)
{
    size_t bytes;
    char *const text = json_writer_end(take, &bytes);

    if (!text)
        return client_no_memory();
    (void)fwrite(text, 1, bytes, stdout); /* main.c reports a failure */
    free(text);
    return EXIT_DONE;
}

/* ---- paths ---- */

/* Appends `text` with all but unreserved characters as %XX (RFC 3986), truncated if it does not
 * fit. */
static void append_escaped(char *path, const char *text)
{
    size_t at = strlen(path);

    for (; *text && at + 4 < CLIENT_PATH_BYTES; text++) {
        const unsigned char c = (unsigned char)*text;
        if ((c < 0x80 && isalnum(c)) || strchr("-._~", c))
            path[at++] = (char)c;
        else
            at += (size_t)snprintf(path + at, 4, "%%%02X", c);
    }
    path[at] = '\0';
}

void client_gpu_path(const struct options *options, const char *rest, char *out)
{
    size_t at;

    snprintf(out, CLIENT_PATH_BYTES, "/v1/gpus/");
    append_escaped(out, options->gpu);
    at = strlen(out);
    snprintf(out + at, CLIENT_PATH_BYTES - at, "%s", rest);
}

void client_add_param(char *path, const char *name, const char *value)
{
    size_t at = strlen(path);

    if (!value)
        return;
    snprintf(path + at, CLIENT_PATH_BYTES - at, "%c%s=", strchr(path, '?') ? '&' : '?', name);
    append_escaped(path, value);
}

void client_add_options(char *path, const struct options *options)
{
    const struct param *p;

    for (uint32_t i = 0; (p = param_at(i)); i++)
        client_add_param(path, p->name, options->params[i]);
}

const char *options_param(const struct options *options, const char *name)
{
    const struct param *p;

    for (uint32_t i = 0; (p = param_at(i)); i++) {
        if (strcmp(p->name, name) == 0)
            return options->params[i];
    }
    return NULL;
}

enum status client_read_file(FILE *take, const char *name, size_t most_bytes, char **out_text,
                             size_t *out_bytes, struct err *err)
{
    const int error = errno;
    char *text = take ? malloc(most_bytes + 1) : NULL; /* untouched pages take no memory */
    enum status s = STATUS_OK;

    if (!take)
        s = err_set(err, STATUS_IO, "cannot open %.200s: %s", name, strerror(error));
    else if (!text)
        s = err_set(err, STATUS_NO_MEMORY, "cannot read %.200s: out of memory", name);
    else
        *out_bytes = fread(text, 1, most_bytes + 1, take);
    if (s == STATUS_OK && ferror(take))
        s = err_set(err, STATUS_IO, "cannot read %.200s: %s", name, strerror(errno));
    if (take && take != stdin)
        (void)fclose(take);
    if (s != STATUS_OK) {
        free(text);
        text = NULL;
    }
    *out_text = text;
    return s;
}

/* ---- fingerprints ---- */

enum status client_parse_fingerprint(const json_t *json, struct fingerprint *out, char *out_id,
                                     struct err *err)
{
    const char *id = json_string_value(json_object_get(json, "id"));
    const enum status s = fingerprint_from_json(json, out, err);

    if (s != STATUS_OK || !out_id)
        return s;
    if (!id || !fingerprint_is_id(id))
        return fingerprint_id(out, out_id, err);
    snprintf(out_id, FINGERPRINT_ID_BYTES, "%s", id);
    return STATUS_OK;
}

enum exit_code client_read_fingerprint(const json_t *json, const char *name,
                                       struct fingerprint *out, char *out_id)
{
    struct err err = {0};

    if (client_parse_fingerprint(json, out, out_id, &err) == STATUS_OK)
        return EXIT_DONE;
    fprintf(stderr, "reachctl: %s is not a valid fingerprint: %s\n", name, err.text);
    return EXIT_FAILED;
}

static enum exit_code read_fingerprint_file(const char *path, struct fingerprint *out, char *out_id)
{
    json_error_t why;
    json_t *json = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    enum exit_code exit_code = EXIT_FAILED;

    if (json)
        exit_code = client_read_fingerprint(json, path, out, out_id);
    else
        fprintf(stderr, "reachctl: cannot read %s: %s\n", path, why.text);
    json_decref(json);
    return exit_code;
}

static enum exit_code get_fingerprint(struct client *client, const struct options *options,
                                      const char *id, struct fingerprint *out, char *out_id)
{
    struct client_answer answer;
    char path[CLIENT_PATH_BYTES];
    enum exit_code exit_code;

    client_gpu_path(options, "/fingerprint", path);
    client_add_param(path, "at", fingerprint_is_id(id) ? id : NULL);
    exit_code = client_get(client, path, NULL, &answer);
    if (exit_code != EXIT_DONE)
        return exit_code;
    exit_code = client_read_fingerprint(answer.json, id, out, out_id);
    client_answer_free(&answer);
    return exit_code;
}

enum exit_code client_get_fingerprint(struct client *client, const struct options *options,
                                      const char *which, struct fingerprint *out, char *out_id)
{
    if (fingerprint_is_id(which) || strcmp(which, "current") == 0)
        return get_fingerprint(client, options, which, out, out_id);
    return read_fingerprint_file(which, out, out_id);
}

struct fingerprint *client_load_fingerprint(struct client *client, const struct options *options,
                                            const char *which, char *out_id, enum exit_code *out)
{
    struct fingerprint *fp = malloc(sizeof(*fp)); /* too large for a stack */

    *out = fp ? client_get_fingerprint(client, options, which, fp, out_id) : client_no_memory();
    if (*out == EXIT_DONE)
        return fp;
    free(fp);
    return NULL;
}
