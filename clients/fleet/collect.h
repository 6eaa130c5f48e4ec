/* collect.h: sends requests to all hosts of a survey.
 *
 * One thread serves many connections (libcurl's multi interface). Each host and the whole survey
 * have a deadline. A failure that may be temporary is retried after a pause that grows and is
 * random. Time, bytes and attempts of a host are limited, so a dead, slow or hostile host does not
 * stop the others.
 *
 * The request is GET /v1/fingerprints with the tag of the last answer, so that an unchanged host
 * responds with a few bytes. The survey sends no token, follows no redirect and uses no proxy.
 */
#pragma once

#include "clients/fleet/db.h"
#include "clients/fleet/hosts.h"

#include <jansson.h>

enum {
    COLLECT_MOST_AT_ONCE = 1024,
    COLLECT_DETAIL_BYTES = 256,
    /* The defaults of a survey. */
    COLLECT_AT_ONCE = 64,
    COLLECT_ATTEMPTS = 3,
    COLLECT_HOST_MS = 5000,
    COLLECT_ALL_MS = 60000,
    COLLECT_MOST_BYTES = 4 << 20 /* 32 fingerprints of 128 KiB; an H200 needs 17 KiB */
};

struct collect_settings {
    uint32_t at_once;    /* 1..COLLECT_MOST_AT_ONCE */
    uint32_t attempts;   /* attempts per request, at least 1 */
    uint32_t host_ms;    /* time limit of one host, including all attempts and pauses */
    uint32_t all_ms;     /* time limit of all hosts together */
    uint32_t most_bytes; /* size limit of one answer */
    const char *ca_path; /* file of trusted certificates; NULL for the certificates of the system */
    uint64_t seed;       /* seed of the random pauses */
};

/* The result of one host. */
struct collect_result {
    struct fleet_host host;            /* has 0 attempts if the survey expired first */
    char detail[COLLECT_DETAIL_BYTES]; /* referenced by `host` */
    char etag[FLEET_ETAG_BYTES];       /* referenced by `host` */
    json_t *document;                  /* the response to /v1/fingerprints if the host answered */
};

/* Called once for each host, when it ends. `host` is the place of the host in the list, from 0. Any
 * status except STATUS_OK ends collect_run with that status. */
typedef enum status collect_fn(void *self, uint32_t host, const struct collect_result *result,
                               struct err *err);

/* Queries all hosts; curl_global_init must have been called. `db` contains the tag to send to each
 * host. Returns STATUS_INVALID_ARGUMENT if the certificates cannot be used. */
enum status collect_run(const struct hosts *hosts, const struct collect_settings *settings,
                        struct fleet_db *db, collect_fn *done, void *self, struct err *err);
