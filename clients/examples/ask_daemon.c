/* ask_daemon.c: see ask_daemon.h. GET, check the status, take the fields out of the document. */
#include "ask_daemon.h"

#include <curl/curl.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_SECONDS = 10, URL_BYTES = 512, MAX_BODY_BYTES = 4 << 20, HTTP_OK = 200 };

struct body {
    char *text;
    size_t length;
};

__attribute__((format(printf, 2, 3))) static bool fail(char *why, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(why, ASK_TEXT_BYTES, format, args);
    va_end(args);
    return false;
}

/* ---- HTTP --------------------------------------------------------------------------------- */

static size_t take_bytes(char *bytes, size_t size, size_t count, void *user)
{
    struct body *body = user;
    const size_t n = size * count;

    if (body->length + n > MAX_BODY_BYTES)
        return 0;
    char *text = realloc(body->text, body->length + n + 1);

    if (!text)
        return 0;
    memcpy(text + body->length, bytes, n);
    body->text = text;
    body->length += n;
    text[body->length] = '\0';
    return n;
}

/* The daemon says what went wrong and what to do next (RFC 9457); pass both on. */
static bool fail_with_problem(long http_status, const json_t *problem, char *why)
{
    const char *detail = json_string_value(json_object_get(problem, "detail"));
    const char *next_step = json_string_value(json_object_get(problem, "next_step"));

    return fail(why, "the daemon answers %ld: %.250s%s%.200s", http_status,
                detail ? detail : "(no reason given)", next_step ? ". " : "",
                next_step ? next_step : "");
}

/* GET `path`; the caller owns the document. NULL, and `why`, where there is none. */
static json_t *get(const struct ask_daemon *daemon, const char *path, char *why)
{
    const char *host = daemon->socket ? "http://localhost" : daemon->url;
    CURL *curl = curl_easy_init();
    struct body body = {.text = NULL};
    json_t *document = NULL;
    char url[URL_BYTES];
    long http_status = 0;

    if (!curl) {
        fail(why, "libcurl does not start");
        return NULL;
    }
    snprintf(url, sizeof url, "%s%s", host, path);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, daemon->socket);
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*"); /* the daemon is on this node */
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)TIMEOUT_SECONDS);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_bytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &body);
    const CURLcode code = curl_easy_perform(curl);

    if (code != CURLE_OK) {
        fail(why, "no daemon at %s: %s. Start it with reachd, or name it with --url or --socket",
             daemon->socket ? daemon->socket : daemon->url, curl_easy_strerror(code));
        goto out;
    }
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &http_status);
    document = json_loadb(body.text ? body.text : "", body.length, JSON_REJECT_DUPLICATES, NULL);
    if (http_status != HTTP_OK) {
        fail_with_problem(http_status, document, why);
        json_decref(document);
        document = NULL;
    } else if (!document) {
        fail(why, "what answers at %s is not reachd: no JSON", url);
    }
out:
    free(body.text);
    curl_easy_cleanup(curl);
    return document;
}

static json_t *get_of_gpu(const struct ask_daemon *daemon, const char *gpu, const char *what,
                          uint64_t bytes, char *why)
{
    char path[URL_BYTES / 2];

    if (bytes)
        snprintf(path, sizeof path, "/v1/gpus/%.100s/%s?bytes=%llu", gpu, what,
                 (unsigned long long)bytes);
    else
        snprintf(path, sizeof path, "/v1/gpus/%.100s/%s", gpu, what);
    return get(daemon, path, why);
}

/* ---- JSON --------------------------------------------------------------------------------- */

static void take_text(const json_t *object, const char *name, char *out, size_t size)
{
    const char *text = json_string_value(json_object_get(object, name));

    snprintf(out, size, "%s", text ? text : "");
}

static uint64_t take_size(const json_t *object, const char *name)
{
    const json_int_t n = json_integer_value(json_object_get(object, name));

    return n > 0 ? (uint64_t)n : 0;
}

/* null, with its reason beside it, is what the daemon says of a number it does not know. */
static double take_number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

/* An array with one element for each SM id: a window, or null for an SM that gets no work. */
static bool take_window_of_sm(const json_t *array, struct ask_placement *out, char *why)
{
    const size_t count = json_array_size(array);

    if (count == 0 || count > ASK_MAX_SMS)
        return fail(why, "the placement speaks of %zu SMs", count);
    for (size_t sm = 0; sm < count; sm++) {
        const json_t *window = json_array_get(array, sm);
        const json_int_t w = json_is_integer(window) ? json_integer_value(window) : ASK_NO_WINDOW;

        if (w < ASK_NO_WINDOW || w >= (json_int_t)out->window_count)
            return fail(why, "the placement sends SM %zu to a window that it does not have", sm);
        out->window_of_sm[sm] = (int16_t)w;
    }
    out->sm_slots = (uint32_t)count;
    return true;
}

static bool take_windows(const json_t *array, uint64_t bytes, struct ask_placement *out, char *why)
{
    const size_t count = json_array_size(array);

    if (count == 0)
        return fail(why, "not applicable (%s): %.400s", out->advice, out->reason);
    if (count > ASK_MAX_WINDOWS)
        return fail(why, "the placement has %zu windows", count);
    for (size_t i = 0; i < count; i++) {
        const json_t *window = json_array_get(array, i);
        struct ask_window *w = &out->windows[i];

        w->first_byte = take_size(window, "first_byte");
        w->length_bytes = take_size(window, "length_bytes");
        if (w->length_bytes == 0 || w->first_byte > bytes ||
            w->length_bytes > bytes - w->first_byte)
            return fail(why, "window %zu of the placement does not lie in the allocation", i);
    }
    out->window_count = (uint32_t)count;
    return true;
}

static bool take_groups(const json_t *groups, struct ask_chip *out, char *why)
{
    for (size_t sm = 0; sm < ASK_MAX_SMS; sm++)
        out->group_of_sm[sm] = ASK_NO_GROUP;
    for (size_t g = 0; g < json_array_size(groups); g++) {
        const json_t *sms = json_object_get(json_array_get(groups, g), "sms");

        for (size_t i = 0; i < json_array_size(sms); i++) {
            const json_int_t sm = json_integer_value(json_array_get(sms, i));

            if (sm < 0 || sm >= ASK_MAX_SMS)
                return fail(why, "the fingerprint speaks of SM %lld", (long long)sm);
            out->group_of_sm[sm] = (int16_t)g;
        }
    }
    return true;
}

/* ---- the three questions -------------------------------------------------------------------- */

bool ask_scope(const struct ask_daemon *daemon, const char *gpu, uint64_t bytes,
               struct ask_scope *out, char *why)
{
    json_t *answer = get_of_gpu(daemon, gpu, "scope", bytes, why);

    memset(out, 0, sizeof *out);
    if (!answer)
        return false;
    take_text(answer, "advice", out->advice, sizeof out->advice);
    out->scope_bytes = take_size(answer, "scope_bytes");
    out->passes = take_size(answer, "passes");
    json_decref(answer);
    return true;
}

bool ask_placement(const struct ask_daemon *daemon, const char *gpu, uint64_t bytes,
                   struct ask_placement *out, char *why)
{
    json_t *answer = get_of_gpu(daemon, gpu, "placement", bytes, why);

    memset(out, 0, sizeof *out);
    if (!answer)
        return false;
    take_text(answer, "advice", out->advice, sizeof out->advice);
    take_text(answer, "reason", out->reason, sizeof out->reason);
    take_text(answer, "fingerprint_id", out->fingerprint_id, sizeof out->fingerprint_id);
    take_text(answer, "origin", out->origin, sizeof out->origin);
    out->with_gbps = take_number(answer, "with_gbps");
    out->without_gbps = take_number(answer, "without_gbps");
    const bool usable = take_windows(json_object_get(answer, "windows"), bytes, out, why) &&
                        take_window_of_sm(json_object_get(answer, "window_of_sm"), out, why);

    json_decref(answer);
    return usable;
}

bool ask_chip(const struct ask_daemon *daemon, const char *gpu, struct ask_chip *out, char *why)
{
    json_t *answer = get_of_gpu(daemon, gpu, "fingerprint", 0, why);

    memset(out, 0, sizeof *out);
    if (!answer)
        return false;
    const json_t *id = json_object_get(answer, "gpu");

    take_text(id, "name", out->name, sizeof out->name);
    take_text(id, "uuid", out->uuid, sizeof out->uuid);
    out->memory_bytes = take_size(id, "memory_bytes");
    out->plateau_gbps = take_number(json_object_get(answer, "throughput"), "plateau_gbps");
    const bool usable =
        take_groups(json_object_get(json_object_get(answer, "topology"), "groups"), out, why);

    json_decref(answer);
    return usable;
}
