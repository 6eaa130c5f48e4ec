/* handle.c: opens and closes a handle, its settings, and functions that need no source. */
#include "clients/c/handle.h"

#include "clients/c/answer_cache.h"
#include "clients/c/http.h"
#include "clients/c/offline.h"

#include "base/c_locale.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static const char DEFAULT_SOCKET[] = "/run/reachd/reachd.sock";
static const char DEFAULT_URL[] = "http://127.0.0.1:17322";

enum { DEFAULT_TIMEOUT_MS = 5000, MAX_TIMEOUT_MS = 3600000, SOCKET_PATH_BYTES = 108 };

const char *reach_version(void)
{
    return REACHD_VERSION;
}

/* ---- the source ---- */

/* Returns the text after the prefix, or NULL if the text has another beginning. Case is ignored. */
static const char *after(const char *text, const char *prefix)
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
    return http_new("http://localhost", path, &reach->http, error);
}

static enum reach_status open_url(struct reach *reach, const char *url, struct reach_error *error)
{
    char base[HTTP_TARGET_BYTES];
    size_t length = strlen(url);

    while (length > 0 && url[length - 1] == '/')
        length--;
    if (length >= sizeof(base) || strcspn(url, " ?#") < length)
        return fail_with(error, REACH_INVALID_ARGUMENT,
                         "\"%.100s\" is not the URL of a daemon, such as %s", url, DEFAULT_URL);
    snprintf(base, sizeof(base), "%.*s", (int)length, url);
    return http_new(base, NULL, &reach->http, error);
}

static enum reach_status open_default(struct reach *reach, struct reach_error *error)
{
    struct stat st;

    if (stat(DEFAULT_SOCKET, &st) == 0 && S_ISSOCK(st.st_mode) && access(DEFAULT_SOCKET, W_OK) == 0)
        return open_socket(reach, DEFAULT_SOCKET, error);
    return open_url(reach, DEFAULT_URL, error);
}

static enum reach_status open_named(struct reach *reach, const char *uri, struct reach_error *error)
{
    const char *rest;

    if ((rest = after(uri, "unix:")))
        return open_socket(reach, strncmp(rest, "//", 2) == 0 ? rest + 2 : rest, error);
    if ((rest = after(uri, "env:")))
        return *rest ? fail_with(error, REACH_INVALID_ARGUMENT, "env: takes no path")
                     : offline_open_environment(OFFLINE_REFUSE, &reach->offline, error);
    if (after(uri, "http://") || after(uri, "https://"))
        return open_url(reach, uri, error);
    if ((rest = after(uri, "file:"))) {
        const char *path = strncmp(rest, "//", 2) == 0 ? rest + 2 : rest;
        return *path ? offline_open_file(path, &reach->offline, error)
                     : fail_with(error, REACH_INVALID_ARGUMENT, "file: needs a path");
    }
    return fail_with(error, REACH_INVALID_ARGUMENT,
                     "\"%.100s\" is not a source: use unix:/path, http://host:port, file:/path "
                     "or env:",
                     uri);
}

static enum reach_status open_source(struct reach *reach, const char *uri,
                                     struct reach_error *error)
{
    enum reach_status status = REACH_OK;
    const char *named;

    named = getenv("REACHD_URL");
    if (named && !*named)
        named = NULL;
    if (uri && strcmp(uri, "daemon:") == 0)
        return named ? open_named(reach, named, error) : open_default(reach, error);
    if (uri && *uri)
        return open_named(reach, uri, error);
    if (!named || (!after(named, "file:") && !after(named, "env:")))
        status = offline_open_environment(OFFLINE_SKIP, &reach->offline, error);
    if (status != REACH_OK || reach->offline)
        return status;
    return named ? open_named(reach, named, error) : open_default(reach, error);
}

enum reach_status reach_open(const char *uri, struct reach **out, struct reach_error *error)
{
    C_LOCALE_HERE;
    enum reach_status status;
    struct reach *reach;

    if (!out)
        return fail_with(error, REACH_INVALID_ARGUMENT, "reach_open needs a place for the handle");
    *out = NULL;
    reach = calloc(1, sizeof(*reach));
    if (!reach)
        return fail_with(error, REACH_NO_MEMORY, "cannot allocate a handle: out of memory");
    atomic_init(&reach->timeout_ms, DEFAULT_TIMEOUT_MS);
    atomic_init(&reach->allow, REACH_ALLOW_NOTHING);
    status = open_source(reach, uri, error);
    if (status == REACH_OK && reach->http && !(reach->cache = answer_cache_new()))
        status = fail_with(error, REACH_NO_MEMORY, "cannot allocate a handle: out of memory");
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
    answer_cache_free(take->cache);
    http_free(take->http);
    offline_free(take->offline);
    free(take);
}

enum reach_status reach_set_timeout_ms(struct reach *reach, uint32_t timeout_ms,
                                       struct reach_error *error)
{
    if (!reach || timeout_ms == 0 || timeout_ms > MAX_TIMEOUT_MS)
        return fail_with(error, REACH_INVALID_ARGUMENT, "a timeout is 1 to %d ms, not %u",
                         MAX_TIMEOUT_MS, timeout_ms);
    atomic_store(&reach->timeout_ms, timeout_ms);
    return REACH_OK;
}

enum reach_status reach_allow(struct reach *reach, uint32_t allow, struct reach_error *error)
{
    if (!reach ||
        (allow & ~(uint32_t)(REACH_ALLOW_STALE | REACH_ALLOW_CACHED | REACH_ALLOW_DISCOVERY)) != 0)
        return fail_with(error, REACH_INVALID_ARGUMENT,
                         "reach_allow takes values of enum reach_allow, or-ed, not %#x", allow);
    atomic_store(&reach->allow, allow);
    return REACH_OK;
}

void reach_free(void *take)
{
    free(take);
}

/* ---- checks and names that need no source ---- */

enum reach_status reach_window_of_sm(const struct reach_windows *windows, uint32_t sm,
                                     uint32_t *out_window, struct reach_error *error)
{
    int16_t window;

    if (!windows || !out_window)
        return fail_with(error, REACH_INVALID_ARGUMENT, "reach_window_of_sm needs a table");
    if (windows->window_count == 0)
        return fail_with(error, REACH_NO_WINDOW, "this answer has no windows");
    if (sm >= windows->sm_slots)
        return fail_with(
            error, REACH_NO_SUCH_SM,
            "SM %u is not in the table, which ends with SM %u; the table may be for another GPU",
            sm, windows->sm_slots - 1);
    window = windows->window_of_sm[sm];
    if (window < 0 || (uint32_t)window >= windows->window_count)
        return fail_with(error, REACH_NO_WINDOW, "SM %u gets no work", sm);
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
    return (unsigned)access < ACCESS_COUNT ? access_name((enum access)access) : NULL;
}

const char *reach_strategy_name(enum reach_strategy strategy)
{
    return (unsigned)strategy < STRATEGY_COUNT ? strategy_name((enum strategy)strategy) : NULL;
}

const char *reach_origin_name(enum reach_origin origin)
{
    const unsigned value = (unsigned)origin - 1;

    return value <= ORIGIN_IMPORTED ? origin_name((enum origin)value) : NULL;
}

const char *reach_advice_name(enum reach_advice advice)
{
    const unsigned value = (unsigned)advice - 1;

    return value <= ADVICE_NOT_ENOUGH_GROUPS ? advice_name((enum advice)value) : NULL;
}

enum reach_status handle_check(const struct reach *reach, const char *gpu, bool has_out,
                               struct reach_error *error)
{
    static const char GOOD[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

    if (!reach || !has_out)
        return fail_with(error, REACH_INVALID_ARGUMENT,
                         "a request needs a handle and a place for the answer");
    if (gpu && *gpu && strlen(gpu) < REACH_UUID_BYTES && gpu[strspn(gpu, GOOD)] == '\0')
        return REACH_OK;
    return fail_with(error, REACH_INVALID_ARGUMENT,
                     "a GPU is named by its UUID or its index, not by \"%.80s\"",
                     gpu ? gpu : "(NULL)");
}
