/* host_answer.h: reads and checks the answer of a host about its GPUs.
 *
 * The machine may be broken, or may run an old daemon, a newer daemon or another program. Every GPU
 * must be listed once. Every fingerprint must belong to the GPU that it is listed with, and its id
 * must be the hash of its content. The survey checks whether two hosts report the same GPU
 * (ingest.sql). */
#pragma once

#include "types/identity.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"

#include <jansson.h>

enum {
    HOST_ANSWER_STATE_BYTES = 32,
    HOST_ANSWER_VERSION_BYTES = 64,
    HOST_ANSWER_MAX_FINGERPRINT_BYTES = 1 << 20 /* a daemon writes at most a tenth of this */
};

struct host_answer_gpu {
    uint32_t slot; /* index that the daemon reports */
    char uuid[64];
    char serial[32]; /* "" if it is not reported */
    char model[96];
    char state[HOST_ANSWER_STATE_BYTES];
    char fingerprint_id[FINGERPRINT_ID_BYTES]; /* "" if there is none */
    struct fingerprint *fingerprint;           /* owned; NULL if there is none */
    char *text; /* owned; the JSON of the fingerprint without its id, which is the hash of this
                   text; NULL if there is none */
};

struct host_answer {
    char daemon_version[HOST_ANSWER_VERSION_BYTES]; /* "" if it is not reported */
    uint32_t gpu_count;
    struct host_answer_gpu gpus[REACH_MAX_GPUS];
};

/* Reads a response to GET /v1/fingerprints. All texts are printable lines. The caller frees `out`
 * in any case. Returns STATUS_PROTOCOL if the response has another form, STATUS_CONFLICT if it
 * contradicts itself. The message names the place. */
enum status host_answer_read(const json_t *document, struct host_answer *out, struct err *err);
void host_answer_free(struct host_answer *take);
