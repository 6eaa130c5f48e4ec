/* duty.c: see duty.h. */
#include "clients/profile/inject/duty.h"

#include "base/clock.h"
#include "clients/profile/inject/gate.h"
#include "clients/profile/inject/kernels.h"
#include "clients/profile/inject/recorder.h"
#include "clients/profile/inject/thread.h"

#include <stdbool.h>
#include <time.h>

#define ON_NS         NSEC_PER_SEC
#define OFF_NS        (9 * NSEC_PER_SEC)
#define RETRY_NS      (100 * NSEC_PER_MSEC)
#define RATE_NS       (500 * NSEC_PER_MSEC)
#define BUSY_LAUNCHES 4000 /* per second */

/* Calls of the driver (sanitizer_driver_cbid.h). A number that a version lacks is refused, which is
 * harmless: the name decides what a callback does. */
static const uint32_t launch_calls[] = {115, 116, 117, 307, 442, 477, 478,
                                        480, 514, 515, 652, 653, 819};
static const uint32_t other_calls[] = {
    495, 496, 539, 540, 720, 721, /* cuStreamBeginCapture */
    497, 498,                     /* cuStreamEndCapture */
    513, 578, 643, 656, 657,      /* cuGraphInstantiate */
    127, 326,                     /* cuStreamDestroy */
    389, 545                      /* cuDevicePrimaryCtxReset */
};

static const struct sanitizer_api *api;
static san_subscriber subscriber;
static uint64_t full_ns;

static int set_launches(uint32_t enable)
{
    const int launches = api->enable_domain(enable, subscriber, SAN_DOMAIN_LAUNCH);
    const int graphs = api->enable_domain(enable, subscriber, SAN_DOMAIN_GRAPHS);
    for (size_t i = 0; i < sizeof launch_calls / sizeof launch_calls[0]; i++)
        (void)api->enable_callback(enable, subscriber, SAN_DOMAIN_DRIVER_API, launch_calls[i]);
    return launches ? launches : graphs;
}

/* Enables all callbacks of launches, or none. */
static int enable_launches(void)
{
    const int result = set_launches(1);
    if (result != 0)
        (void)set_launches(0);
    return result;
}

static void wait_ns(uint64_t ns)
{
    const struct timespec t = clock_timespec(ns);
    nanosleep(&t, NULL);
}

/* Returns whether the program launches so often that the callbacks cost some percent of its time.
 */
static bool is_busy(void)
{
    const uint64_t before = kernels_changes();
    wait_ns(RATE_NS);
    return (kernels_changes() - before) * (NSEC_PER_SEC / RATE_NS) >= BUSY_LAUNCHES;
}

static void *run(void *unused)
{
    (void)unused;
    wait_ns(full_ns);
    for (;;) {
        while (!is_busy() || !recorder_pause())
            wait_ns(RETRY_NS);
        (void)set_launches(0);
        kernels_pause();
        do {
            wait_ns(OFF_NS);
            gate_reset();
        } while (enable_launches() != 0);
        kernels_resume();
        recorder_resume();
        wait_ns(ON_NS);
    }
    return NULL;
}

int duty_start(const struct sanitizer_api *use, san_subscriber handle, uint64_t full)
{
    struct err err;

    api = use;
    subscriber = handle;
    full_ns = full;
    /* A patched module needs the callbacks of launches, so these come before those of modules. */
    int result = enable_launches();
    if (result == 0)
        result = api->enable_domain(1, subscriber, SAN_DOMAIN_RESOURCE);
    if (result != 0) {
        (void)set_launches(0);
        return result;
    }
    for (size_t i = 0; i < sizeof other_calls / sizeof other_calls[0]; i++)
        (void)api->enable_callback(1, subscriber, SAN_DOMAIN_DRIVER_API, other_calls[i]);
    (void)thread_start(run, "thread of the callbacks", NULL, &err);
    return 0;
}
