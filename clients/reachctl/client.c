/* client.c: libcurl, one easy handle for the life of the program. */
#include "clients/reachctl/client.h"

#include "base/clock.h"

#include <ctype.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char DEFAULT_SOCKET[] = "/run/reachd/reachd.sock";
static const char DEFAULT_URL[] = "http://127.0.0.1:17322";

/* An answer takes microseconds; an observation of megabytes a little more. */
enum { CONNECT_SECONDS = 5, WHOLE_SECONDS = 60, MAX_BODY_BYTES = 1 << 30 };
enum { HTTP_UNAVAILABLE = 503 };

#define DISCOVERY_PAUSE (NSEC_PER_SEC / 10)

struct client {
    CURL *curl;
    char *base;              /* owned: "http://127.0.0.1:17322" */
    const char *socket_path; /* NULL: by address */
    char error[CURL_ERROR_SIZE];
};

static bool is_socket(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

static const char *choose(const struct options *options, struct client *client)
{
    const char *url = options->url;

    if (!url && !options->socket_path)
        url = getenv("REACHD_URL");
    if (url && *url)
        return url;
    if (options->socket_path)
        client->socket_path = options->socket_path;
    else if (is_socket(DEFAULT_SOCKET) && access(DEFAULT_SOCKET, W_OK) == 0)
        client->socket_path = DEFAULT_SOCKET;
    return client->socket_path ? "http://localhost" : DEFAULT_URL;
}

struct client *client_new(const struct options *options)
{
    struct client *client = calloc(1, sizeof(*client));
    size_t length;

    if (!client)
        return NULL;
    client->base = strdup(choose(options, client));
    client->curl = curl_easy_init();
    if (!client->base || !client->curl) {
        client_free(client);
        return NULL;
    }
    length = strlen(client->base);
    while (length > 0 && client->base[length - 1] == '/')
        client->base[--length] = '\0';
    return client;
}

void client_free(struct client *take)
{
    if (!take)
        return;
    curl_easy_cleanup(take->curl);
    free(take->base);
    free(take);
}

static size_t on_data(char *data, size_t size, size_t count, void *cls)
{
    struct client_answer *answer = cls;
    const size_t bytes = size * count;
    char *grown;

    if (bytes > MAX_BODY_BYTES - answer->body_bytes)
        return 0;
    grown = realloc(answer->body, answer->body_bytes + bytes + 1);
    if (!grown)
        return 0; /* curl then fails with a write error */
    memcpy(grown + answer->body_bytes, data, bytes);
    answer->body = grown;
    answer->body_bytes += bytes;
    grown[answer->body_bytes] = '\0';
    return bytes;
}

static void set_up(struct client *client, const char *url, const char *json_body, bool post,
                   struct curl_slist *fields, struct client_answer *answer)
{
    CURL *curl = client->curl;

    curl_easy_reset(curl); /* connections are kept */
    client->error[0] = '\0';
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)WHOLE_SECONDS);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, client->error);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "reachctl");
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, fields);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    if (client->socket_path)
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, client->socket_path);
    if (client->socket_path || strcmp(client->base, DEFAULT_URL) == 0)
        curl_easy_setopt(curl, CURLOPT_PROXY, ""); /* this machine is not behind a proxy */
    if (post) {
        curl_easy_setopt(curl, CURLOPT_POST, 1L);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, json_body ? json_body : "");
    }
}

void client_print_problem(const json_t *problem)
{
    const char *title = json_string_value(json_object_get(problem, "title"));
    const char *detail = json_string_value(json_object_get(problem, "detail"));
    const char *next_step = json_string_value(json_object_get(problem, "next_step"));

    fprintf(stderr, "reachctl: %s\n", title ? title : "The daemon refused.");
    if (detail)
        fprintf(stderr, "  %s\n", detail);
    if (next_step)
        fprintf(stderr, "  next step: %s\n", next_step);
}

/* libcurl speaks of ports even where a socket is asked. */
static const char *why_unreachable(const struct client *client, CURLcode code)
{
    if (client->socket_path && code == CURLE_COULDNT_CONNECT) {
        if (!is_socket(client->socket_path))
            return "there is no such socket";
        if (access(client->socket_path, W_OK) != 0)
            return "you may not write to this socket";
        return "nobody listens on this socket";
    }
    return client->error[0] ? client->error : curl_easy_strerror(code);
}

static enum exit_code unreachable(const struct client *client, CURLcode code)
{
    fprintf(stderr, "reachctl: no daemon answers at %s\n  %s\n",
            client->socket_path ? client->socket_path : client->base,
            why_unreachable(client, code));
    fputs("  next step: start it (systemctl start reachd), or name it with --socket or --url\n",
          stderr);
    return EXIT_UNREACHABLE;
}

static enum exit_code refused(const struct client_answer *answer)
{
    if (json_is_object(answer->json))
        client_print_problem(answer->json);
    else
        fprintf(stderr, "reachctl: the answer was HTTP %ld and not one of reachd\n",
                answer->http_status);
    return EXIT_FAILED;
}

/* "Authorization: Bearer ..." from the file that REACHD_TOKEN_FILE names, for what changes
 * something. False, with a line on stderr, where the file cannot be read; "" without one. */
static bool token_field(char *out, size_t out_size)
{
    static const char name[] = "Authorization: Bearer ";
    const char *path = getenv("REACHD_TOKEN_FILE");
    FILE *file;

    out[0] = '\0';
    if (!path || !*path)
        return true;
    file = fopen(path, "re");
    memcpy(out, name, sizeof(name));
    if (!file || !fgets(out + sizeof(name) - 1, (int)(out_size - sizeof(name) + 1), file)) {
        fprintf(stderr, "reachctl: cannot read the token in %s\n", path);
        out[0] = '\0';
    }
    out[strcspn(out, "\r\n")] = '\0';
    if (file)
        fclose(file);
    return out[0] != '\0';
}

/* ---- GPU discovery ---- */

/* The daemon serves before the driver has answered which GPUs there are. Its list says so itself,
 * and a request for one GPU is answered with "not-ready". */
static bool is_discovering(const struct client_answer *answer)
{
    const char *discovery = json_string_value(json_object_get(answer->json, "discovery"));
    const char *slug = json_string_value(json_object_get(answer->json, "slug"));

    if (answer->http_status == HTTP_UNAVAILABLE)
        return slug && strcmp(slug, "not-ready") == 0;
    return discovery && strcmp(discovery, "running") == 0;
}

static enum exit_code still_discovering(void)
{
    fprintf(
        stderr,
        "reachctl: GPU discovery is still running after %d s\n"
        "  the NVIDIA driver does not answer which GPUs there are\n"
        "  next step: see whether nvidia-smi answers, and look for Xid lines in the kernel log\n",
        (int)WHOLE_SECONDS);
    return EXIT_FAILED;
}

/* One request, made again while GPU discovery runs, for WHOLE_SECONDS at most. */
static CURLcode perform_discovered(struct client *client, const char *url, bool post,
                                   const char *json_body, struct curl_slist *fields,
                                   struct client_answer *out)
{
    const struct timespec pause = {.tv_nsec = DISCOVERY_PAUSE};
    const nsec_t began = clock_monotonic();
    bool told = false;

    for (;;) {
        set_up(client, url, json_body, post, fields, out);
        const CURLcode code = curl_easy_perform(client->curl);
        const nsec_t waited = clock_monotonic() - began;
        if (code != CURLE_OK)
            return code;
        curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &out->http_status);
        if (out->body)
            out->json = json_loadb(out->body, out->body_bytes, 0, NULL);
        if (!is_discovering(out) || waited >= WHOLE_SECONDS * NSEC_PER_SEC)
            return code;
        if (!told && waited >= NSEC_PER_SEC) {
            fputs("reachctl: waiting for GPU discovery: the driver has not yet answered\n", stderr);
            told = true;
        }
        client_answer_free(out);
        nanosleep(&pause, NULL);
    }
}

static enum exit_code perform(struct client *client, const char *path, const char *accept,
                              bool post, const char *json_body, struct client_answer *out)
{
    enum { OTHER_FIELDS = 64, TOKEN_FIELD = 320 };
    struct curl_slist *fields = NULL;
    struct curl_slist *more;
    enum exit_code exit_code = EXIT_FAILED;
    char field[OTHER_FIELDS];
    char token[TOKEN_FIELD] = "";
    char *url = NULL;
    CURLcode code;

    *out = (struct client_answer){.body = NULL};
    if (post && !token_field(token, sizeof(token)))
        return EXIT_FAILED;
    snprintf(field, sizeof(field), "Accept: %s", accept ? accept : "application/json");
    fields = curl_slist_append(NULL, field);
    more = curl_slist_append(fields, json_body ? "Content-Type: application/json"
                                               : "Content-Type:"); /* none, with no value */
    if (more && token[0])
        more = curl_slist_append(fields, token);
    if (!fields || !more || asprintf(&url, "%s%s", client->base, path) < 0) {
        fputs("reachctl: no memory\n", stderr);
        goto out;
    }
    code = perform_discovered(client, url, post, json_body, fields, out);
    if (code != CURLE_OK)
        exit_code = unreachable(client, code);
    else if (is_discovering(out))
        exit_code = still_discovering();
    else
        exit_code = out->http_status / 100 == 2 ? EXIT_DONE : refused(out);
out:
    if (exit_code != EXIT_DONE)
        client_answer_free(out);
    curl_slist_free_all(fields);
    free(url);
    return exit_code;
}

/* An answer that should be JSON and is not came from somebody else. */
static enum exit_code need_json(enum exit_code exit_code, struct client_answer *out)
{
    if (exit_code != EXIT_DONE || json_is_object(out->json))
        return exit_code;
    fputs("reachctl: the answer is not one of reachd\n  next step: check --url\n", stderr);
    client_answer_free(out);
    return EXIT_FAILED;
}

enum exit_code client_get(struct client *client, const char *path, const char *accept,
                          struct client_answer *out)
{
    enum exit_code exit_code = perform(client, path, accept, false, NULL, out);

    return accept ? exit_code : need_json(exit_code, out);
}

enum exit_code client_post(struct client *client, const char *path, const char *json_body,
                           struct client_answer *out)
{
    return need_json(perform(client, path, NULL, true, json_body, out), out);
}

void client_answer_free(struct client_answer *take)
{
    json_decref(take->json);
    free(take->body);
    *take = (struct client_answer){.body = NULL};
}

/* ---- paths ---- */

/* Everything but unreserved characters as %XX (RFC 3986); cut where there is no room. */
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
