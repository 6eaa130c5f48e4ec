/* api_fixture.c: a backend that records its last request, an invented snapshot, and a raw
 * client. */
#include "tests/unit/support/api_fixture.h"

#include "base/units.h"
#include "fingerprint/fingerprint_json.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

const char API_UUID[] = "SIM-00000000-0000-4000-8000-000000000001";
const char API_UNMEASURED[] = "SIM-00000000-0000-4000-8000-000000000002";

/* ---- a backend that records its last request ---- */

static enum status write_value(struct json_writer *out, json_t *take)
{
    json_writer_value(out, NULL, take);
    json_decref(take);
    return STATUS_OK;
}

static enum status fake_submit(void *self, const char *uuid, enum depth depth,
                               struct json_writer *out, struct api_measurement *out_measurement,
                               struct err *err)
{
    struct fake_backend *f = self;

    if (f->submit_status != STATUS_OK)
        return err_set(err, f->submit_status, "8 measurements wait for GPU %s", uuid);
    f->submitted++;
    f->depth = depth;
    *out_measurement = (struct api_measurement){.id = "m-7"};
    return write_value(out, json_pack("{s:s,s:s,s:s,s:s}", "id", "m-7", "gpu", uuid, "depth",
                                      depth_name(depth), "state", "queued"));
}

static enum status fake_job(void *self, const char *id, struct json_writer *out, struct err *err)
{
    (void)self;
    if (strcmp(id, "m-7") != 0)
        return err_set(err, STATUS_NOT_FOUND, "there is no measurement %s", id);
    return write_value(out,
                       json_pack("{s:s,s:s,s:f}", "id", id, "state", "running", "progress", 0.5));
}

static enum status fake_forget(void *self, const char *uuid, struct err *err)
{
    (void)self;
    return err_set(err, STATUS_CONFLICT, "GPU %s is ready", uuid);
}

static enum status fake_cancel(void *self, const char *id, struct json_writer *out,
                               struct api_measurement *out_measurement, struct err *err)
{
    struct fake_backend *f = self;

    if (f->cancel_status != STATUS_OK)
        return err_set(err, f->cancel_status, "%s has ended already", id);
    f->cancelled++;
    *out_measurement = (struct api_measurement){.id = "m-7", .is_running = !f->ended};
    return write_value(out, json_pack("{s:s,s:s,s:s,s:s}", "id", id, "gpu", API_UUID, "depth",
                                      "full", "state", f->ended ? "failed" : "running"));
}

static enum status fake_history(void *self, const char *uuid, int64_t before, uint32_t limit,
                                struct json_writer *out, struct err *err)
{
    struct fake_backend *f = self;

    (void)uuid;
    (void)err;
    f->before = before;
    f->limit = limit;
    return write_value(out, json_pack("{s:[],s:n}", "fingerprints", "next"));
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
                                     uint32_t limit, struct json_writer *out, struct err *err)
{
    struct fake_backend *f = self;

    (void)uuid;
    (void)err;
    f->run = run;
    f->before = before;
    f->limit = limit;
    return write_value(out, json_pack("{s:[],s:n}", "observations", "next"));
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
    static const char sides[] =
        "{\"id\":6,\"run\":1,\"probe\":{\"kind\":\"sides\",\"sms\":[0,7]},\"sm_ids\":[0,5,7],"
        "\"shape\":[2,2,1],\"values\":[270,450,271,451],\"conditions\":{}}";
    static const char *const texts[] = {chase, read, round, sides};

    (void)self;
    if (id < 3 || id > 6)
        return err_set(err, STATUS_NOT_FOUND, "GPU %s has no observation %lld", uuid,
                       (long long)id);
    *out = json_loads(texts[id - 3], 0, NULL);
    return STATUS_OK;
}

static void fake_condition(void *self, struct api_health *out)
{
    const struct fake_backend *f = self;

    *out = (struct api_health){.measurements_queued = 2,
                               .measurements_running = 1,
                               .measurements_done = 41,
                               .measurements_failed = 3,
                               .database = f->database};
}

/* ---- the fixture ---- */

/* Makes one invented GPU with 4 groups of 4 SMs and 1 GiB of reach, and one GPU that was not
 * measured. */
static void publish(struct api_fixture *f)
{
    struct snapshot *s = snapshot_draft(2);
    struct snapshot_gpu *gpu = &s->gpus[0];
    struct fingerprint *fp = &gpu->fingerprint;

    snprintf(s->source, sizeof(s->source), "simulated");
    snprintf(gpu->identity.uuid, sizeof(gpu->identity.uuid), "%s", API_UUID);
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
    assert_int_equal(fingerprint_id(fp, gpu->fingerprint_id, NULL), STATUS_OK);
    memcpy(f->id, gpu->fingerprint_id, sizeof(f->id));
    s->gpus[1].identity = gpu->identity;
    snprintf(s->gpus[1].identity.uuid, sizeof(s->gpus[1].identity.uuid), "%s", API_UNMEASURED);
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

static void start(struct api_fixture *f, nsec_t deadline_ns, uint32_t limit)
{
    struct api_options options = {.listen_count = 1,
                                  .request_deadline_ns = deadline_ns,
                                  .daemon_version = "1.2.3-test",
                                  .token = f->token};
    struct err err;

    options.listeners[0] =
        (struct api_listener){.fd = listen_on(f->path), .role = f->role, .connection_limit = limit};
    if (api_server_new(&options, f->cell, &f->backend, &f->server, &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

static enum status fake_compare(void *self, const struct fingerprint *fp, struct json_writer *out,
                                struct err *err)
{
    (void)self;
    (void)fp;
    (void)err;
    json_writer_text(out, "verdict", "unknown-kind");
    return STATUS_OK;
}

int api_set_up(void **state)
{
    struct api_fixture *f = calloc(1, sizeof(*f));

    snprintf(f->path, sizeof(f->path), "/tmp/reachd-test-api-%ld.sock", (long)getpid());
    f->backend = (struct api_backend){.self = &f->fake,
                                      .submit = fake_submit,
                                      .measurement = fake_job,
                                      .cancel = fake_cancel,
                                      .forget = fake_forget,
                                      .history = fake_history,
                                      .fingerprint_at = fake_fingerprint_at,
                                      .observations = fake_observations,
                                      .observation = fake_observation,
                                      .compare = fake_compare,
                                      .health = fake_condition};
    f->cell = snapshot_cell_new();
    publish(f);
    start(f, 0, 0);
    *state = f;
    return 0;
}

int api_tear_down(void **state)
{
    struct api_fixture *f = *state;

    api_server_free(f->server);
    snapshot_cell_free(f->cell);
    unlink(f->path);
    free(f);
    return 0;
}

int api_restart(struct api_fixture *f, nsec_t deadline_ns, uint32_t limit)
{
    api_server_free(f->server);
    start(f, deadline_ns, limit);
    return 0;
}

/* ---- a client ---- */

int api_dial(const struct api_fixture *f)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", f->path);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* Runs the server until `fd` can be read, or the server is idle for `ms`. */
bool api_pump(struct api_fixture *f, int fd, int ms)
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

/* Returns whether `text` contains a complete answer. HEAD and 304 have no body. */
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

void api_read(struct api_fixture *f, int fd, bool no_body, struct api_answer *out)
{
    static char buffer[1 << 20];
    size_t bytes = 0;
    char *end;

    memset(out, 0, sizeof(*out));
    buffer[0] = '\0';
    while (!complete(buffer, bytes, no_body)) {
        ssize_t got;
        if (!api_pump(f, fd, API_HANG_MS))
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
    for (int tries = 0; tries < 2 && !out->body; tries++)
        out->body =
            malloc(out->body_bytes + 1); /* a test may make one of the two allocations fail */
    assert_non_null(out->body);
    memcpy(out->body, end + 4, out->body_bytes + 1);
}

void api_send(struct api_fixture *f, int fd, const char *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t sent = send(fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EAGAIN) {
            api_server_run(f->server);
            continue;
        }
        if (sent < 0)
            return; /* the server has refused the request early, so the answer has arrived */
        data += sent;
        bytes -= (size_t)sent;
    }
}

/* Sends unchanged bytes on a new connection. */
void api_ask_bytes(struct api_fixture *f, const char *data, size_t bytes, struct api_answer *out)
{
    int fd = api_dial(f);

    api_send(f, fd, data, bytes);
    api_read(f, fd, strncmp(data, "HEAD", 4) == 0, out);
    close(fd);
    while (api_pump(f, -1, 0)) {
    }
}

void api_ask(struct api_fixture *f, const char *data, struct api_answer *out)
{
    api_ask_bytes(f, data, strlen(data), out);
}

unsigned api_status_of(struct api_fixture *f, const char *data)
{
    struct api_answer a;

    api_ask(f, data, &a);
    free(a.body);
    return a.status;
}

unsigned api_status_at_last(struct api_fixture *f, const char *data)
{
    unsigned status;

    do {
        status = api_status_of(f, data);
    } while (status == 0);
    return status;
}

char *api_line_of(char *out, size_t size, const char *method, const char *target,
                  const char *fields)
{
    snprintf(out, size, "%s %s HTTP/1.1\r\nHost: x\r\n%s\r\n", method, target, fields);
    return out;
}

/* Sends GET, checks the status, and returns the JSON. */
json_t *api_get(struct api_fixture *f, const char *target, unsigned status)
{
    char request[1024];
    struct api_answer a;
    json_t *json;

    api_ask(f, api_line_of(request, sizeof(request), "GET", target, ""), &a);
    if (a.status != status)
        fail_msg("%s: %u, not %u: %s", target, a.status, status, a.body ? a.body : "");
    assert_non_null(strstr(a.head, status == 200 ? "Content-Type: application/json\r\n"
                                                 : "Content-Type: application/problem+json\r\n"));
    json = json_loadb(a.body, a.body_bytes, 0, NULL);
    assert_non_null(json);
    free(a.body);
    return json;
}

const char *api_text_in(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));

    if (!text)
        fail_msg("no text %s", name);
    return text;
}

/* Checks that a refusal is complete: it has a slug, a sentence and the next step. It names
 * `parameter` if this is not NULL. */
void api_refused(struct api_fixture *f, const char *target, unsigned status, const char *slug,
                 const char *parameter)
{
    json_t *p = api_get(f, target, status);
    json_t *first = json_array_get(json_object_get(p, "errors"), 0);
    char type[96];

    assert_string_equal(api_text_in(p, "slug"), slug);
    snprintf(type, sizeof(type), "urn:reachd:problem:%s", slug);
    assert_string_equal(api_text_in(p, "type"), type);
    assert_true(strlen(api_text_in(p, "title")) > 0);
    assert_true(strlen(api_text_in(p, "detail")) > 0);
    assert_true(strlen(api_text_in(p, "next_step")) > 0);
    assert_int_equal(json_integer_value(json_object_get(p, "status")), status);
    if (parameter) {
        if (!first || strcmp(api_text_in(first, "parameter"), parameter) != 0)
            fail_msg("%s: %s is not blamed", target, parameter);
    }
    json_decref(p);
}
