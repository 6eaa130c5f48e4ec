/* stub_daemon.h: a stand-in for the daemon that sends the replies of the test, including invalid
 * ones and none. One thread, one Unix socket, any number of connections. */
#ifndef REACH_TESTS_STUB_DAEMON_H
#define REACH_TESTS_STUB_DAEMON_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum stub_manner {
    STUB_SAYS = 0, /* the answer; 304 if the request names its tag */
    STUB_SILENT,   /* no answer, and the connection stays open */
    STUB_CLOSES,   /* closes without an answer */
    STUB_BREAKS,   /* half of the answer, then closes */
    STUB_BABBLES   /* bytes that are not HTTP */
};

struct stub_reply {
    enum stub_manner manner;
    int http_status;  /* 0 means 200 */
    const char *tag;  /* without quotes; NULL if there is none */
    const char *body; /* NULL means "" */
    const char *id;   /* X-Request-Id; NULL if there is none */
};

/* The stub's thread calls this for each request; `target` is its path and query. */
typedef struct stub_reply stub_fn(void *cls, const char *target);

enum { STUB_CONNECTIONS = 64 };

struct stub_daemon {
    char folder[64];
    char where[96]; /* for reach_open: "unix:.." */
    stub_fn *reply;
    void *cls;
    atomic_int requests;
    atomic_int not_modified; /* of these */
    atomic_int connections;  /* accepted so far */
    atomic_bool stop;
    int listener;
    pthread_t thread;
};

/* Serves until stub_stop, which also removes the socket. */
void stub_start(struct stub_daemon *stub, stub_fn *reply, void *cls);
void stub_stop(struct stub_daemon *stub);

#endif
