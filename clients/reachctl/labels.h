/* labels.h: a node's GPUs as labels for a scheduler: few, short, and only classes and hashes. The
 * daemon has the details. Any thread.
 *
 * A name or a value has at most 63 letters, digits, '-', '_' and '.', and begins and ends with a
 * letter or a digit (Kubernetes, "Labels and Selectors"). Texts of the daemon are made to fit.
 *
 * A node has several GPUs, a label one value. So there are two labels for each property: one for
 * the node, "mixed" if its GPUs differ, and one per value with the number of GPUs that have it:
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
#include <stdio.h>

enum {
    LABEL_BYTES = 64, /* of a name or a value, and the end */
    /* each property once, and once per value; count, generation */
    LABELS_MAX = 5 * (1 + REACH_MAX_GPUS) + 2,
    LABEL_NAMESPACE_BYTES = 254,
};

enum labels_property {
    LABELS_STATE,
    LABELS_ORIGIN,
    LABELS_CLASS,
    LABELS_MAP,
    LABELS_WINDOWS,
    LABELS_PROPERTIES
};

/* The words of one property and the number of GPUs with each. */
struct labels_tally {
    uint32_t count;
    struct {
        char word[LABEL_BYTES];
        uint32_t gpus;
    } of[REACH_MAX_GPUS];
};

struct labels {
    size_t gpu_count;
    uint64_t generation; /* changes with any fingerprint, whatever the order of the GPUs */
    struct labels_tally tallies[LABELS_PROPERTIES];
    uint32_t skipped; /* invalid fingerprints; `why` has the reason of the last */
    struct err why;
};

/* Reads the response to GET /v1/fingerprints. A GPU that is lost, or whose fingerprint is stale or
 * invalid, counts by its state and in no class. Errors: STATUS_PROTOCOL (not such a response),
 * NO_MEMORY. */
enum status labels_read(const json_t *document, struct labels *out, struct err *err);

/* A line NAMESPACE/NAME=VALUE per label, at most LABELS_MAX. */
void labels_print(const struct labels *labels, const char *namespace, FILE *out);

/* Is this the namespace of a label: a DNS subdomain of at most 253 characters (RFC 1123)? */
bool labels_namespace_good(const char *name);

#endif
