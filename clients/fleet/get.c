/* get.c: see get.h.
 *
 * Retried is what may be temporary: connection refused (a daemon that restarts), a connection that
 * ends before the response does, and the statuses 429, 502, 503 and 504. A retry does not help
 * after a deadline, a bad certificate or a bad response. A host whose GPU discovery is running is
 * asked again until its deadline.
 */
#include "clients/fleet/get.h"

#include "base/identity.h"
#include "base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    MOST_HEAD_BYTES = 64 << 10,
    FIRST_BODY_ROOM = 32 << 10,
    FIRST_PAUSE_MS = 100,
    DISCOVERY_PAUSE_MS = 500,
    SLACK_MS = 10, /* so that the deadline for all comes before that of a transfer */
    PATH_BYTES = 160,
    FIELD_BYTES = FLEET_ETAG_BYTES + 32,
    HTTP_OK = 200,
    HTTP_NOT_MODIFIED = 304,
    HTTP_NOT_FOUND = 404,
    HTTP_REFUSED = 400 /* from here on */
};

/* ---- what comes in ---- */

static size_t on_body(char *data, size_t size, size_t count, void *cls)
{
    struct get *const a = cls;
    const size_t bytes = size * count;
    size_t room = a->body_room ? a->body_room : FIRST_BODY_ROOM;

    if (bytes > a->settings->most_bytes - a->body_bytes) {
        a->too_large = true;
        return 0; /* curl ends the transfer */
    }
    while (room < a->body_bytes + bytes)
        room *= 2;
    if (room > a->body_room) {
        char *const grown = realloc(a->body, room);
        if (!grown)
            return 0;
        a->body = grown;
        a->body_room = room;
    }
    memcpy(a->body + a->body_bytes, data, bytes);
    a->body_bytes += bytes;
    return bytes;
}

/* A strong tag, as RFC 9110 section 8.8.3 writes it; others are of no use here. */
static void parse_etag(struct get *a, const char *value, size_t bytes)
{
    while (bytes > 0 && isspace((unsigned char)*value)) {
        value++;
        bytes--;
    }
    while (bytes > 0 && isspace((unsigned char)value[bytes - 1]))
        bytes--;
    if (bytes < 2 || bytes >= sizeof(a->etag) || value[0] != '"' || value[bytes - 1] != '"')
        return;
    for (size_t i = 0; i < bytes; i++) {
        if (value[i] <= ' ' || value[i] == 0x7f || (value[i] == '"' && i > 0 && i < bytes - 1))
            return;
    }
    memcpy(a->etag, value, bytes);
    a->etag[bytes] = '\0';
}

static size_t on_field(char *data, size_t size, size_t count, void *cls)
{
    static const char name[] = "etag:";
    struct get *const a = cls;
    const size_t bytes = size * count;

    a->head_bytes += bytes;
    if (a->head_bytes > MOST_HEAD_BYTES) {
        a->too_large = true;
        return 0;
    }
    if (bytes > sizeof(name) - 1 && strncasecmp(data, name, sizeof(name) - 1) == 0)
        parse_etag(a, data + sizeof(name) - 1, bytes - (sizeof(name) - 1));
    return bytes;
}

/* ---- the life of one ---- */

static void set_lasting_options(struct get *a)
{
    const struct {
        CURLoption option;
        long value;
    } numbers[] = {
        {CURLOPT_NOSIGNAL, 1},
        {CURLOPT_FOLLOWLOCATION, 0},
        {CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1},
        {CURLOPT_HTTP09_ALLOWED, 0},
        {CURLOPT_PATH_AS_IS, 1},
        {CURLOPT_NETRC, CURL_NETRC_IGNORED},
        {CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2},
        {CURLOPT_SSL_VERIFYPEER, 1},
        {CURLOPT_SSL_VERIFYHOST, 2},
        {CURLOPT_QUICK_EXIT, 1}, /* a DNS query that hangs does not delay the end */
    };

    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        curl_easy_setopt(a->curl, numbers[i].option, numbers[i].value);
    curl_easy_setopt(a->curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(a->curl, CURLOPT_PROXY, "");
    curl_easy_setopt(a->curl, CURLOPT_USERAGENT, "reachctl");
    curl_easy_setopt(a->curl, CURLOPT_ERRORBUFFER, a->error);
    curl_easy_setopt(a->curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(a->curl, CURLOPT_WRITEDATA, a);
    curl_easy_setopt(a->curl, CURLOPT_HEADERFUNCTION, on_field);
    curl_easy_setopt(a->curl, CURLOPT_HEADERDATA, a);
    curl_easy_setopt(a->curl, CURLOPT_PRIVATE, a);
    curl_easy_setopt(a->curl, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)a->settings->most_bytes);
    if (a->settings->ca_path) {
        curl_easy_setopt(a->curl, CURLOPT_CAINFO, a->settings->ca_path);
        curl_easy_setopt(a->curl, CURLOPT_CAPATH, NULL);
    }
}

bool get_open(struct get *out, const struct collect_settings *settings)
{
    *out = (struct get){.settings = settings, .curl = curl_easy_init()};
    if (out->curl)
        set_lasting_options(out);
    return out->curl != NULL;
}

void get_close(struct get *take)
{
    get_end(take);
    curl_easy_cleanup(take->curl);
    free(take->body);
    *take = (struct get){.curl = NULL};
}

void get_begin(struct get *a, uint32_t host, const char *name, const char *etag, nsec_t now,
               nsec_t all_deadline)
{
    const nsec_t own = now + a->settings->host_ms * NSEC_PER_MSEC;

    curl_easy_setopt(a->curl, CURLOPT_UNIX_SOCKET_PATH, hosts_url(name, a->url));
    a->host = host;
    a->began = now;
    a->again_at = now;
    a->deadline = own < all_deadline ? own : all_deadline;
    a->step = GET_ALL;
    a->gpu = 0;
    a->tries = 0;
    a->discovering = false;
    snprintf(a->sent_etag, sizeof(a->sent_etag), "%s", etag);
    a->result = (struct collect_result){.host = {.name = name,
                                                 .outcome = FLEET_ANSWERED,
                                                 .detail = a->result.detail,
                                                 .etag = a->result.etag}};
}

void get_end(struct get *a)
{
    json_decref(a->result.document);
    a->result.document = NULL;
    curl_slist_free_all(a->fields);
    a->fields = NULL;
}

/* ---- requests ---- */

enum status get_start(struct get *a, nsec_t now, struct err *err)
{
    char url[sizeof(a->url) + PATH_BYTES];
    char field[FIELD_BYTES];
    const nsec_t left = a->deadline > now ? a->deadline - now : 0;
    const bool conditional = a->step == GET_ALL && a->sent_etag[0];

    if (a->step == GET_FINGERPRINT) /* by index: it needs no escape */
        snprintf(url, sizeof(url), "%s/v1/gpus/%u/fingerprint", a->url, a->gpu);
    else
        snprintf(url, sizeof(url), "%s/v1/%s", a->url,
                 a->step == GET_ALL ? "fingerprints" : "gpus");
    snprintf(field, sizeof(field), "If-None-Match: %s", a->sent_etag);
    curl_slist_free_all(a->fields);
    a->fields = conditional ? curl_slist_append(NULL, field) : NULL;
    a->body_bytes = 0;
    a->head_bytes = 0;
    a->too_large = false;
    a->etag[0] = '\0';
    a->error[0] = '\0';
    a->tries++;
    a->result.host.attempts++;
    curl_easy_setopt(a->curl, CURLOPT_HTTPHEADER, a->fields);
    curl_easy_setopt(a->curl, CURLOPT_TIMEOUT_MS, (long)(left / NSEC_PER_MSEC) + SLACK_MS);
    if ((conditional && !a->fields) || curl_easy_setopt(a->curl, CURLOPT_URL, url) != CURLE_OK)
        return err_set(err, STATUS_NO_MEMORY, "no memory for a request");
    return STATUS_OK;
}

/* ---- answers ---- */

/* Ends the host without an answer. Returns true: below, the functions return true when the host has
 * ended. */
static bool end_with(struct get *a, enum fleet_outcome outcome, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool end_with(struct get *a, enum fleet_outcome outcome, const char *format, ...)
{
    va_list args;

    a->result.host.outcome = outcome;
    va_start(args, format);
    vsnprintf(a->result.detail, sizeof(a->result.detail), format, args);
    va_end(args);
    text_sanitize(a->result.detail);
    json_decref(a->result.document);
    a->result.document = NULL;
    a->result.etag[0] = '\0';
    return true;
}

void get_expire(struct get *a, nsec_t now)
{
    a->result.host.elapsed_ms = (uint32_t)((now - a->began) / NSEC_PER_MSEC);
    end_with(a, FLEET_TIMEOUT,
             a->discovering ? "GPU discovery was still running after %u ms"
                            : "no answer within %u ms",
             a->result.host.elapsed_ms);
}

static enum fleet_outcome outcome_of(const struct get *a, CURLcode code)
{
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_URL_MALFORMAT:
        return FLEET_NO_NAME;
    case CURLE_COULDNT_CONNECT:
        return FLEET_REFUSED;
    case CURLE_OPERATION_TIMEDOUT:
        return FLEET_TIMEOUT;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_INVALIDCERTSTATUS:
        return FLEET_TLS_ERROR;
    case CURLE_FILESIZE_EXCEEDED:
        return FLEET_TOO_LARGE;
    default:
        return a->too_large ? FLEET_TOO_LARGE : FLEET_BAD_RESPONSE;
    }
}

/* Begins another step; its first request is due at once. */
static bool next_step(struct get *a, int step, nsec_t now)
{
    a->step = step;
    a->tries = 0;
    a->again_at = now;
    return false;
}

/* A pause that doubles, and lies anywhere between half and one and a half of that, so that hosts
 * that failed together are not retried together. `at_least_ms` is Retry-After. False: no time or no
 * attempt is left. */
static bool may_pause(struct get *a, uint64_t at_least_ms, struct rng *rng, nsec_t now)
{
    const uint64_t middle = (uint64_t)FIRST_PAUSE_MS << (a->tries < 8 ? a->tries - 1 : 7);
    uint64_t ms = middle / 2 + rng_below(rng, middle);

    ms = ms > at_least_ms ? ms : at_least_ms;
    if (a->tries >= a->settings->attempts || now + ms * NSEC_PER_MSEC >= a->deadline)
        return false;
    a->again_at = now + ms * NSEC_PER_MSEC;
    return true;
}

static bool on_failure(struct get *a, CURLcode code, struct rng *rng, nsec_t now)
{
    const enum fleet_outcome outcome = outcome_of(a, code);
    const bool cut = code == CURLE_GOT_NOTHING || code == CURLE_RECV_ERROR ||
                     code == CURLE_SEND_ERROR || code == CURLE_PARTIAL_FILE;

    if ((outcome == FLEET_REFUSED || outcome == FLEET_NO_NAME || cut) && may_pause(a, 0, rng, now))
        return false;
    if (outcome == FLEET_TOO_LARGE)
        return end_with(a, outcome, "the response exceeds %u bytes",
                        a->head_bytes > MOST_HEAD_BYTES ? (unsigned)MOST_HEAD_BYTES
                                                        : a->settings->most_bytes);
    return end_with(a, outcome, "%s", a->error[0] ? a->error : curl_easy_strerror(code));
}

static bool is_type(const struct get *a, const char *wanted)
{
    const size_t n = strlen(wanted);
    char *type = NULL;

    curl_easy_getinfo(a->curl, CURLINFO_CONTENT_TYPE, &type);
    return type && strncasecmp(type, wanted, n) == 0 && (type[n] == '\0' || type[n] == ';');
}

/* A status that reports an error. */
static bool on_refusal(struct get *a, long status, struct rng *rng, nsec_t now)
{
    const bool may_pass = status == 429 || status == 502 || status == 503 || status == 504;
    curl_off_t wait_s = 0;
    json_t *problem;
    const char *title;

    if (status == HTTP_NOT_FOUND && a->step == GET_ALL && is_type(a, "application/problem+json"))
        return next_step(a, GET_GPUS, now); /* a daemon that is older than /v1/fingerprints */
    curl_easy_getinfo(a->curl, CURLINFO_RETRY_AFTER, &wait_s);
    if (may_pass && wait_s >= 0 && wait_s < UINT32_MAX &&
        may_pause(a, (uint64_t)wait_s * 1000, rng, now))
        return false;
    problem = a->body_bytes ? json_loadb(a->body, a->body_bytes, 0, NULL) : NULL;
    title = json_string_value(json_object_get(problem, "title"));
    end_with(a, FLEET_ERROR, "HTTP %ld%s%.150s", status, title ? ": " : "", title ? title : "");
    json_decref(problem);
    return true;
}

/* From GPU number `from` on: the next one with a fingerprint, or the end. */
static bool next_fingerprint(struct get *a, uint32_t from, nsec_t now)
{
    const json_t *const gpus = json_object_get(a->result.document, "gpus");

    for (a->gpu = from; a->gpu < json_array_size(gpus); a->gpu++) {
        if (json_is_string(json_object_get(json_array_get(gpus, a->gpu), "fingerprint_id")))
            return next_step(a, GET_FINGERPRINT, now);
    }
    return true;
}

/* The driver of the host has not answered yet, so its list is not complete. */
static bool on_discovery(struct get *a, struct rng *rng, nsec_t now)
{
    const uint64_t ms = DISCOVERY_PAUSE_MS / 2 + rng_below(rng, DISCOVERY_PAUSE_MS);

    a->discovering = true;
    a->tries = 0; /* it answered */
    a->again_at = now + ms * NSEC_PER_MSEC;
    if (a->again_at < a->deadline)
        return false;
    get_expire(a, now);
    return true;
}

/* Takes the document, or a part of one that an older daemon gives in parts. */
static bool on_document(struct get *a, json_t *take, nsec_t now)
{
    if (a->step == GET_FINGERPRINT) {
        json_t *const gpus = json_object_get(a->result.document, "gpus");
        if (json_object_set_new(json_array_get(gpus, a->gpu), "fingerprint", take) != 0)
            return end_with(a, FLEET_BAD_RESPONSE, "an item of its list is not a GPU");
        return next_fingerprint(a, a->gpu + 1, now);
    }
    a->result.document = take;
    if (a->step == GET_ALL) {
        memcpy(a->result.etag, a->etag, sizeof(a->etag));
        return true;
    }
    if (json_array_size(json_object_get(take, "gpus")) > REACH_MAX_GPUS)
        return end_with(a, FLEET_BAD_RESPONSE, "it lists more than %d GPUs", REACH_MAX_GPUS);
    return next_fingerprint(a, 0, now);
}

static bool on_answer(struct get *a, struct rng *rng, nsec_t now)
{
    const char *discovery;
    json_error_t why;
    json_t *document;
    long status = 0;

    curl_easy_getinfo(a->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status == HTTP_NOT_MODIFIED && a->step == GET_ALL && a->sent_etag[0]) {
        a->result.host.outcome = FLEET_UNCHANGED;
        memcpy(a->result.etag, a->sent_etag, sizeof(a->sent_etag));
        return true;
    }
    if (status >= HTTP_REFUSED)
        return on_refusal(a, status, rng, now);
    if (status != HTTP_OK)
        return end_with(a, FLEET_BAD_RESPONSE, "unexpected HTTP status %ld", status);
    if (!is_type(a, "application/json"))
        return end_with(a, FLEET_BAD_RESPONSE, "the response is not application/json");
    document = json_loadb(a->body ? a->body : "", a->body_bytes, JSON_REJECT_DUPLICATES, &why);
    if (!document)
        return end_with(a, FLEET_BAD_RESPONSE, "the response is not JSON: line %d: %s", why.line,
                        why.text);
    discovery = json_string_value(json_object_get(document, "discovery"));
    if (a->step != GET_FINGERPRINT && discovery && strcmp(discovery, "running") == 0) {
        json_decref(document);
        return on_discovery(a, rng, now);
    }
    a->discovering = false;
    return on_document(a, document, now);
}

enum status get_done(struct get *a, CURLcode code, struct rng *rng, nsec_t now, bool *out_ended,
                     struct err *err)
{
    curl_off_t body = 0;
    long head = 0;

    if (code == CURLE_OUT_OF_MEMORY)
        return err_set(err, STATUS_NO_MEMORY, "no memory for a request");
    if (code == CURLE_SSL_CACERT_BADFILE)
        return err_set(err, STATUS_INVALID_ARGUMENT, "the certificates cannot be used: %s",
                       a->error);
    curl_easy_getinfo(a->curl, CURLINFO_SIZE_DOWNLOAD_T, &body);
    curl_easy_getinfo(a->curl, CURLINFO_HEADER_SIZE, &head);
    a->result.host.received_bytes += (uint64_t)body + (uint64_t)head;
    a->result.host.elapsed_ms = (uint32_t)((now - a->began) / NSEC_PER_MSEC);
    *out_ended = code == CURLE_OK ? on_answer(a, rng, now) : on_failure(a, code, rng, now);
    return STATUS_OK;
}
