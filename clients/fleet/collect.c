/* collect.c: keeps as many transfers running as allowed, resumes paused ones, ends expired ones. */
#include "clients/fleet/get.h"

#include <stdio.h>
#include <stdlib.h>

struct collection {
    const struct hosts *hosts;
    const struct collect_calls *calls;
    CURLM *multi;
    struct get *gets;
    uint32_t count;     /* of `gets` */
    uint32_t next_host; /* the first that is not begun */
    uint32_t open;      /* hosts that are begun and have not ended */
    nsec_t deadline;
    struct rng rng;
};

static enum status begin_host(struct collection *c, struct get *a, nsec_t now, struct err *err)
{
    char etag[FLEET_ETAG_BYTES] = "";
    const uint32_t host = c->next_host++;
    const enum status s = c->calls->tag(c->calls->self, host, etag, err);

    if (s != STATUS_OK)
        return s;
    get_begin(a, host, c->hosts->names[host], etag, now, c->deadline);
    a->state = GET_PAUSED;
    c->open++;
    return s;
}

static enum status end_host(struct collection *c, struct get *a, struct err *err)
{
    const enum status s = c->calls->done(c->calls->self, a->host, &a->result, err);

    get_end(a);
    a->state = GET_FREE;
    c->open--;
    return s;
}

/* Gives free transfers new hosts, and starts those whose pause is over. `*out_wait_ms` is how long
 * there is nothing to do here. */
static enum status start_all(struct collection *c, nsec_t now, int *out_wait_ms, struct err *err)
{
    enum status s = STATUS_OK;
    nsec_t until = c->deadline;

    for (struct get *a = c->gets; a < c->gets + c->count && s == STATUS_OK; a++) {
        if (a->state == GET_FREE && c->next_host < c->hosts->count)
            s = begin_host(c, a, now, err);
        if (s == STATUS_OK && a->state == GET_PAUSED && a->again_at <= now) {
            s = get_start(a, now, err);
            if (s == STATUS_OK && curl_multi_add_handle(c->multi, a->curl) != CURLM_OK)
                s = err_set(err, STATUS_NO_MEMORY, "libcurl takes no more transfers");
            a->state = s == STATUS_OK ? GET_BUSY : GET_PAUSED;
        }
        if (a->state == GET_PAUSED && a->again_at < until)
            until = a->again_at;
    }
    *out_wait_ms = until > now ? (int)((until - now) / NSEC_PER_MSEC) + 1 : 0;
    return s;
}

/* `*out_any`: a transfer has ended, so there may be something to start. */
static enum status read_messages(struct collection *c, bool *out_any, struct err *err)
{
    const CURLMsg *message;
    enum status s = STATUS_OK;
    int left;

    *out_any = false;
    while (s == STATUS_OK && (message = curl_multi_info_read(c->multi, &left)) != NULL) {
        const CURLcode code = message->data.result;
        struct get *a = NULL;
        bool ended = false;
        if (message->msg != CURLMSG_DONE)
            continue;
        *out_any = true;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&a);
        curl_multi_remove_handle(c->multi, a->curl); /* frees the message too */
        a->state = GET_PAUSED;
        s = get_done(a, code, &c->rng, clock_monotonic(), &ended, err);
        if (s == STATUS_OK && ended)
            s = end_host(c, a, err);
    }
    return s;
}

/* The deadline of all has passed: for those in progress, then for those that were never begun. */
static enum status expire_all(struct collection *c, nsec_t now, struct err *err)
{
    struct collect_result late = {
        .host = {.outcome = FLEET_TIMEOUT, .detail = late.detail, .etag = late.etag},
        .detail = "the deadline of the survey passed before its turn"};
    enum status s = STATUS_OK;

    for (struct get *a = c->gets; a < c->gets + c->count && s == STATUS_OK; a++) {
        if (a->state == GET_BUSY)
            curl_multi_remove_handle(c->multi, a->curl);
        if (a->state == GET_FREE)
            continue;
        get_expire(a, now);
        s = end_host(c, a, err);
    }
    for (; s == STATUS_OK && c->next_host < c->hosts->count; c->next_host++) {
        late.host.name = c->hosts->names[c->next_host];
        s = c->calls->done(c->calls->self, c->next_host, &late, err);
    }
    return s;
}

static enum status run(struct collection *c, struct err *err)
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
            s = err_set(err, STATUS_INTERNAL, "libcurl cannot continue");
        if (s == STATUS_OK)
            s = read_messages(c, &any, err);
        if (s == STATUS_OK && !any)
            curl_multi_poll(c->multi, NULL, 0, wait_ms, NULL);
    }
    return s;
}

enum status collect(const struct hosts *hosts, const struct collect_settings *settings,
                    const struct collect_calls *calls, struct err *err)
{
    const uint32_t most = settings->at_once < hosts->count ? settings->at_once : hosts->count;
    struct collection c = {.hosts = hosts,
                           .calls = calls,
                           .multi = curl_multi_init(),
                           .gets = calloc(most + 1, sizeof(*c.gets)),
                           .deadline = clock_monotonic() + settings->all_ms * NSEC_PER_MSEC,
                           .rng = {settings->seed}};
    enum status s;

    while (c.gets && c.count < most && get_open(&c.gets[c.count], settings))
        c.count++;
    if (!c.multi || c.count < most) {
        s = err_set(err, STATUS_NO_MEMORY, "no memory for requests");
    } else {
        curl_multi_setopt(c.multi, CURLMOPT_MAXCONNECTS, (long)c.count);
        s = run(&c, err);
    }
    for (struct get *a = c.gets; a < c.gets + c.count; a++) {
        if (a->state == GET_BUSY)
            curl_multi_remove_handle(c.multi, a->curl);
        get_close(a);
    }
    free(c.gets);
    curl_multi_cleanup(c.multi);
    return s;
}
