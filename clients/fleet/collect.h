/* collect.h: requests to all hosts of a survey.
 *
 * One thread, many connections (libcurl's multi interface), each host with a deadline and all of
 * them with another. A failure that may be temporary is retried after a pause that grows and is
 * random. What a host may cost is bounded (time, bytes, attempts), so a dead, slow or hostile one
 * does not stop the others.
 *
 * The request is GET /v1/fingerprints, with the tag of the last answer, so that a host where
 * nothing has changed answers in a few bytes. No token is sent, no redirect is followed, no proxy
 * is used.
 */
#ifndef REACH_CLIENTS_FLEET_COLLECT_H
#define REACH_CLIENTS_FLEET_COLLECT_H

#include "clients/fleet/db.h"
#include "clients/fleet/hosts.h"

#include <jansson.h>

enum {
    COLLECT_MOST_AT_ONCE = 1024,
    COLLECT_DETAIL_BYTES = 256,
    /* Defaults of a survey. */
    COLLECT_AT_ONCE = 64,
    COLLECT_ATTEMPTS = 3,
    COLLECT_HOST_MS = 5000,
    COLLECT_ALL_MS = 60000,
    COLLECT_MOST_BYTES = 4 << 20 /* 32 GPUs with 128 KiB each; a measured H200 has 17 */
};

struct collect_settings {
    uint32_t at_once;    /* 1..COLLECT_MOST_AT_ONCE */
    uint32_t attempts;   /* of each request, at least 1 */
    uint32_t host_ms;    /* for one host, with all attempts and pauses */
    uint32_t all_ms;     /* for all of them */
    uint32_t most_bytes; /* of one answer */
    const char *ca_path; /* certificates to trust instead of the system's; NULL: the system's */
    uint64_t seed;       /* of the pauses */
};

/* The result of one host. */
struct collect_result {
    struct fleet_host host;            /* attempts 0: the deadline of all came first */
    char detail[COLLECT_DETAIL_BYTES]; /* the host's */
    char etag[FLEET_ETAG_BYTES];       /* the host's */
    json_t *document;                  /* FLEET_ANSWERED: as /v1/fingerprints gives it */
};

/* Called once for each host, in the order in which they end; `host` is its place in the list, from
 * 0. Other than STATUS_OK ends the collecting with that. */
typedef enum status collect_fn(void *self, uint32_t host, const struct collect_result *result,
                               struct err *err);

/* Call curl_global_init before. `db` has the tag to send to each host.
 * STATUS_INVALID_ARGUMENT: the certificates cannot be used. */
enum status collect(const struct hosts *hosts, const struct collect_settings *settings,
                    struct fleet_db *db, collect_fn *done, void *self, struct err *err);

#endif
