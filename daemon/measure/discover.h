/* discover.h: the thread that discovers GPUs, and the GPUs whose fingerprints are in the store. */
#pragma once

#include "base/heartbeat.h"
#include "base/status.h"

#include <pthread.h>
#include <stdbool.h>

struct pipeline;
struct worker;

/* The thread that discovers GPUs, and ends when GPUs are found. A new thread runs for each later
 * query of the driver. */
struct discovery {
    pthread_t pthread;
    bool started;
    bool ended;
    pthread_cond_t wake;
    struct heartbeat heartbeat;
    struct worker *worker; /* borrowed while a worker is running; otherwise NULL */
    int hung_pid; /* process of an abandoned worker, 0 if there is none; used by the thread alone */
    bool again;   /* the driver must be queried (again) */
    bool found;   /* the driver has shown a GPU since the start */
    char failure[400]; /* the reason logged last for a missing list; used by the thread alone */
};

/* Queries the driver once. Returns whether there are GPUs. */
bool discover_once(struct pipeline *p);
/* Starts the thread that discovers GPUs, until GPUs are found. */
enum status discover_start(struct pipeline *p, struct err *err);
/* Publishes the GPUs whose fingerprints are in the store. */
enum status discover_stored(struct pipeline *p, struct err *err);
