/* http.c: requests by libcurl. Idle connections are in a small pool; a call takes a connection or
 * makes one, and no lock is held during network I/O. No proxy is used, because the daemon is on
 * this node or next to it.
 *
 * After a fork, parent and child share the sockets, and each would read the responses of the other.
 * The parent keeps them; the child drops its pool. */
#include "clients/c/http.h"

#include "clients/c/process.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_IDLE = 8, URL_BYTES = HTTP_TARGET_BYTES + 1024, NAME_BYTES = 64 };

struct http {
    char *base;          /* owned: "http://127.0.0.1:17322" */
    char *socket_path;   /* owned; NULL if connected by address */
    uint32_t generation; /* fork count of the process that made the idle connections. Guarded by the
                            lock of the process, like the next two */
    unsigned idle_count;
    CURL *idle[MAX_IDLE];
};

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;
static CURLcode curl_started;

/* This is never undone, because another part of the program may use libcurl too. */
static void start_curl(void)
{
    curl_started = curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* The libcurl of the Python wheel supports only http. */
static bool has_tls(void)
{
    return curl_version_info(CURLVERSION_NOW)->features & CURL_VERSION_SSL;
}

enum reach_status http_new(const char *base, const char *socket_path, struct http **out,
                           struct reach_error *error)
{
    struct http *http;

    *out = NULL;
    pthread_once(&curl_once, start_curl);
    if (curl_started != CURLE_OK)
        return fail_with(error, REACH_NOT_SUPPORTED, "libcurl does not start: %s",
                         curl_easy_strerror(curl_started));
    if (strncasecmp(base, "https:", 6) == 0 && !has_tls())
        return fail_with(error, REACH_NOT_SUPPORTED,
                         "%s cannot be reached: this libreach was built without TLS. Use http or a "
                         "Unix socket, or the libreach of a distribution",
                         base);
    http = calloc(1, sizeof(*http));
    if (!http)
        return fail_with(error, REACH_NO_MEMORY, "cannot allocate a handle: out of memory");
    process_start();
    http->generation = process_generation();
    http->base = strdup(base);
    http->socket_path = socket_path ? strdup(socket_path) : NULL;
    if (!http->base || (socket_path && !http->socket_path)) {
        http_free(http);
        return fail_with(error, REACH_NO_MEMORY, "cannot allocate a handle: out of memory");
    }
    *out = http;
    return REACH_OK;
}

const char *http_address(const struct http *http)
{
    return http->socket_path ? http->socket_path : http->base;
}

/* ---- the pool ---- */

/* Frees an idle connection of the parent. /dev/null takes the place of its socket first, so that
 * neither libcurl nor TLS sends on it or shuts it down. If that fails, the connection stays
 * allocated. */
static void free_inherited(CURL *take)
{
    curl_socket_t fd = CURL_SOCKET_BAD;
    int nothing = -1;

    if (curl_easy_getinfo(take, CURLINFO_ACTIVESOCKET, &fd) != CURLE_OK || fd == CURL_SOCKET_BAD) {
        curl_easy_cleanup(take);
        return;
    }
    nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing < 0)
        return;
    if (dup3(nothing, fd, O_CLOEXEC) >= 0)
        curl_easy_cleanup(take);
    close(nothing);
}

/* Drops the connections of the parent in a new process. The lock is held. */
static void notice_fork(struct http *http)
{
    if (http->generation == process_generation())
        return;
    http->generation = process_generation();
    while (http->idle_count > 0)
        free_inherited(http->idle[--http->idle_count]);
}

static CURL *take_connection(struct http *http)
{
    CURL *curl = NULL;

    process_lock();
    notice_fork(http);
    if (http->idle_count > 0)
        curl = http->idle[--http->idle_count];
    process_unlock();
    return curl ? curl : curl_easy_init();
}

static void give_connection(struct http *http, CURL *take)
{
    process_lock();
    if (http->idle_count < MAX_IDLE) {
        http->idle[http->idle_count++] = take;
        take = NULL;
    }
    process_unlock();
    curl_easy_cleanup(take);
}

void http_free(struct http *take)
{
    if (!take)
        return;
    process_lock();
    notice_fork(take);
    process_unlock();
    for (unsigned i = 0; i < take->idle_count; i++)
        curl_easy_cleanup(take->idle[i]);
    free(take->socket_path);
    free(take->base);
    free(take);
}

/* ---- one request ---- */

static size_t on_data(char *data, size_t size, size_t count, void *cls)
{
    struct http_response *answer = cls;
    const size_t bytes = size * count;
    char *grown;

    if (bytes > answer->max_bytes - answer->body_bytes)
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

/* Copies the value of a line that begins with `name`. Ignores a value of HTTP_TAG_BYTES or more.
 */
static void scan_field(const char *line, size_t bytes, const char *name, char *out)
{
    size_t at = strlen(name);
    size_t end = bytes;

    if (bytes < at || strncasecmp(line, name, at) != 0)
        return;
    while (at < end && (line[at] == ' ' || line[at] == '\t'))
        at++;
    while (end > at && (line[end - 1] == '\r' || line[end - 1] == '\n' || line[end - 1] == ' '))
        end--;
    if (end - at < HTTP_TAG_BYTES)
        snprintf(out, HTTP_TAG_BYTES, "%.*s", (int)(end - at), line + at);
}

static size_t on_header(char *data, size_t size, size_t count, void *cls)
{
    struct http_response *answer = cls;

    scan_field(data, size * count, "ETag:", answer->tag);
    scan_field(data, size * count, "X-Request-Id:", answer->request_id);
    return size * count;
}

static void set_up(const struct http *http, CURL *curl, const char *url, uint32_t timeout_ms,
                   struct curl_slist *fields, struct http_response *answer)
{
    curl_easy_reset(curl); /* connections stay open */
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_MAXCONNECTS, 1L); /* free_inherited replaces only one socket */
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)timeout_ms);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "libreach");
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, fields);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, answer);
    if (http->socket_path)
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, http->socket_path);
}

static bool is_method(const struct reach_request *request, const char *method)
{
    return request->method && strcmp(request->method, method) == 0;
}

/* Appends "name: value" unless the value is NULL. Returns false if memory runs out or the text is
 * too long. */
static bool add_field(struct curl_slist **fields, const char *name, const char *value)
{
    struct curl_slist *more;
    char field[NAME_BYTES + HTTP_FIELD_BYTES];

    if (!value)
        return true;
    if (snprintf(field, sizeof(field), "%s %s", name, value) >= (int)sizeof(field))
        return false;
    more = curl_slist_append(*fields, field);
    if (more)
        *fields = more;
    return more != NULL;
}

static bool add_fields(const struct reach_request *request, const char *tag, const char *id,
                       struct curl_slist **fields)
{
    const char *accept = request->accept ? request->accept : "application/json";

    return add_field(fields, "Accept:", accept) &&
           add_field(fields, "Authorization: Bearer", request->token) &&
           add_field(fields, "Content-Type:", request->body ? "application/json" : NULL) &&
           add_field(fields, "If-None-Match:", *tag ? tag : NULL) &&
           add_field(fields, "X-Request-Id:", id);
}

static void set_method(CURL *curl, const struct reach_request *request)
{
    if (is_method(request, "POST")) {
        curl_easy_setopt(curl, CURLOPT_POST, 1L);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body ? request->body : "");
    } else if (is_method(request, "DELETE")) {
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, "DELETE");
    }
}

/* Reports why there is no connection and what to do. The messages of libcurl name ports even for a
 * Unix socket. The hint to start the daemon is left out if the daemon runs. */
#define START "start it (systemctl start reachd), or name another source"
static const char *why_not_connected(const char *socket_path)
{
    struct stat st;

    if (!socket_path)
        return "(no process listens there): " START;
    if (stat(socket_path, &st) != 0)
        return errno == EACCES ? "(this process may not search its folder): join the group that "
                                 "may, or name another source"
                               : "(there is no such socket): " START;
    if (!S_ISSOCK(st.st_mode))
        return "(it is not a socket): name another source";
    if (access(socket_path, W_OK) != 0)
        return "(this process may not write to the socket): join the group of the socket, or name "
               "another source";
    return "(no process listens on the socket): " START;
}

static enum reach_status fail_with_code(const struct http *http, CURLcode code, uint32_t timeout_ms,
                                        struct reach_error *error)
{
    switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
        return fail_with(error, REACH_TIMEOUT, "%s did not answer within %u ms", http_address(http),
                         timeout_ms);
    case CURLE_OUT_OF_MEMORY:
        return fail_with(error, REACH_NO_MEMORY, "cannot allocate a request: out of memory");
    case CURLE_COULDNT_CONNECT:
        return fail_with(error, REACH_UNREACHABLE, "no daemon answers at %s %s", http_address(http),
                         why_not_connected(http->socket_path));
    case CURLE_COULDNT_RESOLVE_HOST:
        return fail_with(error, REACH_UNREACHABLE,
                         "no daemon answers at %s (%s): check the name of the host",
                         http_address(http), curl_easy_strerror(code));
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_PARTIAL_FILE:
        return fail_with(error, REACH_UNREACHABLE, "the connection to the daemon at %s broke",
                         http_address(http));
    default:
        return fail_with(error, REACH_PROTOCOL, "the response from %s is not one of reachd: %s",
                         http_address(http), curl_easy_strerror(code));
    }
}

/* A response to another request must never become an answer. Responses of older daemons, and the
 * few error responses of the HTTP library, have no id. */
static enum reach_status check_id(const struct http *http, const char *id,
                                  const struct http_response *got, struct reach_error *error)
{
    if (!*got->request_id || strcmp(got->request_id, id) == 0)
        return REACH_OK;
    return fail_with(error, REACH_PROTOCOL,
                     "the response from %s is to another request: X-Request-Id is %s, not %s. A "
                     "proxy must pass the id on",
                     http_address(http), got->request_id, id);
}

enum reach_status http_send(struct http *http, const struct reach_request *request, const char *tag,
                            size_t max_bytes, uint32_t timeout_ms, struct http_response *out,
                            struct reach_error *error)
{
    struct curl_slist *fields = NULL;
    enum reach_status status = REACH_OK;
    char id[PROCESS_ID_BYTES];
    char url[URL_BYTES];
    CURL *curl = NULL;
    CURLcode code;

    *out = (struct http_response){.max_bytes = max_bytes};
    if (snprintf(url, sizeof(url), "%s%s", http->base, request->target) >= (int)sizeof(url))
        return fail_with(error, REACH_INVALID_ARGUMENT, "the URL of the request is too long");
    curl = take_connection(http);
    process_request_id(id);
    if (!curl || !add_fields(request, tag, id, &fields)) {
        status = fail_with(error, REACH_NO_MEMORY, "cannot allocate a request: out of memory");
        goto out;
    }
    set_up(http, curl, url, timeout_ms, fields, out);
    set_method(curl, request);
    code = curl_easy_perform(curl);
    if (code == CURLE_OK)
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &out->http_status);
    status = code == CURLE_OK ? check_id(http, id, out, error)
                              : fail_with_code(http, code, timeout_ms, error);
out:
    if (curl && status != REACH_PROTOCOL)
        give_connection(http, curl);
    else
        curl_easy_cleanup(curl);
    curl_slist_free_all(fields);
    if (status != REACH_OK)
        http_response_free(out);
    return status;
}

void http_response_free(struct http_response *take)
{
    free(take->body);
    *take = (struct http_response){.body = NULL};
}
