/* stub_daemon.h: a stand-in for the daemon that sends the replies of the test. A reply can be
 * invalid or missing. The stub has one thread, one Unix socket, and up to STUB_CONNECTIONS
 * connections. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum stub_manner {
    STUB_SAYS = 0, /* sends the answer; sends 304 if the request contains its tag */
    STUB_SILENT,   /* sends no answer and keeps the connection open */
    STUB_CLOSES,   /* closes the connection without an answer */
    STUB_BREAKS,   /* sends half of the answer, then closes the connection */
    STUB_BABBLES   /* sends bytes that are not HTTP */
};

struct stub_reply {
    enum stub_manner manner;
    int http_status;  /* status of the answer; 0 means 200 */
    const char *tag;  /* ETag without quotes; NULL if there is none */
    const char *body; /* body of the answer; NULL means "" */
    const char *id;   /* value of X-Request-Id; NULL if there is none */
};

/* The stub's thread calls this for each request; `target` is its path and query. */
typedef struct stub_reply stub_fn(void *cls, const char *target);

enum { STUB_CONNECTIONS = 64 };

struct stub_daemon {
    char folder[64];
    char where[96]; /* address for reach_open: "unix:.." */
    stub_fn *reply;
    void *cls;
    atomic_int requests;
    atomic_int not_modified; /* requests with answer 304 */
    atomic_int connections;  /* number of connections accepted so far */
    atomic_bool stop;
    int listener;
    pthread_t thread;
};

/* Serves until stub_stop, which also removes the socket. */
void stub_start(struct stub_daemon *stub, stub_fn *reply, void *cls);
void stub_stop(struct stub_daemon *stub);
