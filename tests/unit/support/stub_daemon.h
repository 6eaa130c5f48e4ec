/* stub_daemon.h: a stand-in for the daemon that says what a test tells it to, nonsense and nothing
 * at all too. One thread, one Unix socket, any number of connections. */
#ifndef REACH_TESTS_STUB_DAEMON_H
#define REACH_TESTS_STUB_DAEMON_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum stub_manner {
    STUB_SAYS = 0, /* the answer; 304 where the request names its tag */
    STUB_SILENT,   /* nothing, and the connection stays */
    STUB_CLOSES,   /* closes without a word */
    STUB_BREAKS,   /* half of the answer, then closes */
    STUB_BABBLES   /* bytes that are no HTTP */
};

struct stub_reply {
    enum stub_manner manner;
    int http_status;  /* 0: 200 */
    const char *tag;  /* without quotes; NULL: none */
    const char *body; /* NULL: "" */
    const char *id;   /* X-Request-Id; NULL: none */
};

/* Called by the stub's thread for each request; `target` is its path and query. */
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

/* Serves from here on until stub_stop, which also removes the socket. */
void stub_start(struct stub_daemon *stub, stub_fn *reply, void *cls);
void stub_stop(struct stub_daemon *stub);

#endif
