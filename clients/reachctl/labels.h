/* labels.h: a node's GPUs as labels for a scheduler: few, short, and only classes and hashes. What
 * a label cannot say is asked of the daemon. Pure; any thread.
 *
 * A value is at most 63 letters, digits, '-', '_' and '.', and begins and ends with a letter or a
 * digit; a name is the same (Kubernetes, "Labels and Selectors"). Whatever the daemon says is made
 * to fit.
 *
 * A node has several GPUs, a label one value. So each property is there twice: once for the node,
 * where GPUs that differ give "mixed", and once for each value with the number of GPUs that have
 * it:
 *
 *     map=2d8cbf8bf97f        map.2d8cbf8bf97f=4
 */
#ifndef REACHCTL_LABELS_H
#define REACHCTL_LABELS_H

#include "base/identity.h"
#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    LABEL_BYTES = 64, /* of a name or a value, and the end */
    /* state, origin, class, map, windows: each once, and once for each value; count, generation */
    LABELS_MAX = 5 * (1 + REACH_MAX_GPUS) + 2,
    LABEL_NAMESPACE_BYTES = 254,
};

struct label {
    char name[LABEL_BYTES];
    char value[LABEL_BYTES];
};

struct labels {
    uint32_t count;
    struct label list[LABELS_MAX];
    uint32_t skipped; /* fingerprints that make no sense here; `why` tells of the last */
    struct err why;
};

/* Reads what GET /v1/fingerprints answers. A GPU whose fingerprint is stale, lost or makes no sense
 * counts by its state and in no class. Errors: STATUS_PROTOCOL (it is no such answer), NO_MEMORY.
 */
enum status labels_read(const json_t *document, struct labels *out, struct err *err);

/* Is this the namespace of a label: a DNS subdomain of at most 253 characters (RFC 1123)? */
bool labels_namespace_good(const char *name);

#endif
