/* raw_daemon.h: something on a Unix socket that answers each request with bytes of the test's
 * choice, HTTP or not, at once or drop by drop. One thread, one connection at a time. */
#ifndef REACH_TESTS_RAW_DAEMON_H
#define REACH_TESTS_RAW_DAEMON_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct raw_daemon {
    char folder[64];
    char path[96];
    const char *answer; /* to every request; NULL: none, and the connection stays */
    size_t bytes;
    bool drips;   /* a byte at a time, without end in sight */
    bool endless; /* the answer again and again */
    bool closes;  /* behind the answer */
    char last[512];
    atomic_int requests;
    atomic_bool stop;
    int listener;
    pthread_t thread;
};

/* With all but folder, path and what follows `closes` set. Serves until raw_stop. */
void raw_start(struct raw_daemon *d);
void raw_stop(struct raw_daemon *d);

/* "HTTP/1.1 STATUS X", a length, text/plain and the body; static, until the next call. */
const char *raw_http(int status, const char *body);

#endif
