/* ask.c: see ask.h.
 *
 * What may pass is asked for again: nobody listens (a daemon that restarts), a connection that ends
 * before the answer does, and the statuses that say so themselves (429, 502, 503, 504). A deadline
 * that is over, a certificate, an answer that is none do not get better by asking again. A host
 * whose driver has not yet answered which GPUs there are is asked as often as its time allows.
 */
#include "clients/fleet/ask.h"

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
    FIELD_BYTES = COLLECT_ETAG_BYTES + 32,
    HTTP_OK = 200,
    HTTP_NOT_MODIFIED = 304,
    HTTP_NOT_FOUND = 404,
    HTTP_REFUSED = 400 /* from here on */
};

/* ---- what comes in ---- */

static size_t on_body(char *data, size_t size, size_t count, void *cls)
{
    struct ask *const a = cls;
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
static void take_etag(struct ask *a, const char *value, size_t bytes)
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
    struct ask *const a = cls;
    const size_t bytes = size * count;

    a->head_bytes += bytes;
    if (a->head_bytes > MOST_HEAD_BYTES) {
        a->too_large = true;
        return 0;
    }
    if (bytes > sizeof(name) - 1 && strncasecmp(data, name, sizeof(name) - 1) == 0)
        take_etag(a, data + sizeof(name) - 1, bytes - (sizeof(name) - 1));
    return bytes;
}

/* ---- the life of one ---- */

static void set_lasting_options(struct ask *a)
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
        {CURLOPT_QUICK_EXIT, 1}, /* a look-up that hangs does not hold up the end */
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

bool ask_open(struct ask *out, const struct collect_settings *settings)
{
    *out = (struct ask){.settings = settings, .curl = curl_easy_init()};
    if (out->curl)
        set_lasting_options(out);
    return out->curl != NULL;
}

void ask_close(struct ask *take)
{
    ask_end(take);
    curl_easy_cleanup(take->curl);
    free(take->body);
    *take = (struct ask){.curl = NULL};
}

void ask_begin(struct ask *a, uint32_t host, const char *name, const char *etag, nsec_t now,
               nsec_t all_deadline)
{
    const nsec_t own = now + a->settings->host_ms * NSEC_PER_MSEC;

    a->host = host;
    a->socket_path = hosts_url(name, a->url);
    a->began = now;
    a->deadline = own < all_deadline ? own : all_deadline;
    a->step = ASK_ALL;
    a->gpu = 0;
    a->tries = 0;
    a->discovering = false;
    snprintf(a->sent_etag, sizeof(a->sent_etag), "%s", etag);
    a->result = (struct collect_result){.outcome = FLEET_ANSWERED};
    curl_easy_setopt(a->curl, CURLOPT_UNIX_SOCKET_PATH, a->socket_path);
}

void ask_end(struct ask *a)
{
    json_decref(a->result.document);
    a->result.document = NULL;
    curl_slist_free_all(a->fields);
    a->fields = NULL;
}

/* ---- requests ---- */

static const json_t *gpu_at(const struct ask *a, uint32_t i)
{
    return json_array_get(json_object_get(a->result.document, "gpus"), i);
}

static void path_of(const struct ask *a, char *out)
{
    static const char *const paths[] = {[ASK_ALL] = "/v1/fingerprints", [ASK_GPUS] = "/v1/gpus"};

    if (a->step == ASK_FINGERPRINT) /* by index: it needs no escape */
        snprintf(out, PATH_BYTES, "/v1/gpus/%u/fingerprint", a->gpu);
    else
        snprintf(out, PATH_BYTES, "%s", paths[a->step]);
}

enum status ask_start(struct ask *a, nsec_t now, struct err *err)
{
    char url[sizeof(a->url) + PATH_BYTES];
    char path[PATH_BYTES];
    char field[FIELD_BYTES];
    const nsec_t left = a->deadline > now ? a->deadline - now : 0;
    struct curl_slist *fields = NULL;

    path_of(a, path);
    snprintf(url, sizeof(url), "%s%s", a->url, path);
    if (a->step == ASK_ALL && a->sent_etag[0]) {
        snprintf(field, sizeof(field), "If-None-Match: %s", a->sent_etag);
        fields = curl_slist_append(NULL, field);
        if (!fields)
            return err_set(err, STATUS_NO_MEMORY, "no memory to ask a host");
    }
    curl_slist_free_all(a->fields);
    a->fields = fields;
    a->body_bytes = 0;
    a->head_bytes = 0;
    a->too_large = false;
    a->etag[0] = '\0';
    a->error[0] = '\0';
    a->tries++;
    a->result.attempts++;
    curl_easy_setopt(a->curl, CURLOPT_HTTPHEADER, fields);
    curl_easy_setopt(a->curl, CURLOPT_TIMEOUT_MS, (long)(left / NSEC_PER_MSEC) + SLACK_MS);
    return curl_easy_setopt(a->curl, CURLOPT_URL, url) == CURLE_OK
               ? STATUS_OK
               : err_set(err, STATUS_NO_MEMORY, "no memory to ask a host");
}

/* ---- answers ---- */

static enum ask_next end_with(struct ask *a, enum fleet_outcome outcome, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static enum ask_next end_with(struct ask *a, enum fleet_outcome outcome, const char *format, ...)
{
    va_list args;

    a->result.outcome = outcome;
    va_start(args, format);
    vsnprintf(a->result.detail, sizeof(a->result.detail), format, args);
    va_end(args);
    text_tidy(a->result.detail);
    json_decref(a->result.document);
    a->result.document = NULL;
    a->result.etag[0] = '\0';
    return ASK_ENDED;
}

void ask_expire(struct ask *a, nsec_t now)
{
    a->result.elapsed_ms = (uint32_t)((now - a->began) / NSEC_PER_MSEC);
    end_with(a, FLEET_TIMEOUT,
             a->discovering ? "GPU discovery was still running after %u ms"
                            : "no answer within %u ms",
             a->result.elapsed_ms);
}

static enum fleet_outcome outcome_of(const struct ask *a, CURLcode code)
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
        return FLEET_UNTRUSTED;
    case CURLE_FILESIZE_EXCEEDED:
        return FLEET_TOO_LARGE;
    default:
        return a->too_large ? FLEET_TOO_LARGE : FLEET_GARBAGE;
    }
}

/* A pause that doubles, and lies anywhere between half and one and a half of that, so that hosts
 * that failed together are not asked together. `at_least_ms` is what the host asked for. False:
 * there is no time or no attempt left. */
static bool may_pause(struct ask *a, uint64_t at_least_ms, struct rng *rng, nsec_t now)
{
    const uint64_t middle = (uint64_t)FIRST_PAUSE_MS << (a->tries < 8 ? a->tries - 1 : 7);
    uint64_t ms = middle / 2 + rng_below(rng, middle);

    ms = ms > at_least_ms ? ms : at_least_ms;
    if (a->tries >= a->settings->attempts || now + ms * NSEC_PER_MSEC >= a->deadline)
        return false;
    a->again_at = now + ms * NSEC_PER_MSEC;
    return true;
}

static enum ask_next on_failure(struct ask *a, CURLcode code, struct rng *rng, nsec_t now)
{
    const enum fleet_outcome outcome = outcome_of(a, code);
    const bool cut = code == CURLE_GOT_NOTHING || code == CURLE_RECV_ERROR ||
                     code == CURLE_SEND_ERROR || code == CURLE_PARTIAL_FILE;

    if ((outcome == FLEET_REFUSED || outcome == FLEET_NO_NAME || cut) && may_pause(a, 0, rng, now))
        return ASK_PAUSE;
    if (outcome == FLEET_TOO_LARGE)
        return end_with(a, outcome, "the answer is larger than %u bytes, which no daemon's is",
                        a->head_bytes > MOST_HEAD_BYTES ? (unsigned)MOST_HEAD_BYTES
                                                        : a->settings->most_bytes);
    return end_with(a, outcome, "%s", a->error[0] ? a->error : curl_easy_strerror(code));
}

static bool is_type(const struct ask *a, const char *wanted)
{
    const size_t n = strlen(wanted);
    char *type = NULL;

    curl_easy_getinfo(a->curl, CURLINFO_CONTENT_TYPE, &type);
    return type && strncasecmp(type, wanted, n) == 0 && (type[n] == '\0' || type[n] == ';');
}

/* A status that says that something is wrong. */
static enum ask_next on_refusal(struct ask *a, long status, struct rng *rng, nsec_t now)
{
    const bool may_pass = status == 429 || status == 502 || status == 503 || status == 504;
    curl_off_t wait_s = 0;
    json_t *problem;
    const char *title;

    if (status == HTTP_NOT_FOUND && a->step == ASK_ALL && is_type(a, "application/problem+json")) {
        a->step = ASK_GPUS; /* a daemon that is older than /v1/fingerprints */
        a->tries = 0;
        return ASK_START;
    }
    curl_easy_getinfo(a->curl, CURLINFO_RETRY_AFTER, &wait_s);
    if (may_pass && wait_s >= 0 && wait_s < UINT32_MAX &&
        may_pause(a, (uint64_t)wait_s * 1000, rng, now))
        return ASK_PAUSE;
    problem = a->body_bytes ? json_loadb(a->body, a->body_bytes, 0, NULL) : NULL;
    title = json_string_value(json_object_get(problem, "title"));
    end_with(a, FLEET_ERROR, "HTTP %ld%s%.150s", status, title ? ": " : "", title ? title : "");
    json_decref(problem);
    return ASK_ENDED;
}

/* From GPU number `from` on: the next one with a fingerprint, or the end. */
static enum ask_next next_fingerprint(struct ask *a, uint32_t from)
{
    const json_t *gpu;

    for (a->gpu = from; (gpu = gpu_at(a, a->gpu)) != NULL; a->gpu++) {
        if (json_is_string(json_object_get(gpu, "fingerprint_id"))) {
            a->step = ASK_FINGERPRINT;
            a->tries = 0;
            return ASK_START;
        }
    }
    return ASK_ENDED;
}

/* The list of a host whose driver has not yet answered claims nothing. */
static enum ask_next on_discovery(struct ask *a, struct rng *rng, nsec_t now)
{
    const uint64_t ms = DISCOVERY_PAUSE_MS / 2 + rng_below(rng, DISCOVERY_PAUSE_MS);

    a->discovering = true;
    a->tries = 0; /* it answered */
    if (now + ms * NSEC_PER_MSEC >= a->deadline) {
        ask_expire(a, now);
        return ASK_ENDED;
    }
    a->again_at = now + ms * NSEC_PER_MSEC;
    return ASK_PAUSE;
}

static bool is_discovering(const struct ask *a, const json_t *document)
{
    const char *discovery = json_string_value(json_object_get(document, "discovery"));

    return a->step != ASK_FINGERPRINT && discovery && strcmp(discovery, "running") == 0;
}

/* The whole document, or a part of one that an older daemon gives in parts. Takes it. */
static enum ask_next on_document(struct ask *a, json_t *take)
{
    json_t *gpu;

    switch (a->step) {
    case ASK_ALL:
        a->result.document = take;
        memcpy(a->result.etag, a->etag, sizeof(a->etag));
        return ASK_ENDED;
    case ASK_GPUS:
        a->result.document = take;
        if (json_array_size(json_object_get(take, "gpus")) > REACH_MAX_GPUS)
            return end_with(a, FLEET_GARBAGE, "it lists more than %d GPUs", REACH_MAX_GPUS);
        return next_fingerprint(a, 0);
    default:
        gpu = json_array_get(json_object_get(a->result.document, "gpus"), a->gpu);
        if (json_object_set_new(gpu, "fingerprint", take) != 0)
            return end_with(a, FLEET_GARBAGE, "a GPU in its list is none");
        return next_fingerprint(a, a->gpu + 1);
    }
}

static enum ask_next on_answer(struct ask *a, struct rng *rng, nsec_t now)
{
    json_error_t why;
    json_t *document;
    long status = 0;

    curl_easy_getinfo(a->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status == HTTP_NOT_MODIFIED && a->step == ASK_ALL && a->sent_etag[0]) {
        a->result.outcome = FLEET_UNCHANGED;
        memcpy(a->result.etag, a->sent_etag, sizeof(a->sent_etag));
        return ASK_ENDED;
    }
    if (status >= HTTP_REFUSED)
        return on_refusal(a, status, rng, now);
    if (status != HTTP_OK)
        return end_with(a, FLEET_GARBAGE, "HTTP %ld, which a daemon does not answer", status);
    if (!is_type(a, "application/json"))
        return end_with(a, FLEET_GARBAGE, "the answer is no application/json");
    document = json_loadb(a->body ? a->body : "", a->body_bytes, JSON_REJECT_DUPLICATES, &why);
    if (!document)
        return end_with(a, FLEET_GARBAGE, "the answer is no JSON: line %d: %s", why.line, why.text);
    if (is_discovering(a, document)) {
        json_decref(document);
        return on_discovery(a, rng, now);
    }
    a->discovering = false;
    return on_document(a, document);
}

enum status ask_done(struct ask *a, CURLcode code, struct rng *rng, nsec_t now,
                     enum ask_next *out_next, struct err *err)
{
    curl_off_t body = 0;
    long head = 0;

    if (code == CURLE_OUT_OF_MEMORY)
        return err_set(err, STATUS_NO_MEMORY, "no memory to ask a host");
    if (code == CURLE_SSL_CACERT_BADFILE)
        return err_set(err, STATUS_INVALID_ARGUMENT, "the certificates cannot be used: %s",
                       a->error);
    curl_easy_getinfo(a->curl, CURLINFO_SIZE_DOWNLOAD_T, &body);
    curl_easy_getinfo(a->curl, CURLINFO_HEADER_SIZE, &head);
    a->result.received_bytes += (uint64_t)body + (uint64_t)head;
    a->result.elapsed_ms = (uint32_t)((now - a->began) / NSEC_PER_MSEC);
    *out_next = code == CURLE_OK ? on_answer(a, rng, now) : on_failure(a, code, rng, now);
    return STATUS_OK;
}
