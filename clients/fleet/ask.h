/* ask.h: one host being asked: which request comes next, and what an answer means. The transfers
 * themselves are collect.c's. */
#ifndef REACH_CLIENTS_FLEET_ASK_H
#define REACH_CLIENTS_FLEET_ASK_H

#include "clients/fleet/collect.h"

#include "base/clock.h"
#include "base/rng.h"

#include <curl/curl.h>

enum ask_step { ASK_ALL = 0, ASK_GPUS, ASK_FINGERPRINT };

/* What is to be done with it. */
enum ask_next { ASK_START = 0, ASK_PAUSE, ASK_ENDED };

/* A transfer that is used for one host after another. */
struct ask {
    CURL *curl;
    struct curl_slist *fields;
    const struct collect_settings *settings;
    uint32_t host;
    char url[HOSTS_NAME_BYTES + 8];
    const char *socket_path; /* NULL: by address */
    nsec_t began;
    nsec_t deadline;
    nsec_t again_at; /* ASK_PAUSE: when to start */
    enum ask_step step;
    uint32_t gpu;     /* ASK_FINGERPRINT: which */
    uint32_t tries;   /* of this step */
    bool discovering; /* at the last answer the host's GPU discovery was running */
    char sent_etag[COLLECT_ETAG_BYTES];
    char etag[COLLECT_ETAG_BYTES]; /* of this answer */
    char *body;
    size_t body_bytes;
    size_t body_room;
    size_t head_bytes;
    bool too_large;
    char error[CURL_ERROR_SIZE];
    struct collect_result result;
};

/* False without memory. `settings` must outlive it. */
bool ask_open(struct ask *out, const struct collect_settings *settings);
void ask_close(struct ask *take);

/* A new host; `etag` is the tag to send, "" for none. `name` must live as long as it is asked. */
void ask_begin(struct ask *a, uint32_t host, const char *name, const char *etag, nsec_t now,
               nsec_t all_deadline);
/* Makes the transfer ready to be added. STATUS_NO_MEMORY, STATUS_INVALID_ARGUMENT. */
enum status ask_start(struct ask *a, nsec_t now, struct err *err);
/* The transfer has ended. On ASK_ENDED the result is whole; ask_end frees what is in it. Fails only
 * where every host would (no memory, no usable certificates). */
enum status ask_done(struct ask *a, CURLcode code, struct rng *rng, nsec_t now,
                     enum ask_next *out_next, struct err *err);
/* Its time is over, wherever it is. */
void ask_expire(struct ask *a, nsec_t now);
void ask_end(struct ask *a);

#endif
