/* get.h: the requests to one host: which comes next, and what a response means. collect.c runs the
 * transfers. */
#ifndef REACH_CLIENTS_FLEET_GET_H
#define REACH_CLIENTS_FLEET_GET_H

#include "clients/fleet/collect.h"

#include "base/rng.h"

#include <curl/curl.h>

/* A transfer, reused for one host after another. */
struct get {
    CURL *curl;
    enum { GET_FREE = 0, GET_BUSY, GET_PAUSED } state; /* collect.c's */
    struct curl_slist *fields;
    const struct collect_settings *settings;
    uint32_t host;
    char url[HOSTS_NAME_BYTES + 8];
    nsec_t began;
    nsec_t deadline;
    nsec_t again_at; /* when to send the next request */
    enum { GET_ALL = 0, GET_GPUS, GET_FINGERPRINT } step;
    uint32_t gpu;     /* GET_FINGERPRINT: which */
    uint32_t tries;   /* of this step */
    bool discovering; /* at the last answer the host's GPU discovery was running */
    char sent_etag[FLEET_ETAG_BYTES];
    char etag[FLEET_ETAG_BYTES]; /* of this answer */
    char *body;
    size_t body_bytes;
    size_t body_room;
    size_t head_bytes;
    bool too_large;
    char error[CURL_ERROR_SIZE];
    struct collect_result result;
};

/* False without memory. `settings` must outlive it. */
bool get_open(struct get *out, const struct collect_settings *settings);
void get_close(struct get *take);

/* A new host; `etag` is the tag to send, "" for none. `name` must live until it has ended. */
void get_begin(struct get *a, uint32_t host, const char *name, const char *etag, nsec_t now,
               nsec_t all_deadline);
/* Makes the transfer ready to be added. STATUS_NO_MEMORY. */
enum status get_start(struct get *a, nsec_t now, struct err *err);
/* The transfer has ended. `*out_ended`: so has the host, and the result is whole; otherwise the
 * next request is due at `again_at`. Fails only if every host would (no memory, no usable
 * certificates). */
enum status get_done(struct get *a, CURLcode code, struct rng *rng, nsec_t now, bool *out_ended,
                     struct err *err);
/* Its deadline has passed. */
void get_expire(struct get *a, nsec_t now);
void get_end(struct get *a); /* frees what is in the result */

#endif
