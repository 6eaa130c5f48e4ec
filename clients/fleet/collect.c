/* collect.c: runs all transfers that are allowed, resumes paused ones, ends expired ones, and
 * evaluates each response. Failures that may be temporary are retried. These are a refused
 * connection (the daemon may be restarting), an incomplete response, and the statuses 429, 502, 503
 * and 504. A deadline, a bad certificate or a bad response is not retried. A host whose GPU
 * discovery is running is queried again until its deadline.
 */
#include "clients/fleet/collect.h"

#include "base/rng.h"
#include "base/text.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    MOST_HEAD_BYTES = 64 << 10,
    FIRST_PAUSE_MS = 100,
    DISCOVERY_PAUSE_MS = 500,
    SLACK_MS = 10, /* a transfer ends this long after the deadline of the survey */
    HTTP_OK = 200,
    HTTP_NOT_MODIFIED = 304,
    HTTP_REFUSED = 400 /* statuses from here on are errors */
};

/* A transfer, reused for one host after another. */
struct transfer {
    CURL *curl;
    enum { FREE = 0, BUSY, PAUSED } state;
    const struct collect_settings *settings;
    struct curl_slist *fields;
    uint32_t host;
    char url[HOSTS_NAME_BYTES + 8]; /* address of the daemon */
    nsec_t began;
    nsec_t deadline;
    nsec_t again_at;  /* time of the next request */
    uint32_t tries;   /* requests since the last response of the host */
    bool discovering; /* the last response reported that GPU discovery was running */
    FILE *body;       /* stream that writes to `text` */
    char *text;
    size_t text_bytes;
    size_t head_bytes;
    bool too_large;
    char error[CURL_ERROR_SIZE];
    struct collect_result result; /* before a response arrives, result.etag is the tag to send */
};

struct collection {
    const struct hosts *hosts;
    struct fleet_db *db;
    collect_fn *done;
    void *self; /* argument of `done` */
    CURLM *multi;
    struct transfer *transfers;
    uint32_t count;     /* number of transfers */
    uint32_t next_host; /* the first host that was not started */
    uint32_t open;      /* hosts in progress */
    nsec_t deadline;
    struct rng rng;
};

/* ---- one transfer ---- */

static size_t on_body(char *data, size_t size, size_t count, void *self)
{
    struct transfer *const t = self;

    t->too_large = size * count > t->settings->most_bytes - (size_t)ftello(t->body);
    /* A smaller count ends the transfer. */
    return t->too_large ? 0 : fwrite(data, 1, size * count, t->body);
}

static size_t on_field(char *data, size_t size, size_t count, void *self)
{
    struct transfer *const t = self;

    (void)data;
    t->head_bytes += size * count;
    t->too_large = t->head_bytes > MOST_HEAD_BYTES;
    return t->too_large ? 0 : size * count;
}

static bool open_transfer(struct transfer *out, const struct collect_settings *settings)
{
    CURL *const curl = curl_easy_init();

    *out = (struct transfer){.settings = settings, .curl = curl};
    if (!curl)
        return false;
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_HTTP09_ALLOWED, 0L);
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_NETRC, CURL_NETRC_IGNORED);
    curl_easy_setopt(curl, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(curl, CURLOPT_QUICK_EXIT,
                     1L); /* a DNS query that hangs does not delay the end */
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "reachctl");
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, out->error);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, out);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_field);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, out);
    curl_easy_setopt(curl, CURLOPT_PRIVATE, out);
    curl_easy_setopt(curl, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)settings->most_bytes);
    if (settings->ca_path) {
        curl_easy_setopt(curl, CURLOPT_CAINFO, settings->ca_path);
        curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
    }
    return true;
}

/* Frees the data of the last request or host. */
static void reset_transfer(struct transfer *t)
{
    if (t->body)
        (void)fclose(t->body);
    free(t->text);
    curl_slist_free_all(t->fields);
    json_decref(t->result.document);
    t->body = NULL;
    t->text = NULL;
    t->fields = NULL;
    t->result.document = NULL;
    t->head_bytes = 0;
    t->too_large = false;
    t->error[0] = '\0';
}

static enum status start_transfer(struct transfer *t, nsec_t now, struct err *err)
{
    char url[sizeof(t->url) + 32];
    char field[FLEET_ETAG_BYTES + 32];
    const nsec_t left = t->deadline > now ? t->deadline - now : 0;
    const bool conditional = t->result.etag[0] != '\0';

    reset_transfer(t);
    (void)snprintf(url, sizeof(url), "%s/v1/fingerprints", t->url);
    (void)snprintf(field, sizeof(field), "If-None-Match: %s", t->result.etag);
    t->fields = conditional ? curl_slist_append(NULL, field) : NULL;
    t->body = open_memstream(&t->text, &t->text_bytes);
    t->tries++;
    t->result.host.attempts++;
    curl_easy_setopt(t->curl, CURLOPT_HTTPHEADER, t->fields);
    curl_easy_setopt(t->curl, CURLOPT_TIMEOUT_MS, (long)(left / NSEC_PER_MSEC) + SLACK_MS);
    if (!t->body || (conditional && !t->fields) ||
        curl_easy_setopt(t->curl, CURLOPT_URL, url) != CURLE_OK)
        return err_no_memory(err, "a request");
    return STATUS_OK;
}

/* ---- evaluation of a response ---- */

/* Ends the host without an answer. Returns true. The functions below also return true if the host
 * has ended.
 */
static __attribute__((format(printf, 3, 4))) bool
end_with(struct transfer *t, enum fleet_outcome outcome, const char *format, ...)
{
    va_list args;

    t->result.host.outcome = outcome;
    va_start(args, format);
    vsnprintf(t->result.detail, sizeof(t->result.detail), format, args);
    va_end(args);
    text_sanitize(t->result.detail);
    json_decref(t->result.document);
    t->result.document = NULL;
    t->result.etag[0] = '\0';
    return true;
}

/* Ends a host whose deadline has passed. */
static bool expire_host(struct transfer *t, nsec_t now)
{
    t->result.host.elapsed_ms = (uint32_t)((now - t->began) / NSEC_PER_MSEC);
    return end_with(t, FLEET_TIMEOUT,
                    t->discovering ? "GPU discovery was still running after %u ms"
                                   : "no answer within %u ms",
                    t->result.host.elapsed_ms);
}

static enum fleet_outcome transfer_outcome(const struct transfer *t, CURLcode code)
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
        return t->too_large ? FLEET_TOO_LARGE : FLEET_BAD_RESPONSE;
    }
}

/* Sets the time of the next attempt. The pause doubles each time, and is multiplied by a random
 * factor from 0.5 to 1.5. Hosts that failed together are therefore not retried at the same time.
 * `at_least_ms` is the pause that Retry-After requests. Returns false if no time or no attempt is
 * left. */
static bool may_pause(struct transfer *t, uint64_t at_least_ms, struct rng *rng, nsec_t now)
{
    const uint64_t middle = (uint64_t)FIRST_PAUSE_MS << (t->tries < 8 ? t->tries - 1 : 7);
    uint64_t ms = middle / 2 + rng_below(rng, middle);

    ms = ms > at_least_ms ? ms : at_least_ms;
    t->again_at = now + ms * NSEC_PER_MSEC;
    return t->tries < t->settings->attempts && t->again_at < t->deadline;
}

static bool on_failure(struct transfer *t, CURLcode code, struct rng *rng, nsec_t now)
{
    const enum fleet_outcome outcome = transfer_outcome(t, code);
    const bool cut = code == CURLE_GOT_NOTHING || code == CURLE_RECV_ERROR ||
                     code == CURLE_SEND_ERROR || code == CURLE_PARTIAL_FILE;

    if ((outcome == FLEET_REFUSED || outcome == FLEET_NO_NAME || cut) && may_pause(t, 0, rng, now))
        return false;
    if (outcome == FLEET_TOO_LARGE)
        return end_with(t, outcome, "the response exceeds %u bytes",
                        t->head_bytes > MOST_HEAD_BYTES ? (unsigned)MOST_HEAD_BYTES
                                                        : t->settings->most_bytes);
    return end_with(t, outcome, "%s", t->error[0] ? t->error : curl_easy_strerror(code));
}

/* Handles a status that reports an error. */
static bool on_refusal(struct transfer *t, long status, struct rng *rng, nsec_t now)
{
    const bool may_pass = status == 429 || status == 502 || status == 503 || status == 504;
    curl_off_t wait_s = 0;
    json_t *problem;
    const char *title;

    curl_easy_getinfo(t->curl, CURLINFO_RETRY_AFTER, &wait_s);
    if (may_pass && wait_s >= 0 && wait_s < UINT32_MAX &&
        may_pause(t, (uint64_t)wait_s * 1000, rng, now))
        return false;
    problem = json_loadb(t->text, t->text_bytes, 0, NULL);
    title = json_string_value(json_object_get(problem, "title"));
    end_with(t, FLEET_ERROR, "HTTP %ld%s%.150s", status, title ? ": " : "", title ? title : "");
    json_decref(problem);
    return true;
}

/* Handles a response with an incomplete list of GPUs: the driver of the host has not responded yet.
 */
static bool on_discovery(struct transfer *t, struct rng *rng, nsec_t now)
{
    const uint64_t ms = DISCOVERY_PAUSE_MS / 2 + rng_below(rng, DISCOVERY_PAUSE_MS);

    t->discovering = true;
    t->tries = 0; /* the host has responded, so earlier failures do not count */
    t->again_at = now + ms * NSEC_PER_MSEC;
    return t->again_at < t->deadline ? false : expire_host(t, now);
}

/* Stores the tag if it is a strong one (RFC 9110, section 8.8.3); weak tags are not used. */
static void store_etag(struct transfer *t)
{
    struct curl_header *header = NULL;
    size_t n;

    t->result.etag[0] = '\0';
    if (curl_easy_header(t->curl, "etag", 0, CURLH_HEADER, -1, &header) != CURLHE_OK)
        return;
    n = strlen(header->value);
    if (n < 2 || n >= sizeof(t->result.etag) || header->value[0] != '"' ||
        header->value[n - 1] != '"')
        return;
    for (const char *c = header->value + 1; c[1] != '\0'; c++) {
        if (*c <= ' ' || *c == 0x7f || *c == '"')
            return;
    }
    memcpy(t->result.etag, header->value, n + 1);
}

static bool on_answer(struct transfer *t, struct rng *rng, nsec_t now)
{
    static const char json[] = "application/json";
    const char *discovery;
    char *type = NULL;
    json_error_t why;
    long status = 0;

    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(t->curl, CURLINFO_CONTENT_TYPE, &type);
    if (status == HTTP_NOT_MODIFIED && t->result.etag[0]) {
        t->result.host.outcome = FLEET_UNCHANGED;
        return true;
    }
    if (status >= HTTP_REFUSED)
        return on_refusal(t, status, rng, now);
    if (status != HTTP_OK)
        return end_with(t, FLEET_BAD_RESPONSE, "unexpected HTTP status %ld", status);
    if (!type || strncasecmp(type, json, sizeof(json) - 1) != 0 ||
        (type[sizeof(json) - 1] != '\0' && type[sizeof(json) - 1] != ';'))
        return end_with(t, FLEET_BAD_RESPONSE, "the response is not application/json");
    t->result.document = json_loadb(t->text, t->text_bytes, JSON_REJECT_DUPLICATES, &why);
    if (!t->result.document)
        return end_with(t, FLEET_BAD_RESPONSE, "the response is the file is not JSON: line %d: %s",
                        why.line, why.text);
    discovery = json_string_value(json_object_get(t->result.document, "discovery"));
    if (discovery && strcmp(discovery, "running") == 0)
        return on_discovery(t, rng, now);
    store_etag(t);
    return true;
}

/* Handles the end of a transfer. If `*out_ended` is true, the host has ended and its result is
 * complete; otherwise the next request is due at `again_at`. Returns an error only for causes that
 * affect every host: no memory, no usable certificates. */
static enum status end_transfer(struct transfer *t, CURLcode code, struct rng *rng, bool *out_ended,
                                struct err *err)
{
    const nsec_t now = clock_monotonic();
    curl_off_t body = 0;
    long head = 0;

    if (code == CURLE_OUT_OF_MEMORY || fflush(t->body) != 0)
        return err_no_memory(err, "a request");
    if (code == CURLE_SSL_CACERT_BADFILE)
        return err_set(err, STATUS_INVALID_ARGUMENT, "cannot use the certificates: %s", t->error);
    curl_easy_getinfo(t->curl, CURLINFO_SIZE_DOWNLOAD_T, &body);
    curl_easy_getinfo(t->curl, CURLINFO_HEADER_SIZE, &head);
    t->result.host.received_bytes += (uint64_t)body + (uint64_t)head;
    t->result.host.elapsed_ms = (uint32_t)((now - t->began) / NSEC_PER_MSEC);
    *out_ended = code == CURLE_OK ? on_answer(t, rng, now) : on_failure(t, code, rng, now);
    return STATUS_OK;
}

/* ---- all transfers ---- */

static enum status begin_host(struct collection *c, struct transfer *t, nsec_t now, struct err *err)
{
    const nsec_t own = now + t->settings->host_ms * NSEC_PER_MSEC;
    const char *const name = c->hosts->names[c->next_host];

    t->host = c->next_host++;
    t->state = PAUSED;
    t->began = now;
    t->again_at = now;
    t->deadline = own < c->deadline ? own : c->deadline;
    t->tries = 0;
    t->discovering = false;
    t->result = (struct collect_result){
        .host = {.name = name, .detail = t->result.detail, .etag = t->result.etag}};
    curl_easy_setopt(t->curl, CURLOPT_UNIX_SOCKET_PATH, hosts_url(name, t->url));
    c->open++;
    return fleet_last_etag(c->db, name, t->result.etag, err);
}

static enum status end_host(struct collection *c, struct transfer *t, struct err *err)
{
    const enum status s = c->done(c->self, t->host, &t->result, err);

    reset_transfer(t);
    t->state = FREE;
    c->open--;
    return s;
}

/* Gives free transfers new hosts, and starts the transfers whose pause is over. `*out_wait_ms` is
 * the time until the next transfer is due. */
static enum status start_all(struct collection *c, nsec_t now, int *out_wait_ms, struct err *err)
{
    enum status s = STATUS_OK;
    nsec_t until = c->deadline;

    for (struct transfer *t = c->transfers; t < c->transfers + c->count && s == STATUS_OK; t++) {
        if (t->state == FREE && c->next_host < c->hosts->count)
            s = begin_host(c, t, now, err);
        if (s == STATUS_OK && t->state == PAUSED && t->again_at <= now) {
            s = start_transfer(t, now, err);
            if (s == STATUS_OK && curl_multi_add_handle(c->multi, t->curl) != CURLM_OK)
                s = err_set(err, STATUS_NO_MEMORY,
                            "cannot add a transfer: libcurl accepts no more");
            t->state = s == STATUS_OK ? BUSY : PAUSED;
        }
        if (t->state == PAUSED && t->again_at < until)
            until = t->again_at;
    }
    *out_wait_ms = until > now ? (int)((until - now) / NSEC_PER_MSEC) + 1 : 0;
    return s;
}

/* Sets `*out_any` if a transfer has ended, so that another transfer may start. */
static enum status read_messages(struct collection *c, bool *out_any, struct err *err)
{
    const CURLMsg *message;
    enum status s = STATUS_OK;
    int left;

    *out_any = false;
    while (s == STATUS_OK && (message = curl_multi_info_read(c->multi, &left)) != NULL) {
        const CURLcode code = message->data.result;
        struct transfer *t = NULL;
        bool ended = false;
        if (message->msg != CURLMSG_DONE)
            continue;
        *out_any = true;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&t);
        curl_multi_remove_handle(c->multi, t->curl); /* the call also frees the message */
        t->state = PAUSED;
        s = end_transfer(t, code, &c->rng, &ended, err);
        if (s == STATUS_OK && ended)
            s = end_host(c, t, err);
    }
    return s;
}

/* The deadline of the survey has passed. Ends the hosts in progress, then the hosts that were never
 * started. */
static enum status expire_all(struct collection *c, nsec_t now, struct err *err)
{
    struct collect_result late = {
        .host = {.outcome = FLEET_TIMEOUT, .detail = late.detail, .etag = late.etag},
        .detail = "the deadline of the survey passed before its turn"};
    enum status s = STATUS_OK;

    for (struct transfer *t = c->transfers; t < c->transfers + c->count && s == STATUS_OK; t++) {
        if (t->state == BUSY)
            curl_multi_remove_handle(c->multi, t->curl);
        if (t->state == FREE)
            continue;
        expire_host(t, now);
        s = end_host(c, t, err);
    }
    for (; s == STATUS_OK && c->next_host < c->hosts->count; c->next_host++) {
        late.host.name = c->hosts->names[c->next_host];
        s = c->done(c->self, c->next_host, &late, err);
    }
    return s;
}

static enum status run_transfers(struct collection *c, struct err *err)
{
    enum status s = STATUS_OK;
    int running;
    int wait_ms = 0;
    bool any = false;

    while (s == STATUS_OK && (c->open > 0 || c->next_host < c->hosts->count)) {
        const nsec_t now = clock_monotonic();
        if (now >= c->deadline)
            return expire_all(c, now, err);
        s = start_all(c, now, &wait_ms, err);
        if (s == STATUS_OK && curl_multi_perform(c->multi, &running) != CURLM_OK)
            s = err_set(err, STATUS_INTERNAL, "cannot continue the transfers: libcurl failed");
        if (s == STATUS_OK)
            s = read_messages(c, &any, err);
        if (s == STATUS_OK && !any)
            curl_multi_poll(c->multi, NULL, 0, wait_ms, NULL);
    }
    return s;
}

enum status collect_run(const struct hosts *hosts, const struct collect_settings *settings,
                        struct fleet_db *db, collect_fn *done, void *self, struct err *err)
{
    const uint32_t most = settings->at_once < hosts->count ? settings->at_once : hosts->count;
    struct collection c = {.hosts = hosts,
                           .db = db,
                           .done = done,
                           .self = self,
                           .multi = curl_multi_init(),
                           .transfers = calloc(most + 1, sizeof(*c.transfers)),
                           .deadline = clock_monotonic() + settings->all_ms * NSEC_PER_MSEC,
                           .rng = {settings->seed}};
    enum status s;

    while (c.transfers && c.count < most && open_transfer(&c.transfers[c.count], settings))
        c.count++;
    if (!c.multi || c.count < most) {
        s = err_no_memory(err, "requests");
    } else {
        curl_multi_setopt(c.multi, CURLMOPT_MAXCONNECTS, (long)c.count);
        s = run_transfers(&c, err);
    }
    for (struct transfer *t = c.transfers; t < c.transfers + c.count; t++) {
        if (t->state == BUSY)
            curl_multi_remove_handle(c.multi, t->curl);
        reset_transfer(t);
        curl_easy_cleanup(t->curl);
    }
    free(c.transfers);
    curl_multi_cleanup(c.multi);
    return s;
}
