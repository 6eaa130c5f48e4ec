/* raw_daemon.h: a server on a Unix socket that answers each request with bytes of the test's
 * choice. The bytes may be HTTP or not, and are sent at once or byte by byte. The server has one
 * thread and serves one connection at a time. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct raw_daemon {
    char folder[64];
    char path[96];
    const char
        *answer; /* NULL means that the server sends no answer and keeps the connection open */
    size_t bytes;
    bool drips;   /* sends the answer byte by byte */
    bool endless; /* repeats the answer without end */
    bool closes;  /* closes the connection after the answer */
    char last[512];
    atomic_int requests;
    atomic_bool stop;
    int listener;
    pthread_t thread;
};

/* Serves until raw_stop. The caller sets all fields except folder, path and the fields after
 * `closes`. */
void raw_start(struct raw_daemon *d);
void raw_stop(struct raw_daemon *d);

/* Returns a response with the status line "HTTP/1.1 STATUS X", its length, text/plain and the body.
 * The buffer is static and valid until the next call. */
const char *raw_http(int status, const char *body);
