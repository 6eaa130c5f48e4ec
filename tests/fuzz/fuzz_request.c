/* fuzz_request.c: sends any bytes over a connection to an HTTP server in this process. Each
 * answer is well-formed at its start, and the server is ready for the next connection. */
#include "fuzz.h"

#include "api/server/server.h"
#include "fingerprint/fingerprint_json.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { RUNS = 64 };

static struct api_server *server;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t address_bytes;

/* ---- a daemon with two GPUs, one of them measured, and without running measurements ---- */

static enum status no_job(void *self, const char *id, struct json_writer *out, struct err *err)
{
    (void)self;
    (void)out;
    return err_set(err, STATUS_NOT_FOUND, "there is no measurement %.40s", id);
}

static enum status no_cancel(void *self, const char *id, struct json_writer *out,
                             struct api_measurement *out_measurement, struct err *err)
{
    (void)out_measurement;
    return no_job(self, id, out, err);
}

static enum status no_room(void *self, const char *uuid, enum depth depth, struct json_writer *out,
                           struct api_measurement *out_measurement, struct err *err)
{
    (void)self;
    (void)out;
    (void)out_measurement;
    REACH_ASSERT((unsigned)depth < DEPTH_COUNT);
    return err_set(err, STATUS_FULL, "8 measurements wait for GPU %s", uuid);
}

static void write_empty(struct json_writer *out, const char *name)
{
    json_writer_open(out, NULL, '{');
    json_writer_open(out, name, '[');
    json_writer_close(out, ']');
    json_writer_null(out, "next");
    json_writer_close(out, '}');
}

static enum status no_history(void *self, const char *uuid, int64_t before, uint32_t limit,
                              struct json_writer *out, struct err *err)
{
    (void)self;
    (void)uuid;
    (void)err;
    REACH_ASSERT(before >= 0 && limit >= 1 && limit <= 1000);
    write_empty(out, "fingerprints");
    return STATUS_OK;
}

static enum status no_fingerprint(void *self, const char *uuid, const char *id,
                                  struct fingerprint *out, struct err *err)
{
    (void)self;
    (void)out;
    return err_set(err, STATUS_NOT_FOUND, "GPU %s never had a fingerprint %.40s", uuid, id);
}

static enum status no_observations(void *self, const char *uuid, int64_t run, int64_t before,
                                   uint32_t limit, struct json_writer *out, struct err *err)
{
    (void)self;
    (void)uuid;
    (void)err;
    REACH_ASSERT(run >= 0 && before >= 0 && limit >= 1 && limit <= 1000);
    write_empty(out, "observations");
    return STATUS_OK;
}

static enum status no_observation(void *self, const char *uuid, int64_t id, json_t **out,
                                  struct err *err)
{
    (void)self;
    (void)out;
    REACH_ASSERT(id >= 1);
    return err_set(err, STATUS_NOT_FOUND, "GPU %s has no observation %lld", uuid, (long long)id);
}

static enum status not_lost(void *self, const char *uuid, struct err *err)
{
    (void)self;
    return err_set(err, STATUS_CONFLICT, "GPU %s is ready", uuid);
}

static void condition(void *self, struct api_health *out)
{
    (void)self;
    *out = (struct api_health){.measurements_done = 1};
}

static enum status no_comparison(void *self, const struct fingerprint *fp, struct json_writer *out,
                                 struct err *err)
{
    (void)self;
    (void)fp;
    (void)err;
    json_writer_text(out, "verdict", "unknown-kind");
    return STATUS_OK;
}

static const struct api_backend backend = {.submit = no_room,
                                           .measurement = no_job,
                                           .cancel = no_cancel,
                                           .forget = not_lost,
                                           .history = no_history,
                                           .fingerprint_at = no_fingerprint,
                                           .observations = no_observations,
                                           .observation = no_observation,
                                           .compare = no_comparison,
                                           .health = condition};

static void publish(struct snapshot_cell *cell)
{
    struct snapshot *s = snapshot_draft(2);
    struct snapshot_gpu *gpu;
    struct fingerprint *fp;

    REACH_ASSERT(s);
    gpu = &s->gpus[0];
    fp = &gpu->fingerprint;
    snprintf(gpu->identity.uuid, sizeof(gpu->identity.uuid), "SIM-0");
    snprintf(s->gpus[1].identity.uuid, sizeof(s->gpus[1].identity.uuid), "SIM-1");
    gpu->identity.sm_count = 16;
    gpu->state = GPU_STATE_READY;
    gpu->has_fingerprint = true;
    fingerprint_init(fp);
    fp->gpu = gpu->identity;
    fp->topology.partition.group_count = 4;
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++)
        fp->topology.partition.group_of_sm[sm] =
            (uint16_t)(sm < 16 ? sm % 4 : FINGERPRINT_NO_GROUP);
    fp->windows.reach_bytes = KNOWN_U64((uint64_t)1 << 30);
    fp->windows.entry_bytes = KNOWN_U64((uint64_t)2 << 20);
    fp->windows.recommended_bytes = KNOWN_U64(((uint64_t)1 << 30) - ((uint64_t)2 << 20));
    fp->throughput.plateau_gbps = KNOWN_F64(100);
    REACH_ASSERT(fingerprint_id(fp, gpu->fingerprint_id, NULL) == STATUS_OK);
    snapshot_publish(cell, s);
}

static void start(void)
{
    struct api_options options = {.listen_count = 1, .daemon_version = "fuzz"};
    struct snapshot_cell *cell = snapshot_cell_new();
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int n = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "reachd-fuzz-%ld",
                     (long)getpid());

    address_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    REACH_ASSERT(cell && fd >= 0);
    REACH_ASSERT(bind(fd, (struct sockaddr *)&address, address_bytes) == 0 && listen(fd, 8) == 0);
    publish(cell);
    options.listeners[0].fd = fd;
    REACH_ASSERT(api_server_new(&options, cell, &backend, &server, NULL) == STATUS_OK);
}

/* ---- one connection ---- */

static void run(void)
{
    for (int i = 0; i < 2 || (i < RUNS && api_server_timeout_ms(server) == 0); i++)
        api_server_run(server);
}

/* Reads the bytes that have arrived. Returns true if the server has closed the connection. */
static bool receive(int fd, bool first)
{
    static char text[1 << 20];
    ssize_t got = recv(fd, text, sizeof(text), MSG_DONTWAIT);

    if (first && got > 0)
        REACH_ASSERT(got > 12 && memcmp(text, "HTTP/1.", 7) == 0);
    return got == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool first = true;
    bool closed = false;
    int fd;

    if (!server)
        start();
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REACH_ASSERT(fd >= 0 && connect(fd, (struct sockaddr *)&address, address_bytes) == 0);
    while (size > 0 && !closed) {
        ssize_t sent = send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
            data += sent;
            size -= (size_t)sent;
        }
        run();
        closed = receive(fd, first) || sent < 0;
        first = false;
    }
    run();
    shutdown(fd, SHUT_WR); /* after all data: the library misses an end that comes with data */
    run();
    (void)receive(fd, first);
    close(fd);
    run();
    return 0;
}
