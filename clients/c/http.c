/* wire.c: libcurl. Idle connections lie in a small pool; a call takes one or makes one, and nobody
 * holds the lock while it waits for the network. No proxy is ever asked: the daemon is on this node
 * or next to it. */
#include "clients/c/http.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_IDLE = 8, MAX_BODY_BYTES = 16 << 20, URL_BYTES = 2048 };

struct wire {
    char *base;        /* owned: "http://127.0.0.1:17322" */
    char *socket_path; /* owned; NULL: by address */
    pthread_mutex_t lock;
    unsigned idle_count; /* guarded by lock, as the next */
    CURL *idle[MAX_IDLE];
};

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;
static CURLcode curl_started;

/* Never undone: another part of the program may use libcurl too. */
static void start_curl(void)
{
    curl_started = curl_global_init(CURL_GLOBAL_DEFAULT);
}

enum reach_status wire_new(const char *base, const char *socket_path, struct wire **out,
                           struct reach_error *error)
{
    struct wire *wire;

    *out = NULL;
    pthread_once(&curl_once, start_curl);
    if (curl_started != CURLE_OK)
        return fail_with(error, REACH_NOT_SUPPORTED, "libcurl does not start: %s",
                         curl_easy_strerror(curl_started));
    wire = calloc(1, sizeof(*wire));
    if (!wire)
        return fail_with(error, REACH_NO_MEMORY, "no memory for a handle");
    pthread_mutex_init(&wire->lock, NULL);
    wire->base = strdup(base);
    wire->socket_path = socket_path ? strdup(socket_path) : NULL;
    if (!wire->base || (socket_path && !wire->socket_path)) {
        wire_free(wire);
        return fail_with(error, REACH_NO_MEMORY, "no memory for a handle");
    }
    *out = wire;
    return REACH_OK;
}

void wire_free(struct wire *take)
{
    if (!take)
        return;
    for (unsigned i = 0; i < take->idle_count; i++)
        curl_easy_cleanup(take->idle[i]);
    pthread_mutex_destroy(&take->lock);
    free(take->socket_path);
    free(take->base);
    free(take);
}

const char *wire_where(const struct wire *wire)
{
    return wire->socket_path ? wire->socket_path : wire->base;
}

/* ---- the pool ---- */

static CURL *take_connection(struct wire *wire)
{
    CURL *curl = NULL;

    pthread_mutex_lock(&wire->lock);
    if (wire->idle_count > 0)
        curl = wire->idle[--wire->idle_count];
    pthread_mutex_unlock(&wire->lock);
    return curl ? curl : curl_easy_init();
}

static void give_connection(struct wire *wire, CURL *take)
{
    pthread_mutex_lock(&wire->lock);
    if (wire->idle_count < MAX_IDLE) {
        wire->idle[wire->idle_count++] = take;
        take = NULL;
    }
    pthread_mutex_unlock(&wire->lock);
    curl_easy_cleanup(take);
}

/* ---- one request ---- */

static size_t on_data(char *data, size_t size, size_t count, void *cls)
{
    struct wire_answer *answer = cls;
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

/* Keeps the ETag; one that does not fit is as none. */
static size_t on_header(char *data, size_t size, size_t count, void *cls)
{
    static const char NAME[] = "etag:";
    struct wire_answer *answer = cls;
    const size_t bytes = size * count;
    size_t at = sizeof(NAME) - 1;
    size_t end = bytes;

    if (bytes < at || strncasecmp(data, NAME, at) != 0)
        return bytes;
    while (at < end && (data[at] == ' ' || data[at] == '\t'))
        at++;
    while (end > at && (data[end - 1] == '\r' || data[end - 1] == '\n' || data[end - 1] == ' '))
        end--;
    if (end - at < WIRE_TAG_BYTES)
        snprintf(answer->tag, sizeof(answer->tag), "%.*s", (int)(end - at), data + at);
    return bytes;
}

static void set_up(const struct wire *wire, CURL *curl, const char *url, uint32_t deadline_ms,
                   struct curl_slist *fields, struct wire_answer *answer)
{
    curl_easy_reset(curl); /* connections are kept */
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)deadline_ms);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)deadline_ms);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "libreach");
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, fields);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, answer);
    if (wire->socket_path)
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, wire->socket_path);
}

/* libcurl speaks of ports even where a socket is asked. */
static const char *why_no_socket(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0 || !S_ISSOCK(st.st_mode))
        return "there is no such socket";
    if (access(path, W_OK) != 0)
        return "this process may not write to the socket";
    return "nobody listens on the socket";
}

static enum reach_status fail_with_code(const struct wire *wire, CURLcode code,
                                        uint32_t deadline_ms, struct reach_error *error)
{
    static const char NEXT[] = "start it (systemctl start reachd), or name another with reach_open "
                               "or REACHD_URL";

    switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
        return fail_with(error, REACH_DEADLINE, "%s did not answer within %u ms", wire_where(wire),
                         deadline_ms);
    case CURLE_OUT_OF_MEMORY:
        return fail_with(error, REACH_NO_MEMORY, "no memory to ask the daemon");
    case CURLE_COULDNT_CONNECT:
        return fail_with(
            error, REACH_UNREACHABLE, "no daemon answers at %s (%s): %s", wire_where(wire),
            wire->socket_path ? why_no_socket(wire->socket_path) : "nobody listens there", NEXT);
    case CURLE_COULDNT_RESOLVE_HOST:
        return fail_with(error, REACH_UNREACHABLE, "no daemon answers at %s (%s): %s",
                         wire_where(wire), curl_easy_strerror(code), NEXT);
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_PARTIAL_FILE:
        return fail_with(error, REACH_UNREACHABLE, "the daemon at %s went away while it answered",
                         wire_where(wire));
    default:
        return fail_with(error, REACH_PROTOCOL, "what answers at %s is not reachd: %s",
                         wire_where(wire), curl_easy_strerror(code));
    }
}

enum reach_status wire_get(struct wire *wire, const char *path, const char *tag,
                           uint32_t deadline_ms, struct wire_answer *out, struct reach_error *error)
{
    enum { FIELD_BYTES = WIRE_TAG_BYTES + 32 };
    struct curl_slist *fields = NULL;
    enum reach_status status = REACH_OK;
    char field[FIELD_BYTES];
    char url[URL_BYTES];
    CURL *curl = NULL;
    CURLcode code;

    *out = (struct wire_answer){.body = NULL};
    if (snprintf(url, sizeof(url), "%s%s", wire->base, path) >= (int)sizeof(url))
        return fail_with(error, REACH_INVALID_ARGUMENT, "the URL of the daemon is too long");
    snprintf(field, sizeof(field), "If-None-Match: %s", tag);
    curl = take_connection(wire);
    fields = *tag ? curl_slist_append(NULL, field) : NULL;
    if (!curl || (*tag && !fields)) {
        status = fail_with(error, REACH_NO_MEMORY, "no memory to ask the daemon");
        goto out;
    }
    set_up(wire, curl, url, deadline_ms, fields, out);
    code = curl_easy_perform(curl);
    if (code == CURLE_OK)
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &out->http_status);
    else
        status = fail_with_code(wire, code, deadline_ms, error);
out:
    if (curl)
        give_connection(wire, curl);
    curl_slist_free_all(fields);
    if (status != REACH_OK)
        wire_answer_free(out);
    return status;
}

void wire_answer_free(struct wire_answer *take)
{
    free(take->body);
    *take = (struct wire_answer){.body = NULL};
}
