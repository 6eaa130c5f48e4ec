/* claim.h: what a host says about its GPUs, read from its answer and not yet believed.
 *
 * An answer comes from a machine that may be broken, old, new, or not a daemon at all. So it is
 * held against itself: every GPU once, every fingerprint of the GPU that it is said to be of, and
 * with the id that is the hash of its content. What holds is still a claim: only a survey, which
 * has heard the others too, knows whether two hosts claim the same GPU.
 */
#ifndef REACH_CLIENTS_FLEET_CLAIM_H
#define REACH_CLIENTS_FLEET_CLAIM_H

#include "base/identity.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"

#include <jansson.h>
#include <stdbool.h>

enum { CLAIM_STATE_BYTES = 32, CLAIM_VERSION_BYTES = 64 };

struct claim_gpu {
    uint32_t slot; /* the daemon's index */
    char uuid[64];
    char serial[32]; /* "": not reported */
    char model[96];
    char state[CLAIM_STATE_BYTES];
    char fingerprint_id[FINGERPRINT_ID_BYTES]; /* "": it has none */
    json_t *fingerprint;                       /* inside the document; NULL: it has none */
};

/* A flat value, but for what it borrows from the document. */
struct claim {
    char daemon_version[CLAIM_VERSION_BYTES]; /* "" where it is not told */
    uint32_t gpu_count;
    struct claim_gpu gpus[REACH_MAX_GPUS];
};

/* Is this fingerprint, by its id, known to be well-formed? Then its content is compared with the id
 * alone. May be NULL: none is. */
typedef bool claim_known_fn(void *self, const char *fingerprint_id);

/* Reads what GET /v1/fingerprints answers. All texts are printable lines.
 *
 * STATUS_PROTOCOL: it is no such answer. STATUS_CONFLICT: it is, and contradicts itself. Both with
 * a sentence that names the place. */
enum status claim_read(const json_t *document, claim_known_fn *known, void *self, struct claim *out,
                       struct err *err);

#endif
