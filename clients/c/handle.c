/* handle.c: opening and closing, what may be set, and the checks of an answer that ask nobody. */
#include "clients/c/handle.h"

#include "clients/c/job.h"
#include "clients/c/cache.h"
#include "clients/c/offline.h"
#include "clients/c/http.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static const char DEFAULT_SOCKET[] = "/run/reachd/reachd.sock";
static const char DEFAULT_URL[] = "http://127.0.0.1:17322";

enum { DEFAULT_DEADLINE_MS = 5000, MAX_DEADLINE_MS = 3600000, SOCKET_PATH_BYTES = 108 };

const char *reach_version(void)
{
    return REACHD_VERSION;
}

/* ---- whom to ask ---- */

/* The rest behind the prefix, or NULL. */
static const char *behind(const char *text, const char *prefix)
{
    const size_t length = strlen(prefix);

    return strncasecmp(text, prefix, length) == 0 ? text + length : NULL;
}

static enum reach_status open_socket(struct reach *reach, const char *path,
                                     struct reach_error *error)
{
    if (*path != '/' || strlen(path) >= SOCKET_PATH_BYTES)
        return fail_with(error, REACH_INVALID_ARGUMENT,
                         "unix: needs an absolute path of at most %d bytes, not \"%.100s\"",
                         SOCKET_PATH_BYTES - 1, path);
    return wire_new("http://localhost", path, &reach->wire, error);
}

static enum reach_status open_url(struct reach *reach, const char *url, struct reach_error *error)
{
    char base[WIRE_PATH_BYTES];
    size_t length = strlen(url);

    while (length > 0 && url[length - 1] == '/')
        length--;
    if (length >= sizeof(base) || strcspn(url, " ?#") < length)
        return fail_with(error, REACH_INVALID_ARGUMENT,
                         "\"%.100s\" is no URL of a daemon; one looks like %s", url, DEFAULT_URL);
    snprintf(base, sizeof(base), "%.*s", (int)length, url);
    return wire_new(base, NULL, &reach->wire, error);
}

static enum reach_status open_default(struct reach *reach, struct reach_error *error)
{
    struct stat st;

    if (stat(DEFAULT_SOCKET, &st) == 0 && S_ISSOCK(st.st_mode) && access(DEFAULT_SOCKET, W_OK) == 0)
        return open_socket(reach, DEFAULT_SOCKET, error);
    return open_url(reach, DEFAULT_URL, error);
}

static enum reach_status open_named(struct reach *reach, const char *where,
                                    struct reach_error *error)
{
    const char *rest;

    if ((rest = behind(where, "unix:")))
        return open_socket(reach, strncmp(rest, "//", 2) == 0 ? rest + 2 : rest, error);
    if ((rest = behind(where, "env:")))
        return *rest ? fail_with(error, REACH_INVALID_ARGUMENT, "env: takes nothing behind it")
                     : job_new(JOB_MUST, &reach->job, error);
    if (behind(where, "http://") || behind(where, "https://"))
        return open_url(reach, where, error);
    if ((rest = behind(where, "file:"))) {
        const char *path = strncmp(rest, "//", 2) == 0 ? rest + 2 : rest;
        return *path ? offline_new(path, &reach->offline, error)
                     : fail_with(error, REACH_INVALID_ARGUMENT, "file: needs a path");
    }
    return fail_with(error, REACH_INVALID_ARGUMENT,
                     "\"%.100s\" is not whom to ask: unix:/path, http://host:port, file:/path "
                     "or env:",
                     where);
}

/* Where the caller names nobody, what the scheduler asked for this job comes before any daemon. */
static enum reach_status open_where(struct reach *reach, const char *where,
                                    struct reach_error *error)
{
    enum reach_status status = REACH_OK;
    const char *url;

    if (where && *where)
        return open_named(reach, where, error);
    url = getenv("REACHD_URL");
    if (!url || !*url)
        url = NULL;
    if (!url || (!behind(url, "file:") && !behind(url, "env:")))
        status = job_new(JOB_IF_ANY, &reach->job, error);
    if (status != REACH_OK)
        return status;
    return url ? open_named(reach, url, error) : open_default(reach, error);
}

enum reach_status reach_open(const char *where, struct reach **out, struct reach_error *error)
{
    enum reach_status status;
    struct reach *reach;

    if (!out)
        return fail_with(error, REACH_INVALID_ARGUMENT, "reach_open needs a place for the handle");
    *out = NULL;
    reach = calloc(1, sizeof(*reach));
    if (!reach)
        return fail_with(error, REACH_NO_MEMORY, "no memory for a handle");
    atomic_init(&reach->deadline_ms, DEFAULT_DEADLINE_MS);
    atomic_init(&reach->accept, REACH_ACCEPT_NOTHING);
    status = open_where(reach, where, error);
    if (status == REACH_OK && reach->wire && !(reach->kept = kept_new()))
        status = fail_with(error, REACH_NO_MEMORY, "no memory for a handle");
    if (status == REACH_OK)
        *out = reach;
    else
        reach_close(reach);
    return status;
}

void reach_close(struct reach *take)
{
    if (!take)
        return;
    kept_free(take->kept);
    wire_free(take->wire);
    job_free(take->job);
    offline_free(take->offline);
    free(take);
}

enum reach_status reach_set_deadline_ms(struct reach *reach, uint32_t deadline_ms,
                                        struct reach_error *error)
{
    if (!reach || deadline_ms == 0 || deadline_ms > MAX_DEADLINE_MS)
        return fail_with(error, REACH_INVALID_ARGUMENT, "a deadline is 1 to %d ms, not %u",
                         MAX_DEADLINE_MS, deadline_ms);
    atomic_store(&reach->deadline_ms, deadline_ms);
    return REACH_OK;
}

enum reach_status reach_accept(struct reach *reach, uint32_t accept, struct reach_error *error)
{
    if (!reach || (accept & ~(uint32_t)(REACH_ACCEPT_STALE | REACH_ACCEPT_KEPT)) != 0)
        return fail_with(error, REACH_INVALID_ARGUMENT,
                         "reach_accept takes REACH_ACCEPT_STALE and REACH_ACCEPT_KEPT, not %#x",
                         accept);
    atomic_store(&reach->accept, accept);
    return REACH_OK;
}

void reach_free(void *answer)
{
    free(answer);
}

/* ---- what an answer says of itself ---- */

uint64_t reach_age_ms(const struct reach_basis *basis)
{
    const uint64_t now_ms = clock_monotonic() / NSEC_PER_MSEC;

    return basis && now_ms > basis->confirmed_ms ? now_ms - basis->confirmed_ms : 0;
}

enum reach_status reach_basis_check(const struct reach_basis *basis, const char *gpu_uuid,
                                    struct reach_error *error)
{
    if (!basis || !gpu_uuid || !*gpu_uuid)
        return fail_with(error, REACH_INVALID_ARGUMENT,
                         "a check needs an answer and the UUID of the GPU in use");
    if (strcasecmp(basis->gpu_uuid, gpu_uuid) == 0)
        return REACH_OK;
    return fail_with(error, REACH_WRONG_GPU,
                     "this answer is for %s, and the GPU in use is %.60s: SM ids and groups differ "
                     "from chip to chip, so ask for that one",
                     basis->gpu_uuid, gpu_uuid);
}

enum reach_status reach_plan_check(const struct reach_plan *plan, const char *gpu_uuid,
                                   struct reach_error *error)
{
    return reach_basis_check(plan ? &plan->basis : NULL, gpu_uuid, error);
}

enum reach_status reach_window_of_sm(const struct reach_windows *windows, uint32_t sm,
                                     uint32_t *out_window, struct reach_error *error)
{
    int16_t window;

    if (!windows || !out_window)
        return fail_with(error, REACH_INVALID_ARGUMENT, "reach_window_of_sm needs a table");
    if (windows->window_count == 0)
        return fail_with(error, REACH_NO_WINDOW, "there are no windows in this answer");
    if (sm >= windows->sm_slots || sm >= REACH_SM_SLOTS)
        return fail_with(error, REACH_NO_SUCH_SM,
                         "SM %u is not in the table, which ends with SM %u: is it for another GPU?",
                         sm, windows->sm_slots - 1);
    window = windows->window_of_sm[sm];
    if (window < 0 || (uint32_t)window >= windows->window_count)
        return fail_with(error, REACH_NO_WINDOW, "SM %u is to get no work", sm);
    *out_window = (uint32_t)window;
    return REACH_OK;
}

char *reach_uuid_text(const unsigned char *bytes, bool mig, char *out)
{
    int at = snprintf(out, REACH_UUID_BYTES, "%s", mig ? "MIG" : "GPU");

    for (int i = 0; i < 16; i++)
        at += snprintf(out + at, REACH_UUID_BYTES - (size_t)at, "%s%02x",
                       i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", bytes[i]);
    return out;
}

/* ---- words ---- */

const char *reach_access_name(enum reach_access access)
{
    static const char *const names[] = {"read", "atomic", "write"};

    return (unsigned)access < sizeof(names) / sizeof(*names) ? names[access] : NULL;
}

const char *reach_strategy_name(enum reach_strategy strategy)
{
    static const char *const names[REACH_STRATEGY_COUNT] = {
        [REACH_NAIVE] = "naive",
        [REACH_SCOPES] = "scopes",
        [REACH_WINDOWS] = "windows",
        [REACH_FILTERED_WINDOWS] = "filtered-windows",
        [REACH_PARTITIONED_WINDOWS] = "partitioned-windows",
    };

    return (unsigned)strategy < REACH_STRATEGY_COUNT ? names[strategy] : NULL;
}
