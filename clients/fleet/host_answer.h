/* host_answer.h: what a host reports about its GPUs, read from its answer and checked.
 *
 * An answer comes from a machine that may be broken, old, new, or not a daemon at all. It is
 * checked against itself: every GPU once, every fingerprint of the GPU that it is listed with, and
 * with the id that is the hash of its content. Whether two hosts report the same GPU, the survey
 * checks (ingest.sql).
 */
#ifndef REACH_CLIENTS_FLEET_HOST_ANSWER_H
#define REACH_CLIENTS_FLEET_HOST_ANSWER_H

#include "types/identity.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"

#include <jansson.h>

enum {
    HOST_ANSWER_STATE_BYTES = 32,
    HOST_ANSWER_VERSION_BYTES = 64,
    HOST_ANSWER_MAX_FINGERPRINT_BYTES = 1 << 20 /* a daemon makes at most a tenth of it */
};

struct host_answer_gpu {
    uint32_t slot; /* the daemon's index */
    char uuid[64];
    char serial[32]; /* "": not reported */
    char model[96];
    char state[HOST_ANSWER_STATE_BYTES];
    char fingerprint_id[FINGERPRINT_ID_BYTES]; /* "": it has none */
    struct fingerprint *fingerprint;           /* owned; NULL: it has none */
    char *text; /* owned: its JSON without the id, which is the hash of this; NULL: it has none */
};

struct host_answer {
    char daemon_version[HOST_ANSWER_VERSION_BYTES]; /* "" if it is not reported */
    uint32_t gpu_count;
    struct host_answer_gpu gpus[REACH_MAX_GPUS];
};

/* Reads an answer to GET /v1/fingerprints. All texts are printable lines. Free `out` in any case.
 *
 * STATUS_PROTOCOL: it is no such answer. STATUS_CONFLICT: it contradicts itself. Both with a
 * sentence that names the place. */
enum status host_answer_read(const json_t *document, struct host_answer *out, struct err *err);
void host_answer_free(struct host_answer *take);

#endif
