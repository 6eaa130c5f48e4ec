/* discover.h: the thread that discovers GPUs, and the GPUs that the store has fingerprints of. */
#ifndef REACH_MEASURE_DISCOVER_H
#define REACH_MEASURE_DISCOVER_H

#include "base/heartbeat.h"
#include "base/status.h"

#include <pthread.h>
#include <stdbool.h>

struct pipeline;
struct worker;

/* The thread that discovers GPUs, and ends when there are some; another one for each time that the
 * driver is asked again. */
struct discovery {
    pthread_t pthread;
    bool started;
    bool ended;
    pthread_cond_t wake;
    struct heartbeat heartbeat;
    struct worker *worker; /* borrowed, while one is under way */
    int hung_pid;          /* of an abandoned worker; 0: none; the thread's own */
    bool again;            /* the driver is to be asked (again) */
    bool found;            /* the driver has shown a GPU since the start */
    char failure[400];     /* why there is no list, as it was logged last; the thread's own */
};

/* Asks the driver once. Returns whether there are GPUs. */
bool discover_once(struct pipeline *p);
/* Discovers GPUs in a thread of its own, until there are some. */
enum status discover_start(struct pipeline *p, struct err *err);
/* Publishes the GPUs that the store has fingerprints of. */
enum status discover_stored(struct pipeline *p, struct err *err);

#endif
