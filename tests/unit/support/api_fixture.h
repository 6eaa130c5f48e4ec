/* api_fixture.h: the HTTP server in the process of the test, on a Unix socket, and a client that
 * sends raw bytes. Server and client share one thread. The client sends a request and then runs
 * the server while it waits for the answer. So only tests of the deadline depend on time. */
#pragma once

#include "api/server/server.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdbool.h>

extern const char
    API_UUID[]; /* UUID of GPU 0, which is invented: 4 groups of 4 SMs, 1 GiB of reach */
extern const char API_UNMEASURED[]; /* UUID of GPU 1, which was never measured */

/* The last request to the backend. */
struct fake_backend {
    int submitted;
    enum depth depth;
    enum status submit_status;
    int64_t before;
    uint32_t limit;
    int64_t run;
    int cancelled;
    enum status cancel_status;
    struct err database;
    bool ended; /* the job that was cancelled has ended */
};

struct api_fixture {
    struct fake_backend fake;
    struct api_backend backend;
    struct snapshot_cell *cell;
    struct api_server *server;
    char path[64];
    char id[FINGERPRINT_ID_BYTES];
    const char *token;           /* token of the next server; NULL if there is none */
    enum api_listener_role role; /* role of the socket of the next server */
};

struct api_answer {
    unsigned status;
    bool closed; /* the server has closed the connection, after the answer or without an answer */
    char head[2048];
    char *body;
    size_t body_bytes;
};

/* Makes a complete request from its first line and more header fields. */
#define API_REQUEST(line, fields) line " HTTP/1.1\r\nHost: x\r\n" fields "\r\n"

#define API_TEST(name) cmocka_unit_test_setup_teardown(name, api_set_up, api_tear_down)

int api_set_up(void **state);
int api_tear_down(void **state);
/* This limit only detects a hang: no machine needs this time for an answer. */
enum { API_HANG_MS = 600000 };

/* Restarts the server with another deadline and connection limit; 0 means the default. */
int api_restart(struct api_fixture *f, nsec_t deadline_ns, uint32_t limit);
/* Returns a new connection to the server. */
int api_dial(const struct api_fixture *f);
/* Runs the server until `fd` can be read, or the server is idle for `ms`. Returns true if `fd` can
 * be read. */
bool api_pump(struct api_fixture *f, int fd, int ms);
/* Reads one answer; the test frees its body. `no_body` is set for the answer to HEAD. */
void api_read(struct api_fixture *f, int fd, bool no_body, struct api_answer *out);
void api_send(struct api_fixture *f, int fd, const char *data, size_t bytes);
/* Sends the bytes unchanged on a new connection, and reads one answer. */
void api_ask_bytes(struct api_fixture *f, const char *data, size_t bytes, struct api_answer *out);
void api_ask(struct api_fixture *f, const char *data, struct api_answer *out);
unsigned api_status_of(struct api_fixture *f, const char *data);
/* Repeats the request until there is an answer, because a slow machine may exceed a short
 * deadline. */
unsigned api_status_at_last(struct api_fixture *f, const char *data);
/* Writes a request to `out`. */
char *api_line_of(char *out, size_t size, const char *method, const char *target,
                  const char *fields);
/* Sends GET, which must have this status, and returns its JSON. */
json_t *api_get(struct api_fixture *f, const char *target, unsigned status);
const char *api_text_in(const json_t *json, const char *name);
/* Checks that a refusal is complete: it has a slug, a sentence and the next step. The refusal must
 * name `parameter`. */
void api_refused(struct api_fixture *f, const char *target, unsigned status, const char *slug,
                 const char *parameter);
