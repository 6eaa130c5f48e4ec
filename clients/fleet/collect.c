/* collect.c: keeps as many transfers going as may be, resumes paused ones, ends expired ones. */
#include "clients/fleet/get.h"
#include "clients/fleet/collect.h"

#include <stdio.h>
#include <stdlib.h>

enum place { PLACE_FREE = 0, PLACE_BUSY, PLACE_PAUSED };

struct collecting {
    const struct hosts *hosts;
    const struct collect_settings *settings;
    const struct collect_calls *calls;
    CURLM *multi;
    struct get *gets;
    enum place *places; /* of each transfer */
    uint32_t count;     /* of the transfers */
    uint32_t next_host;
    uint32_t open; /* transfers that are not free */
    nsec_t deadline;
    struct rng rng;
};

static enum status start(struct collecting *c, uint32_t i, nsec_t now, struct err *err)
{
    const enum status s = get_start(&c->gets[i], now, err);

    if (s != STATUS_OK)
        return s;
    if (curl_multi_add_handle(c->multi, c->gets[i].curl) != CURLM_OK)
        return err_set(err, STATUS_NO_MEMORY, "libcurl takes no more transfers");
    c->places[i] = PLACE_BUSY;
    return STATUS_OK;
}

static enum status begin_host(struct collecting *c, uint32_t i, nsec_t now, struct err *err)
{
    char etag[FLEET_ETAG_BYTES] = "";
    const uint32_t host = c->next_host++;
    const enum status s = c->calls->tag(c->calls->self, host, etag, err);

    if (s != STATUS_OK)
        return s;
    get_begin(&c->gets[i], host, c->hosts->names[host], etag, now, c->deadline);
    c->open++;
    return start(c, i, now, err);
}

static enum status end_host(struct collecting *c, uint32_t i, struct err *err)
{
    struct get *const a = &c->gets[i];
    const enum status s = c->calls->done(c->calls->self, a->host, &a->result, err);

    get_end(a);
    c->places[i] = PLACE_FREE;
    c->open--;
    return s;
}

/* Fills free places with new hosts, and starts those whose pause is over. `*out_wait_ms` is how
 * long nothing is to be done here. */
static enum status start_all(struct collecting *c, nsec_t now, int *out_wait_ms, struct err *err)
{
    enum status s = STATUS_OK;
    nsec_t until = c->deadline;

    for (uint32_t i = 0; i < c->count && s == STATUS_OK; i++) {
        if (c->places[i] == PLACE_FREE && c->next_host < c->hosts->count)
            s = begin_host(c, i, now, err);
        else if (c->places[i] == PLACE_PAUSED && c->gets[i].again_at <= now)
            s = start(c, i, now, err);
        if (c->places[i] == PLACE_PAUSED && c->gets[i].again_at < until)
            until = c->gets[i].again_at;
    }
    *out_wait_ms = until > now ? (int)((until - now) / NSEC_PER_MSEC) + 1 : 0;
    return s;
}

static enum status read_message(struct collecting *c, const CURLMsg *message, struct err *err)
{
    const nsec_t now = clock_monotonic();
    const CURLcode code = message->data.result;
    CURL *const curl = message->easy_handle;
    enum get_next next = GET_ENDED;
    struct get *a = NULL;
    uint32_t i;
    enum status s;

    curl_easy_getinfo(curl, CURLINFO_PRIVATE, (char **)&a);
    i = (uint32_t)(a - c->gets);
    curl_multi_remove_handle(c->multi, curl); /* the message is gone with it */
    s = get_done(a, code, &c->rng, now, &next, err);
    c->places[i] = PLACE_PAUSED;
    if (s != STATUS_OK)
        return s;
    if (next == GET_ENDED)
        return end_host(c, i, err);
    return next == GET_START ? start(c, i, now, err) : STATUS_OK;
}

/* `*out_read`: there were some, so there may be something to start. */
static enum status read_messages(struct collecting *c, bool *out_read, struct err *err)
{
    const CURLMsg *message;
    enum status s = STATUS_OK;
    int left;

    *out_read = false;
    while (s == STATUS_OK && (message = curl_multi_info_read(c->multi, &left)) != NULL) {
        if (message->msg != CURLMSG_DONE)
            continue;
        *out_read = true;
        s = read_message(c, message, err);
    }
    return s;
}

/* The deadline of all has passed: those under way, then those that were never begun. */
static enum status expire_all(struct collecting *c, nsec_t now, struct err *err)
{
    enum status s = STATUS_OK;

    for (uint32_t i = 0; i < c->count && s == STATUS_OK; i++) {
        if (c->places[i] == PLACE_FREE)
            continue;
        if (c->places[i] == PLACE_BUSY)
            curl_multi_remove_handle(c->multi, c->gets[i].curl);
        get_expire(&c->gets[i], now);
        s = end_host(c, i, err);
    }
    while (s == STATUS_OK && c->next_host < c->hosts->count) {
        struct collect_result late = {.outcome = FLEET_TIMEOUT};
        snprintf(late.detail, sizeof(late.detail),
                 "the deadline of the survey passed before its turn");
        s = c->calls->done(c->calls->self, c->next_host++, &late, err);
    }
    return s;
}

static enum status run(struct collecting *c, struct err *err)
{
    enum status s = STATUS_OK;
    int running;
    int wait_ms = 0;
    bool got = false;

    while (s == STATUS_OK && (c->open > 0 || c->next_host < c->hosts->count)) {
        const nsec_t now = clock_monotonic();
        if (now >= c->deadline)
            return expire_all(c, now, err);
        s = start_all(c, now, &wait_ms, err);
        if (s != STATUS_OK)
            return s;
        if (curl_multi_perform(c->multi, &running) != CURLM_OK)
            return err_set(err, STATUS_INTERNAL, "libcurl cannot continue");
        s = read_messages(c, &got, err);
        if (s == STATUS_OK && !got)
            curl_multi_poll(c->multi, NULL, 0, wait_ms, NULL);
    }
    return s;
}

static void close_all(struct collecting *c)
{
    for (uint32_t i = 0; c->gets && i < c->count; i++) {
        if (c->places[i] == PLACE_BUSY)
            curl_multi_remove_handle(c->multi, c->gets[i].curl);
        get_close(&c->gets[i]);
    }
    free(c->gets);
    free(c->places);
    curl_multi_cleanup(c->multi);
}

enum status collect(const struct hosts *hosts, const struct collect_settings *settings,
                    const struct collect_calls *calls, struct err *err)
{
    const uint32_t most = settings->at_once < hosts->count ? settings->at_once : hosts->count;
    struct collecting c = {.hosts = hosts,
                           .settings = settings,
                           .calls = calls,
                           .multi = curl_multi_init(),
                           .gets = calloc(most + 1, sizeof(*c.gets)),
                           .places = calloc(most + 1, sizeof(*c.places)),
                           .deadline = clock_monotonic() + settings->all_ms * NSEC_PER_MSEC,
                           .rng = {settings->seed}};
    enum status s = STATUS_OK;

    if (!c.multi || !c.gets || !c.places) {
        close_all(&c);
        return err_set(err, STATUS_NO_MEMORY, "no memory for requests");
    }
    while (s == STATUS_OK && c.count < most) {
        if (get_open(&c.gets[c.count], settings))
            c.count++;
        else
            s = err_set(err, STATUS_NO_MEMORY, "no memory for requests");
    }
    if (s == STATUS_OK)
        curl_multi_setopt(c.multi, CURLMOPT_MAXCONNECTS, (long)c.count);
    if (s == STATUS_OK)
        s = run(&c, err);
    close_all(&c);
    return s;
}
