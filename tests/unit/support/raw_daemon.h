/* raw_daemon.h: a server on a Unix socket that answers each request with bytes of the test's
 * choice. They may be HTTP or not, and are sent at once or byte by byte. One thread, one
 * connection at a time. */
#ifndef REACH_TESTS_RAW_DAEMON_H
#define REACH_TESTS_RAW_DAEMON_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct raw_daemon {
    char folder[64];
    char path[96];
    const char *answer; /* NULL means no answer and an open connection */
    size_t bytes;
    bool drips;   /* a byte at a time, without end */
    bool endless; /* repeats the answer */
    bool closes;  /* after the answer */
    char last[512];
    atomic_int requests;
    atomic_bool stop;
    int listener;
    pthread_t thread;
};

/* The caller sets all fields except folder, path and the fields after `closes`. Serves until
 * raw_stop. */
void raw_start(struct raw_daemon *d);
void raw_stop(struct raw_daemon *d);

/* Returns "HTTP/1.1 STATUS X", a length, text/plain and the body; static, until the next call. */
const char *raw_http(int status, const char *body);

#endif
