/* process.c: implements process.h. */
#include "clients/c/process.h"

#include "base/clock.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint generation;
static bool has_ids; /* guarded by lock, like the next */
static uint64_t last_id;

static void after_fork_in_child(void)
{
    atomic_fetch_add(&generation, 1);
    has_ids = false;
    process_unlock();
}

/* The handlers are never removed here; glibc removes them if the library is unloaded. */
static void start(void)
{
    pthread_atfork(process_lock, process_unlock, after_fork_in_child);
}

void process_start(void)
{
    pthread_once(&once, start);
}

void process_lock(void)
{
    pthread_mutex_lock(&lock);
}

void process_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

uint32_t process_generation(void)
{
    return atomic_load(&generation);
}

/* Returns a random number of the kernel, or else a number that is unlikely in another process. */
static uint64_t first_id(void)
{
    uint64_t id;

    if (getrandom(&id, sizeof(id), GRND_NONBLOCK) != (ssize_t)sizeof(id))
        id = clock_monotonic() << 20 ^ (uint64_t)getpid() << 44;
    return id;
}

void process_request_id(char *out)
{
    uint64_t id;

    process_lock();
    if (!has_ids)
        last_id = first_id();
    has_ids = true;
    id = ++last_id;
    process_unlock();
    snprintf(out, PROCESS_ID_BYTES, "%016" PRIx64, id);
}
