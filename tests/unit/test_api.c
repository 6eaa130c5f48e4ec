/* test_api.c: the HTTP server in this process, on a Unix socket, asked with hand-written bytes.
 *
 * Server and client share one thread: the client writes, and then reads whatever comes while the
 * server is run in between. So nothing here depends on time, but for the two tests of the deadline,
 * which is set to a few milliseconds there. */
#include "api/server.h"

#include "base/units.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char UUID[] = "SIM-00000000-0000-4000-8000-000000000001";
static const char UNMEASURED[] = "SIM-00000000-0000-4000-8000-000000000002";

/* ---- a backend that remembers what it was asked ---- */

struct fake_backend {
    int submitted;
    enum depth depth;
    enum status submit_status;
    int64_t before;
    uint32_t limit;
    int64_t run;
};

static enum status fake_submit(void *self, const char *uuid, enum depth depth, json_t **out_job,
                               struct err *err)
{
    struct fake_backend *f = self;

    if (f->submit_status != STATUS_OK)
        return err_set(err, f->submit_status, "8 measurements wait for GPU %s", uuid);
    f->submitted++;
    f->depth = depth;
    *out_job = json_pack("{s:s,s:s,s:s,s:s}", "id", "job-7", "gpu", uuid, "depth",
                         depth_name(depth), "state", "queued");
    return STATUS_OK;
}

static enum status fake_job(void *self, const char *id, json_t **out_job, struct err *err)
{
    (void)self;
    if (strcmp(id, "job-7") != 0)
        return err_set(err, STATUS_NOT_FOUND, "there is no job %s", id);
    *out_job = json_pack("{s:s,s:s,s:f}", "id", id, "state", "running", "fraction", 0.5);
    return STATUS_OK;
}

static enum status fake_history(void *self, const char *uuid, int64_t before, uint32_t limit,
                                json_t **out_page, struct err *err)
{
    struct fake_backend *f = self;

    (void)uuid;
    (void)err;
    f->before = before;
    f->limit = limit;
    *out_page = json_pack("{s:[],s:n}", "fingerprints", "next");
    return STATUS_OK;
}

static enum status fake_fingerprint_at(void *self, const char *uuid, const char *id,
                                       struct fingerprint *out, struct err *err)
{
    (void)self;
    if (strcmp(id, "fp0000000000000001") != 0)
        return err_set(err, STATUS_NOT_FOUND, "GPU %s never had a fingerprint %s", uuid, id);
    fingerprint_init(out);
    snprintf(out->gpu.uuid, sizeof(out->gpu.uuid), "%s", uuid);
    return STATUS_OK;
}

static enum status fake_observations(void *self, const char *uuid, int64_t run, int64_t before,
                                     uint32_t limit, json_t **out_page, struct err *err)
{
    struct fake_backend *f = self;

    (void)uuid;
    (void)err;
    f->run = run;
    f->before = before;
    f->limit = limit;
    *out_page = json_pack("{s:[],s:n}", "observations", "next");
    return STATUS_OK;
}

static enum status fake_observation(void *self, const char *uuid, int64_t id, json_t **out,
                                    struct err *err)
{
    static const char chase[] =
        "{\"id\":3,\"run\":1,\"probe\":{\"kind\":\"chase\",\"points\":[8,16]},\"sm_ids\":[0],"
        "\"shape\":[2,2],\"values\":[100,101,200,201],\"conditions\":{}}";
    static const char read[] =
        "{\"id\":4,\"run\":1,\"probe\":{\"kind\":\"read\",\"points\":[4096]},\"sm_ids\":[0,5],"
        "\"shape\":[1,2,3],\"values\":[1000,10,20,1001,11,21],\"conditions\":{}}";
    static const char round[] =
        "{\"id\":5,\"run\":1,\"probe\":{\"kind\":\"round\"},\"sm_ids\":[0,5],"
        "\"shape\":[1,2,2,1],\"values\":[1,2,3,4],\"conditions\":{}}";

    (void)self;
    if (id < 3 || id > 5)
        return err_set(err, STATUS_NOT_FOUND, "GPU %s has no observation %lld", uuid,
                       (long long)id);
    *out = json_loads(id == 3 ? chase : id == 4 ? read : round, 0, NULL);
    return STATUS_OK;
}

/* ---- the fixture ---- */

struct fixture {
    struct fake_backend fake;
    struct api_backend backend;
    struct snapshot_cell *cell;
    struct api_server *server;
    char path[64];
    char id[FINGERPRINT_ID_BYTES];
};

/* One GPU with 4 groups of 4 SMs and 1 GiB of reach, made up; one that nobody measured. */
static void publish(struct fixture *f)
{
    struct snapshot *s = snapshot_draft(2);
    struct snapshot_gpu *gpu = &s->gpus[0];
    struct fingerprint *fp = &gpu->fingerprint;

    snprintf(s->source, sizeof(s->source), "simulated");
    snprintf(gpu->identity.uuid, sizeof(gpu->identity.uuid), "%s", UUID);
    snprintf(gpu->identity.name, sizeof(gpu->identity.name), "Made Up 16");
    snprintf(gpu->identity.driver_version, sizeof(gpu->identity.driver_version), "none");
    gpu->identity.sm_count = 16;
    gpu->identity.memory_bytes = 8 * GIB;
    gpu->identity.origin = ORIGIN_SIMULATED;
    gpu->state = GPU_STATE_READY;
    gpu->has_fingerprint = true;
    fingerprint_init(fp);
    fp->gpu = gpu->identity;
    fp->topology.partition.group_count = 4;
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++)
        fp->topology.partition.group_of_sm[sm] =
            (uint16_t)(sm < 16 ? sm % 4 : FINGERPRINT_NO_GROUP);
    fp->windows.reach_bytes = KNOWN_U64(GIB);
    fp->windows.entry_bytes = KNOWN_U64(2 * MIB);
    fp->windows.recommended_bytes = KNOWN_U64(GIB - 2 * MIB);
    fp->throughput.plateau_gbps = KNOWN_F64(100);
    fingerprint_id(fp, gpu->fingerprint_id);
    memcpy(f->id, gpu->fingerprint_id, sizeof(f->id));
    s->gpus[1].identity = gpu->identity;
    snprintf(s->gpus[1].identity.uuid, sizeof(s->gpus[1].identity.uuid), "%s", UNMEASURED);
    s->gpus[1].state = GPU_STATE_FAILED;
    err_set(&s->gpus[1].last_error, STATUS_GPU_BUSY, "the compute mode is exclusive");
    snapshot_publish(f->cell, s);
}

static int listen_on(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    unlink(path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 512), 0);
    return fd;
}

static void start(struct fixture *f, nsec_t deadline_ns, uint32_t limit)
{
    struct api_options options = {.listen_count = 1,
                                  .connection_limit = limit,
                                  .request_deadline_ns = deadline_ns,
                                  .daemon_version = "1.2.3-test"};
    struct err err;

    options.listen_fds[0] = listen_on(f->path);
    if (api_server_new(&options, f->cell, &f->backend, &f->server, &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    snprintf(f->path, sizeof(f->path), "/tmp/reachd-test-api-%ld.sock", (long)getpid());
    f->backend = (struct api_backend){.self = &f->fake,
                                      .submit = fake_submit,
                                      .job = fake_job,
                                      .history = fake_history,
                                      .fingerprint_at = fake_fingerprint_at,
                                      .observations = fake_observations,
                                      .observation = fake_observation};
    f->cell = snapshot_cell_new();
    publish(f);
    start(f, 0, 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    api_server_free(f->server);
    snapshot_cell_free(f->cell);
    unlink(f->path);
    free(f);
    return 0;
}

static int restart(struct fixture *f, nsec_t deadline_ns, uint32_t limit)
{
    api_server_free(f->server);
    start(f, deadline_ns, limit);
    return 0;
}

/* ---- a client ---- */

static int dial(const struct fixture *f)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", f->path);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* Runs the server until `fd` can be read or the server has nothing left to do for `ms`. */
static bool pump(struct fixture *f, int fd, int ms)
{
    for (;;) {
        struct pollfd fds[2] = {{.fd = fd, .events = POLLIN},
                                {.fd = api_server_fd(f->server), .events = POLLIN}};
        int wait = api_server_timeout_ms(f->server);
        int ready = poll(fds, 2, wait == 0 ? 0 : ms);
        if (fds[0].revents)
            return true;
        if (ready == 0 && wait != 0)
            return false;
        api_server_run(f->server);
    }
}

struct answer {
    unsigned status;
    bool closed; /* by the server, after the answer or without one */
    char head[2048];
    char *body;
    size_t body_bytes;
};

/* Does `text` hold a whole answer? HEAD and 304 have no body. */
static bool complete(const char *text, size_t bytes, bool no_body)
{
    const char *end = strstr(text, "\r\n\r\n");
    const char *length = strcasestr(text, "\r\nContent-Length:");

    if (!end)
        return false;
    if (no_body || strncmp(text + 9, "304", 3) == 0)
        return true;
    return length && length < end &&
           bytes >= (size_t)(end + 4 - text) + strtoul(length + 17, NULL, 10);
}

static void read_answer(struct fixture *f, int fd, bool no_body, struct answer *out)
{
    static char buffer[1 << 20];
    size_t bytes = 0;
    char *end;

    memset(out, 0, sizeof(*out));
    buffer[0] = '\0';
    while (!complete(buffer, bytes, no_body)) {
        ssize_t got;
        if (!pump(f, fd, 2000))
            break;
        got = recv(fd, buffer + bytes, sizeof(buffer) - 1 - bytes, MSG_DONTWAIT);
        if (got <= 0) {
            out->closed = true;
            break;
        }
        bytes += (size_t)got;
        buffer[bytes] = '\0';
    }
    end = strstr(buffer, "\r\n\r\n");
    if (!end)
        return;
    out->status = (unsigned)strtoul(buffer + 9, NULL, 10);
    assert_true((size_t)(end + 2 - buffer) < sizeof(out->head));
    memcpy(out->head, buffer, (size_t)(end + 2 - buffer));
    out->body_bytes = bytes - (size_t)(end + 4 - buffer);
    out->body = malloc(out->body_bytes + 1);
    memcpy(out->body, end + 4, out->body_bytes + 1);
}

static void send_all(struct fixture *f, int fd, const char *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t sent = send(fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EAGAIN) {
            api_server_run(f->server);
            continue;
        }
        if (sent < 0)
            return; /* refused early: the answer is there */
        data += sent;
        bytes -= (size_t)sent;
    }
}

/* Sends bytes as they are on a connection of their own. */
static void ask_bytes(struct fixture *f, const char *data, size_t bytes, struct answer *out)
{
    int fd = dial(f);

    send_all(f, fd, data, bytes);
    read_answer(f, fd, strncmp(data, "HEAD", 4) == 0, out);
    close(fd);
    while (pump(f, -1, 0)) {
    }
}

static void ask(struct fixture *f, const char *data, struct answer *out)
{
    ask_bytes(f, data, strlen(data), out);
}

static unsigned status_of(struct fixture *f, const char *data)
{
    struct answer a;

    ask(f, data, &a);
    free(a.body);
    return a.status;
}

#define REQUEST(line, fields) line " HTTP/1.1\r\nHost: x\r\n" fields "\r\n"

static char *line_of(char *out, size_t size, const char *method, const char *target,
                     const char *fields)
{
    snprintf(out, size, "%s %s HTTP/1.1\r\nHost: x\r\n%s\r\n", method, target, fields);
    return out;
}

/* GET, an answer with this status, and its JSON. */
static json_t *get(struct fixture *f, const char *target, unsigned status)
{
    char request[1024];
    struct answer a;
    json_t *json;

    ask(f, line_of(request, sizeof(request), "GET", target, ""), &a);
    if (a.status != status)
        fail_msg("%s: %u, not %u: %s", target, a.status, status, a.body ? a.body : "");
    assert_non_null(strstr(a.head, status == 200 ? "Content-Type: application/json\r\n"
                                                 : "Content-Type: application/problem+json\r\n"));
    json = json_loadb(a.body, a.body_bytes, 0, NULL);
    assert_non_null(json);
    free(a.body);
    return json;
}

static const char *text_in(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));

    if (!text)
        fail_msg("no text %s", name);
    return text;
}

/* A refusal must be whole: slug, sentence, next step; and blame `parameter` if given. */
static void refused(struct fixture *f, const char *target, unsigned status, const char *slug,
                    const char *parameter)
{
    json_t *p = get(f, target, status);
    json_t *first = json_array_get(json_object_get(p, "errors"), 0);
    char type[96];

    assert_string_equal(text_in(p, "slug"), slug);
    snprintf(type, sizeof(type), "urn:reachd:problem:%s", slug);
    assert_string_equal(text_in(p, "type"), type);
    assert_true(strlen(text_in(p, "title")) > 0);
    assert_true(strlen(text_in(p, "detail")) > 0);
    assert_true(strlen(text_in(p, "next_step")) > 0);
    assert_int_equal(json_integer_value(json_object_get(p, "status")), status);
    if (parameter) {
        if (!first || strcmp(text_in(first, "parameter"), parameter) != 0)
            fail_msg("%s: %s is not blamed", target, parameter);
    }
    json_decref(p);
}

/* ---- routes ---- */

static void test_index_lists_routes(void **state)
{
    struct fixture *f = *state;
    json_t *json = get(f, "/", 200);
    json_t *routes = json_object_get(json, "routes");
    size_t i;
    json_t *route;

    assert_true(json_array_size(routes) >= 15);
    json_array_foreach(routes, i, route)
    {
        char request[256];
        char target[128];
        const char *path = text_in(route, "path");
        if (strcmp(text_in(route, "method"), "GET") != 0)
            continue;
        /* Every listed path exists: whatever it says, it is not "no path". */
        snprintf(target, sizeof(target), "%s", path);
        line_of(request, sizeof(request), "DELETE", target, "");
        assert_int_equal(status_of(f, request), 405);
    }
    json_decref(json);
}

static void test_health_and_ready(void **state)
{
    struct fixture *f = *state;
    json_t *json = get(f, "/healthz", 200);

    assert_string_equal(text_in(json, "status"), "alive");
    json_decref(json);
    json = get(f, "/readyz", 200);
    assert_int_equal(json_array_size(json_object_get(json, "gpus")), 2);
    json_decref(json);
}

static void test_not_ready(void **state)
{
    struct fixture *f = *state;
    struct snapshot *s = snapshot_draft(0);
    char request[128];
    struct answer a;

    err_set(&s->source_error, STATUS_NO_DRIVER, "libcuda.so.1 was not found");
    snapshot_publish(f->cell, s);
    ask(f, line_of(request, sizeof(request), "GET", "/readyz", ""), &a);
    assert_int_equal(a.status, 503);
    assert_non_null(strstr(a.body, "libcuda.so.1 was not found"));
    assert_non_null(strstr(a.head, "Retry-After: "));
    free(a.body);
    refused(f, "/v1/gpus/0", 404, "not-found", NULL);
    refused(f, "/v1/gpus/0/scope?bytes=1", 404, "not-found", NULL);
}

static void test_openapi(void **state)
{
    struct fixture *f = *state;
    char request[128];
    struct answer a;

    ask(f, line_of(request, sizeof(request), "GET", "/openapi.yaml", ""), &a);
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.head, "Content-Type: application/yaml\r\n"));
    assert_memory_equal(a.body, "openapi: 3.1", 12);
    free(a.body);
}

/* Every route of the table stands in the contract, and no path of the contract is unknown. */
static void test_openapi_has_every_route(void **state)
{
    struct fixture *f = *state;
    json_t *json = get(f, "/", 200);
    char request[128];
    char line[128];
    struct answer a;
    size_t i;
    json_t *route;
    size_t paths = 0;

    ask(f, line_of(request, sizeof(request), "GET", "/openapi.yaml", ""), &a);
    json_array_foreach(json_object_get(json, "routes"), i, route)
    {
        snprintf(line, sizeof(line), "\n  %s:\n", text_in(route, "path"));
        if (!strstr(a.body, line))
            fail_msg("openapi.yaml lacks %s", text_in(route, "path"));
        if (strcmp(text_in(route, "method"), "GET") == 0)
            paths++;
    }
    for (const char *at = a.body; (at = strstr(at, "\n  /")); at++)
        paths--;
    assert_int_equal(paths, 0);
    free(a.body);
    json_decref(json);
}

static void test_node(void **state)
{
    struct fixture *f = *state;
    json_t *json = get(f, "/v1/node", 200);
    json_t *source = json_array_get(json_object_get(json, "sources"), 0);

    assert_string_equal(text_in(json, "daemon_version"), "1.2.3-test");
    assert_true(strlen(text_in(json, "hostname")) > 0);
    assert_string_equal(text_in(source, "name"), "simulated");
    json_decref(json);
}

static void test_gpus(void **state)
{
    struct fixture *f = *state;
    char target[128];
    json_t *json = get(f, "/v1/gpus", 200);
    json_t *gpus = json_object_get(json, "gpus");

    assert_int_equal(json_array_size(gpus), 2);
    assert_string_equal(text_in(json_array_get(gpus, 0), "uuid"), UUID);
    assert_string_equal(text_in(json_array_get(gpus, 0), "fingerprint_id"), f->id);
    assert_string_equal(text_in(json_array_get(gpus, 0), "origin"), "simulated");
    assert_true(json_is_null(json_object_get(json_array_get(gpus, 0), "last_error")));
    assert_string_equal(text_in(json_object_get(json_array_get(gpus, 1), "last_error"), "slug"),
                        "gpu-busy");
    json_decref(json);
    json = get(f, "/v1/gpus/1", 200);
    assert_string_equal(text_in(json, "uuid"), UNMEASURED);
    json_decref(json);
    snprintf(target, sizeof(target), "/v1/gpus/%s", UUID);
    json = get(f, target, 200);
    assert_int_equal(json_integer_value(json_object_get(json, "index")), 0);
    json_decref(json);
}

static void test_unknown_gpu(void **state)
{
    static const char *const names[] = {
        "2", "-1", "00x", "GPU-none", "%2f", "18446744073709551616", "0%20", "%F0%9F%92%A5"};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char target[128];
        snprintf(target, sizeof(target), "/v1/gpus/%s", names[i]);
        refused(f, target, 404, "not-found", NULL);
        snprintf(target, sizeof(target), "/v1/gpus/%s/placement?bytes=1G", names[i]);
        refused(f, target, 404, "not-found", NULL);
    }
}

static void test_fingerprint(void **state)
{
    struct fixture *f = *state;
    char target[128];
    json_t *json = get(f, "/v1/gpus/0/fingerprint", 200);

    assert_string_equal(text_in(json, "id"), f->id);
    json_decref(json);
    snprintf(target, sizeof(target), "/v1/gpus/0/fingerprint?at=%s", f->id);
    json = get(f, target, 200);
    assert_string_equal(text_in(json, "id"), f->id);
    json_decref(json);
    json_decref(get(f, "/v1/gpus/0/fingerprint?at=fp0000000000000001", 200));
    refused(f, "/v1/gpus/0/fingerprint?at=fp0000000000000002", 404, "not-found", NULL);
    refused(f, "/v1/gpus/1/fingerprint", 404, "no-fingerprint", NULL);
    refused(f, "/v1/gpus/1/placement?bytes=1", 409, "no-fingerprint", NULL);
}

static void test_etag(void **state)
{
    struct fixture *f = *state;
    char request[512];
    char fields[256];
    struct answer a;

    ask(f, line_of(request, sizeof(request), "GET", "/v1/gpus/0/fingerprint", ""), &a);
    snprintf(fields, sizeof(fields), "\r\nETag: \"%s\"\r\n", f->id);
    assert_non_null(strstr(a.head, fields));
    assert_non_null(strstr(a.head, "Cache-Control: no-cache"));
    free(a.body);
    snprintf(fields, sizeof(fields), "If-None-Match: \"other\", W/\"%s\"\r\n", f->id);
    ask(f, line_of(request, sizeof(request), "GET", "/v1/gpus/0/fingerprint", fields), &a);
    assert_int_equal(a.status, 304);
    assert_int_equal(a.body_bytes, 0);
    free(a.body);
    snprintf(fields, sizeof(fields), "If-None-Match: \"%sx\"\r\n", f->id);
    assert_int_equal(
        status_of(f, line_of(request, sizeof(request), "GET", "/v1/gpus/0/fingerprint", fields)),
        200);
    assert_int_equal(status_of(f, REQUEST("GET /v1/gpus", "If-None-Match: *\r\n")), 304);
    assert_int_equal(status_of(f, REQUEST("GET /readyz", "If-None-Match: *\r\n")), 304);
    /* A problem is never "not modified". */
    assert_int_equal(status_of(f, REQUEST("GET /v1/gpus/9", "If-None-Match: *\r\n")), 404);
}

static void test_new_generation_replaces_documents(void **state)
{
    struct fixture *f = *state;
    struct snapshot *s;
    const struct snapshot *now;
    json_t *json = get(f, "/v1/gpus/0", 200);

    assert_string_equal(text_in(json, "state"), "ready");
    json_decref(json);
    json_decref(get(f, "/v1/gpus/0/scope?bytes=4G", 200));
    now = snapshot_acquire(f->cell);
    s = snapshot_draft_copy(now);
    snapshot_release(now);
    s->gpus[0].state = GPU_STATE_LOST;
    s->gpus[0].fingerprint.windows.reach_bytes = KNOWN_U64(8 * GIB);
    s->gpus[0].fingerprint.windows.recommended_bytes = KNOWN_U64(8 * GIB - 2 * MIB);
    snapshot_publish(f->cell, s);
    json = get(f, "/v1/gpus/0", 200);
    assert_string_equal(text_in(json, "state"), "lost");
    json_decref(json);
    json = get(f, "/v1/gpus/0/scope?bytes=4G", 200);
    assert_string_equal(text_in(json, "advice"), "nothing-to-do");
    json_decref(json);
}

static void test_head_and_methods(void **state)
{
    struct fixture *f = *state;
    struct answer a;

    ask(f, REQUEST("HEAD /v1/gpus", ""), &a);
    assert_int_equal(a.status, 200);
    assert_int_equal(a.body_bytes, 0);
    assert_non_null(strstr(a.head, "Content-Length: "));
    free(a.body);
    ask(f, REQUEST("PUT /v1/gpus", ""), &a);
    assert_int_equal(a.status, 405);
    assert_non_null(strstr(a.head, "\r\nAllow: GET, HEAD\r\n"));
    free(a.body);
    ask(f, REQUEST("DELETE /v1/gpus/0/fingerprint", ""), &a);
    assert_int_equal(a.status, 405);
    assert_non_null(strstr(a.head, "\r\nAllow: GET, HEAD, POST\r\n"));
    free(a.body);
    assert_int_equal(status_of(f, REQUEST("TRACE /", "")), 405);
    assert_int_equal(status_of(f, REQUEST("OPTIONS /v1/gpus", "")), 405);
    assert_int_equal(status_of(f, REQUEST("get /v1/gpus", "")), 405);
    refused(f, "/v2/gpus", 404, "not-found", NULL);
    refused(f, "/v1/gpus/", 404, "not-found", NULL);
    refused(f, "//v1/gpus", 404, "not-found", NULL);
    refused(f, "/v1/gpus/../gpus", 404, "not-found", NULL);
    refused(f, "/v1/%2e%2e/gpus", 404, "not-found", NULL);
    refused(f, "/v1/gpus/0/1/2/3/4/5/6/7/8/9", 404, "not-found", NULL);
    refused(f, "/v1/gpus/0/fingerprint/1", 404, "not-found", NULL);
}

static void test_query_refusals(void **state)
{
    struct fixture *f = *state;

    refused(f, "/v1/gpus?x=1", 400, "invalid-argument", "x");
    refused(f, "/v1/gpus/0/scope?bytes=1G&acces=read", 400, "invalid-argument", "acces");
    refused(f, "/v1/gpus/0/scope?bytes=1G&bytes=2G", 400, "invalid-argument", NULL);
    refused(f, "/v1/gpus/0/scope", 400, "invalid-argument", "bytes");
    refused(f, "/v1/gpus/0/scope?bytes", 400, "invalid-argument", "bytes");
    refused(f, "/v1/gpus/0/scope?bytes=1G&access=write", 400, "invalid-argument", "access");
    refused(f, "/v1/gpus/0/fingerprints?limit=0", 400, "invalid-argument", "limit");
    refused(f, "/v1/gpus/0/fingerprints?limit=1001", 400, "invalid-argument", "limit");
    refused(f, "/v1/gpus/0/fingerprints?cursor=-1", 400, "invalid-argument", "cursor");
    refused(f, "/v1/gpus/0/fingerprints?cursor=9223372036854775808", 400, "invalid-argument",
            "cursor");
    refused(f, "/v1/gpus/0/fingerprints?cursor=18446744073709551617", 400, "invalid-argument",
            "cursor");
    refused(f, "/v1/gpus/0/observations?run=1e3", 400, "invalid-argument", "run");
    refused(f, "/v1/gpus/0/placement?bytes=4G&windows=0", 400, "invalid-argument", "windows");
    refused(f, "/v1/gpus/0/placement?bytes=3G&windows=2", 400, "invalid-argument", "windows");
    refused(f, "/v1/gpus/0/placement?bytes=4G&windows=257", 400, "invalid-argument", "windows");
    refused(f, "/v1/gpus/0/placement?bytes=3G&granularity=2G", 400, "invalid-argument",
            "granularity");
    refused(f, "/v1/gpus/0/placement?bytes=3G&granularity=0", 400, "invalid-argument",
            "granularity");
}

static void test_absurd_sizes(void **state)
{
    static const char *const sizes[] = {"0",
                                        "-1",
                                        "-5G",
                                        "",
                                        "G",
                                        "1e9",
                                        "0x10",
                                        "1GiBs",
                                        "9223372036854775808",
                                        "18446744073709551616",
                                        "99999999999999999999999T",
                                        "2000T",
                                        "nan",
                                        "1.0000000001K",
                                        "1,5G"};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        char target[128];
        snprintf(target, sizeof(target), "/v1/gpus/0/scope?bytes=%s", sizes[i]);
        refused(f, target, 400, "invalid-argument", "bytes");
        snprintf(target, sizeof(target), "/v1/gpus/0/placement?bytes=%s", sizes[i]);
        refused(f, target, 400, "invalid-argument", "bytes");
    }
}

static void test_scope(void **state)
{
    struct fixture *f = *state;
    json_t *json = get(f, "/v1/gpus/0/scope?bytes=4GiB", 200);

    assert_string_equal(text_in(json, "advice"), "scopes");
    assert_string_equal(text_in(json, "gpu"), UUID);
    assert_string_equal(text_in(json, "fingerprint_id"), f->id);
    assert_string_equal(text_in(json, "origin"), "simulated");
    assert_string_equal(text_in(json, "access"), "read");
    assert_int_equal(json_integer_value(json_object_get(json, "bytes")), 4 * GIB);
    assert_int_equal(json_integer_value(json_object_get(json, "scope_bytes")), GIB - 2 * MIB);
    assert_int_equal(json_integer_value(json_object_get(json, "passes")), 5);
    assert_true(json_is_null(json_object_get(json, "without_gbps")));
    assert_string_equal(text_in(json, "without_gbps_reason"), "not-measured");
    json_decref(json);
    json = get(f, "/v1/gpus/0/scope?access=atomic&bytes=1%20MiB", 200);
    assert_string_equal(text_in(json, "advice"), "nothing-to-do");
    json_decref(json);
}

static void test_placement(void **state)
{
    struct fixture *f = *state;
    json_t *json = get(f, "/v1/gpus/0/placement?bytes=1.5G", 200);
    json_t *windows = json_object_get(json, "windows");
    json_t *of_sm = json_object_get(json, "window_of_sm");

    assert_string_equal(text_in(json, "advice"), "windows");
    assert_string_equal(text_in(json, "origin"), "simulated");
    assert_int_equal(json_integer_value(json_object_get(json, "window_count")), 2);
    assert_int_equal(json_array_size(windows), 2);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(windows, 1), "first_byte")),
                     768 * MIB);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(windows, 0), "sm_count")),
                     8);
    assert_int_equal(json_array_size(of_sm), 16);
    assert_int_equal(json_integer_value(json_object_get(json, "margin_bytes")), 256 * MIB);
    assert_true(json_number_value(json_object_get(json, "with_gbps")) == 100);
    json_decref(json);
    json = get(f, "/v1/gpus/0/placement?bytes=1.5G&windows=4&granularity=4K", 200);
    assert_int_equal(json_integer_value(json_object_get(json, "window_count")), 4);
    json_decref(json);
    json = get(f, "/v1/gpus/0/placement?bytes=5G", 200);
    assert_string_equal(text_in(json, "advice"), "not-enough-groups");
    assert_true(json_is_null(json_object_get(json, "margin_bytes")));
    json_decref(json);
}

static void test_same_question_same_answer(void **state)
{
    struct fixture *f = *state;
    struct answer first;
    struct answer second;

    ask(f, REQUEST("GET /v1/gpus/0/placement?bytes=3G", ""), &first);
    for (int i = 0; i < 100; i++) { /* more than the ring of answers holds */
        char request[128];
        char target[64];
        snprintf(target, sizeof(target), "/v1/gpus/0/scope?bytes=%d", i + 1);
        assert_int_equal(status_of(f, line_of(request, sizeof(request), "GET", target, "")), 200);
    }
    ask(f, REQUEST("GET /v1/gpus/0/placement?bytes=3G", ""), &second);
    assert_int_equal(first.body_bytes, second.body_bytes);
    assert_memory_equal(first.body, second.body, first.body_bytes);
    free(first.body);
    free(second.body);
}

static void test_history_and_observations(void **state)
{
    struct fixture *f = *state;

    json_decref(get(f, "/v1/gpus/0/fingerprints", 200));
    assert_int_equal(f->fake.before, 0);
    assert_int_equal(f->fake.limit, 100);
    json_decref(get(f, "/v1/gpus/0/fingerprints?limit=7&cursor=9", 200));
    assert_int_equal(f->fake.before, 9);
    assert_int_equal(f->fake.limit, 7);
    json_decref(get(f, "/v1/gpus/0/observations?run=3&cursor=11", 200));
    assert_int_equal(f->fake.run, 3);
    assert_int_equal(f->fake.before, 11);
    json_decref(get(f, "/v1/gpus/0/observations/3", 200));
    refused(f, "/v1/gpus/0/observations/99", 404, "not-found", NULL);
    refused(f, "/v1/gpus/0/observations/0", 404, "not-found", NULL);
    refused(f, "/v1/gpus/0/observations/x", 404, "not-found", NULL);
}

static void csv_is(struct fixture *f, const char *id, const char *accept, const char *expected)
{
    char request[256];
    char target[64];
    char fields[128];
    struct answer a;

    snprintf(target, sizeof(target), "/v1/gpus/0/observations/%s", id);
    snprintf(fields, sizeof(fields), "Accept: %s\r\n", accept);
    ask(f, line_of(request, sizeof(request), "GET", target, fields), &a);
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.head, "\r\nVary: Accept\r\n"));
    if (expected)
        assert_string_equal(a.body, expected);
    else
        assert_int_equal(a.body[0], '{');
    free(a.body);
}

static void test_csv(void **state)
{
    struct fixture *f = *state;

    csv_is(f, "3", "text/csv", "pages,sample,cycles\n8,0,100\n8,1,101\n16,0,200\n16,1,201\n");
    csv_is(f, "4", "text/csv;q=0.9, application/json;q=0.5",
           "region_bytes,repeat,sm,elapsed_ns,lines\n4096,0,0,1000,10\n4096,0,5,1000,20\n"
           "4096,1,0,1001,11\n4096,1,5,1001,21\n");
    csv_is(f, "5", "text/*",
           "repeat,thrashed,sm,slice_page,cycles\n0,0,0,0,1\n0,0,5,0,2\n0,1,0,0,3\n0,1,5,0,4\n");
    csv_is(f, "3", "*/*", NULL);
    csv_is(f, "3", "text/csv;q=0.1, */*", NULL);
    assert_int_equal(
        status_of(f, REQUEST("GET /v1/gpus/0/observations/3", "Accept: image/png\r\n")), 406);
}

/* ---- POST ---- */

static unsigned post(struct fixture *f, const char *type, const char *body, size_t bytes,
                     struct answer *out)
{
    char *request = malloc(bytes + 512);
    int head = snprintf(request, 512,
                        "POST /v1/gpus/0/fingerprint HTTP/1.1\r\nHost: x\r\n%s%s%s"
                        "Content-Length: %zu\r\n\r\n",
                        type ? "Content-Type: " : "", type ? type : "", type ? "\r\n" : "", bytes);

    memcpy(request + head, body, bytes);
    ask_bytes(f, request, (size_t)head + bytes, out);
    free(request);
    return out->status;
}

static void test_post_measures(void **state)
{
    struct fixture *f = *state;
    struct answer a;

    assert_int_equal(post(f, NULL, "", 0, &a), 202);
    assert_non_null(strstr(a.head, "\r\nLocation: /v1/jobs/job-7\r\n"));
    assert_non_null(strstr(a.body, "\"job-7\""));
    assert_int_equal(f->fake.depth, DEPTH_FULL);
    free(a.body);
    assert_int_equal(post(f, "application/json", "{\"depth\": \"quick\"}", 18, &a), 202);
    assert_int_equal(f->fake.depth, DEPTH_QUICK);
    free(a.body);
    assert_int_equal(post(f, "application/json; charset=utf-8", "{}", 2, &a), 202);
    free(a.body);
    assert_int_equal(f->fake.submitted, 3);
    assert_int_equal(status_of(f, REQUEST("POST /v1/gpus/7/fingerprint", "Content-Length: 0\r\n")),
                     404);
    json_decref(get(f, "/v1/jobs/job-7", 200));
    refused(f, "/v1/jobs/job-8", 404, "not-found", NULL);
    f->fake.submit_status = STATUS_FULL;
    assert_int_equal(post(f, NULL, "", 0, &a), 503);
    assert_non_null(strstr(a.head, "Retry-After: "));
    free(a.body);
}

static void test_post_refuses(void **state)
{
    static const struct {
        const char *body;
        const char *pointer;
    } cases[] = {
        {"{\"depth\": \"deep\"}", "/depth"},
        {"{\"depth\": 1}", "/depth"},
        {"{\"depth\": null}", "/depth"},
        {"{\"depth\": [\"quick\"]}", "/depth"},
        {"{\"depth\": \"quick\", \"deep\": true}", "/deep"},
        {"{\"a/b~c\": 1}", "/a~1b~0c"},
        {"{\"depth\": \"quick\", \"depth\": \"full\"}", "/depth"},
        {"[]", ""},
        {"\"quick\"", ""},
        {"{\"depth\": \"quick\"", ""},
        {"{\"depth\": \"quick\"} x", ""},
        {"{'depth': 1}", ""},
        {"\xef\xbb\xbf{}", ""},
        {"{\"depth\": \"\\u0000\"}", ""},
        {"{\"depth\": \"\xff\"}", ""},
        {"{\"depth\": 1e999}", ""},
        {"   ", ""},
        {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", ""},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct answer a;
        json_t *p;
        json_t *first;
        unsigned status = post(f, "application/json", cases[i].body, strlen(cases[i].body), &a);
        if (status != 400)
            fail_msg("%s: %u", cases[i].body, status);
        p = json_loadb(a.body, a.body_bytes, 0, NULL);
        first = json_array_get(json_object_get(p, "errors"), 0);
        if (strcmp(text_in(first, "pointer"), cases[i].pointer) != 0)
            fail_msg("%s: blames %s", cases[i].body, text_in(first, "pointer"));
        json_decref(p);
        free(a.body);
    }
    assert_int_equal(f->fake.submitted, 0);
}

static void test_post_types_and_sizes(void **state)
{
    struct fixture *f = *state;
    size_t limit = 1 << 20;
    char *large = malloc(limit + 1);
    struct answer a;

    assert_int_equal(post(f, "text/plain", "{}", 2, &a), 415);
    free(a.body);
    memset(large, ' ', limit + 1);
    large[0] = '{';
    large[limit - 1] = '}';
    assert_int_equal(post(f, "application/json", large, limit, &a), 202);
    free(a.body);
    assert_int_equal(post(f, "application/json", large, limit + 1, &a), 413);
    assert_non_null(strstr(a.body, "body-too-large"));
    free(a.body);
    memset(large, ',', limit);
    assert_int_equal(post(f, "application/json", large, limit, &a), 400);
    free(a.body);
    free(large);
    /* Refused on sight, before a byte of it is read. */
    assert_int_equal(
        status_of(f, REQUEST("POST /v1/gpus/0/fingerprint", "Content-Length: 10737418240\r\n")),
        413);
    assert_int_equal(status_of(f, REQUEST("POST /v1/gpus/0/fingerprint",
                                          "Content-Length: 9223372036854775807\r\n")),
                     413);
}

static void test_chunked(void **state)
{
    struct fixture *f = *state;
    char *request = malloc(3 << 20);
    struct answer a;
    size_t at;

    assert_int_equal(status_of(f, "POST /v1/gpus/0/fingerprint HTTP/1.1\r\nHost: x\r\n"
                                  "Content-Type: application/json\r\n"
                                  "Transfer-Encoding: chunked\r\n\r\n"
                                  "7\r\n{\"depth\r\nb\r\n\": \"matrix\"}\r\n0\r\n\r\n"),
                     400); /* the second chunk is one byte longer than it says */
    assert_int_equal(status_of(f, "POST /v1/gpus/0/fingerprint HTTP/1.1\r\nHost: x\r\n"
                                  "Transfer-Encoding: chunked\r\n\r\n"
                                  "7\r\n{\"depth\r\nc\r\n\": \"matrix\"}\r\n0\r\n\r\n"),
                     202);
    assert_int_equal(f->fake.depth, DEPTH_MATRIX);
    at = (size_t)sprintf(request, "POST /v1/gpus/0/fingerprint HTTP/1.1\r\nHost: x\r\n"
                                  "Transfer-Encoding: chunked\r\n\r\n200000\r\n");
    memset(request + at, ' ', 0x200000);
    at += 0x200000;
    at += (size_t)sprintf(request + at, "\r\n0\r\n\r\n");
    ask_bytes(f, request, at, &a);
    assert_int_equal(a.status, 413);
    free(a.body);
    free(request);
}

/* ---- hostile requests ---- */

static void test_guard(void **state)
{
    static const char *const refused_400[] = {
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "POST /v1/gpus/0/fingerprint HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
        "Content-Length: 2\r\n\r\n{}",
        "POST /v1/gpus/0/fingerprint HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
        "Content-Length: 3\r\n\r\n{}",
        "POST /v1/gpus/0/fingerprint HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
        "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST /v1/gpus/0/fingerprint HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n",
        "POST /v1/gpus/0/fingerprint HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n"
        "\r\n0\r\n\r\n",
        "POST /v1/gpus/0/fingerprint HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
        "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST /v1/gpus/0/fingerprint HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        "0\r\n\r\n",
        "POST /v1/gpus/0/fingerprint HTTP/1.1\r\nHost: a\r\nContent-Length : 2\r\n\r\n{}",
        "POST /v1/gpus/0/fingerprint HTTP/1.1\r\nHost: a\r\nContent-Length: +2\r\n\r\n{}",
        "POST /v1/gpus/0/fingerprint HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        "POST /v1/gpus/0/fingerprint HTTP/1.1\r\nHost: a\r\nContent-Length: 0x2\r\n\r\n{}",
        "GET / HTTP/1.1\r\nHost: a\r\nX-A: b\rc\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX(A): b\r\n\r\n",
        "GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /v1/gpus%00x HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /v1/gpus/0/scope?bytes=1%00 HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /% HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /%ff HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /%0d%0aX: HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET v1/gpus HTTP/1.1\r\nHost: a\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(refused_400) / sizeof(*refused_400); i++) {
        unsigned status = status_of(f, refused_400[i]);
        if (status != 400)
            fail_msg("%s: %u", refused_400[i], status);
        assert_int_equal(status_of(f, REQUEST("GET /healthz", "")), 200); /* still there */
    }
    assert_int_equal(f->fake.submitted, 0);
}

static void test_raw_nul(void **state)
{
    static const char in_path[] = "GET /heal\0thz HTTP/1.1\r\nHost: a\r\n\r\n";
    static const char in_value[] = "GET /healthz HTTP/1.1\r\nHost: a\r\nX-A: b\0c\r\n\r\n";
    struct fixture *f = *state;
    struct answer a;

    ask_bytes(f, in_path, sizeof(in_path) - 1, &a);
    assert_true(a.status != 200);
    free(a.body);
    ask_bytes(f, in_value, sizeof(in_value) - 1, &a);
    free(a.body); /* the library cuts the value; the request itself is whole */
    assert_int_equal(status_of(f, REQUEST("GET /healthz", "")), 200);
}

static void test_long_targets(void **state)
{
    struct fixture *f = *state;
    char *request = malloc(80000);
    struct answer a;
    size_t at = (size_t)sprintf(request, "GET /");

    memset(request + at, 'a', 70000);
    strcpy(request + at + 70000, " HTTP/1.1\r\nHost: a\r\n\r\n");
    ask(f, request, &a);
    assert_int_equal(a.status, 414);
    free(a.body);
    memset(request + at, 'a', 4000);
    strcpy(request + at + 4000, " HTTP/1.1\r\nHost: a\r\n\r\n");
    ask(f, request, &a);
    assert_int_equal(a.status, 404);
    free(a.body);
    at = (size_t)sprintf(request, "GET /v1/gpus?");
    for (int i = 0; i < 40; i++)
        at += (size_t)sprintf(request + at, "p%d=1&", i);
    strcpy(request + at, " HTTP/1.1\r\nHost: a\r\n\r\n");
    ask(f, request, &a);
    assert_int_equal(a.status, 400);
    free(a.body);
    free(request);
}

static void test_absolute_form(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(status_of(f, REQUEST("GET http://x/healthz", "")), 200);
    assert_int_equal(status_of(f, REQUEST("GET http://x", "")), 200);
    assert_int_equal(status_of(f, REQUEST("GET ftp://x/healthz", "")), 400);
}

static void test_keep_alive_and_pipelining(void **state)
{
    struct fixture *f = *state;
    int fd = dial(f);
    struct answer a;
    const char *one = REQUEST("GET /healthz", "");

    for (int i = 0; i < 3; i++) {
        send_all(f, fd, one, strlen(one));
        read_answer(f, fd, false, &a);
        assert_int_equal(a.status, 200);
        assert_false(a.closed);
        free(a.body);
    }
    close(fd);
}

/* A refused body must not be taken for the next request. */
static void test_refusal_closes(void **state)
{
    struct fixture *f = *state;
    int fd = dial(f);
    struct answer a;
    static const char smuggled[] =
        "POST /v1/gpus/0/fingerprint HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n"
        "Transfer-Encoding: chunked\r\n\r\n"
        "POST /v1/gpus/0/fingerprint HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";

    send_all(f, fd, smuggled, sizeof(smuggled) - 1);
    read_answer(f, fd, false, &a);
    assert_int_equal(a.status, 400);
    assert_non_null(strcasestr(a.head, "\r\nConnection: close\r\n"));
    free(a.body);
    read_answer(f, fd, false, &a);
    assert_int_equal(a.status, 0);
    assert_true(a.closed);
    free(a.body);
    assert_int_equal(f->fake.submitted, 0);
    close(fd);
}

/* The number of ready connections at which the library's own epoll thread stalls. */
static void test_exactly_128_ready(void **state)
{
    static const int counts[] = {127, 128, 129, 256};
    struct fixture *f = *state;
    const char *request = REQUEST("GET /healthz", "");
    int fds[256];

    restart(f, 0, 300);
    for (size_t c = 0; c < sizeof(counts) / sizeof(*counts); c++) {
        for (int i = 0; i < counts[c]; i++) {
            fds[i] = dial(f);
            send_all(f, fds[i], request, strlen(request));
        }
        for (int i = 0; i < counts[c]; i++) {
            struct answer a;
            read_answer(f, fds[i], false, &a);
            assert_int_equal(a.status, 200);
            free(a.body);
        }
        for (int i = 0; i < counts[c]; i++)
            close(fds[i]);
        while (pump(f, -1, 0)) {
        }
    }
}

/* ---- deadline and end ---- */

static bool closed_without_answer(struct fixture *f, const char *begin)
{
    int fd = dial(f);
    struct answer a;

    send_all(f, fd, begin, strlen(begin));
    read_answer(f, fd, false, &a);
    close(fd);
    free(a.body);
    return a.closed && a.status == 0;
}

static void test_deadline(void **state)
{
    struct fixture *f = *state;

    restart(f, 20 * NSEC_PER_MSEC, 0);
    assert_true(closed_without_answer(f, "GET /heal"));
    assert_true(closed_without_answer(f, "GET /healthz HTTP/1.1\r\nHost:"));
    assert_true(closed_without_answer(f, "POST /v1/gpus/0/fingerprint HTTP/1.1\r\nHost: a\r\n"
                                         "Content-Length: 10\r\n\r\n{"));
    assert_true(closed_without_answer(f, ""));
    assert_int_equal(status_of(f, REQUEST("GET /healthz", "")), 200);
}

/* Whoever holds all places loses them at the deadline. */
static void test_full_house_recovers(void **state)
{
    struct fixture *f = *state;
    int fds[4];
    struct answer a;
    const char *request = REQUEST("GET /healthz", "");
    int late;

    restart(f, 20 * NSEC_PER_MSEC, 4);
    for (int i = 0; i < 4; i++) {
        fds[i] = dial(f);
        send_all(f, fds[i], "GET /", 5);
    }
    late = dial(f);
    send_all(f, late, request, strlen(request));
    read_answer(f, late, false, &a);
    assert_int_equal(a.status, 200);
    free(a.body);
    close(late);
    for (int i = 0; i < 4; i++)
        close(fds[i]);
}

static void test_stop_finishes_answers(void **state)
{
    struct fixture *f = *state;
    const char *request = REQUEST("GET /v1/gpus/0/fingerprint", "");
    int fd = dial(f);
    char buffer[64];

    send_all(f, fd, request, strlen(request));
    while (pump(f, -1, 0)) {
    }
    restart(f, 0, 0);
    assert_true(recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT) > 0);
    assert_memory_equal(buffer, "HTTP/1.1 200", 12);
    close(fd);
}

static void test_refuses_no_listener(void **state)
{
    struct fixture *f = *state;
    struct api_options options = {.listen_count = 0};
    struct api_server *server = NULL;
    struct err err;

    assert_int_equal(api_server_new(&options, f->cell, &f->backend, &server, &err),
                     STATUS_INVALID_ARGUMENT);
    options.listen_count = 5;
    assert_int_equal(api_server_new(&options, f->cell, &f->backend, &server, &err),
                     STATUS_INVALID_ARGUMENT);
    api_server_free(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_index_lists_routes),
        TEST(test_health_and_ready),
        TEST(test_not_ready),
        TEST(test_openapi),
        TEST(test_openapi_has_every_route),
        TEST(test_node),
        TEST(test_gpus),
        TEST(test_unknown_gpu),
        TEST(test_fingerprint),
        TEST(test_etag),
        TEST(test_new_generation_replaces_documents),
        TEST(test_head_and_methods),
        TEST(test_query_refusals),
        TEST(test_absurd_sizes),
        TEST(test_scope),
        TEST(test_placement),
        TEST(test_same_question_same_answer),
        TEST(test_history_and_observations),
        TEST(test_csv),
        TEST(test_post_measures),
        TEST(test_post_refuses),
        TEST(test_post_types_and_sizes),
        TEST(test_chunked),
        TEST(test_guard),
        TEST(test_raw_nul),
        TEST(test_long_targets),
        TEST(test_absolute_form),
        TEST(test_keep_alive_and_pipelining),
        TEST(test_refusal_closes),
        TEST(test_exactly_128_ready),
        TEST(test_deadline),
        TEST(test_full_house_recovers),
        TEST(test_stop_finishes_answers),
        TEST(test_refuses_no_listener),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
