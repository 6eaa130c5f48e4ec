/* node.h: what Kubernetes is told of a node's GPUs, in words that labels (nfd) and attributes of
 * devices (dra) share. Pure. */
#ifndef REACHCTL_NODE_H
#define REACHCTL_NODE_H

#include "clients/reachctl/chip.h"

#include <jansson.h>
#include <stdbool.h>

enum {
    NODE_WORD_BYTES = 64, /* of a name or a value, and the end */
    NODE_DOMAIN_BYTES = 254,
    NODE_HASH_CHARS = 12
};

/* ".internal" is reserved for private use and will never be in the DNS. */
#define NODE_DOMAIN "reachd.internal"

/* "132sm-24g-64GiB": SMs, groups and the reach of a group, which is rounded so that one entry more
 * or less makes no other class. Chips of one class need not have the same map. `out` has
 * NODE_WORD_BYTES, here and below. */
void node_class(const struct chip *chip, char *out);
/* The number of windows that cover all of the memory; the advice if there are no windows. */
void node_windows(const struct chip *chip, char *out);
/* The first digits of the name of the group map; "" if no groups are known. */
void node_map(const struct chip *chip, char *out);

/* Whether the fingerprint of a GPU of GET /v1/fingerprints still describes it, as far as the daemon
 * knows. */
bool node_is_current(const json_t *gpu, const char *state);

/* Whether this is a DNS subdomain of at most 253 characters (RFC 1123). */
bool node_is_domain(const char *name);

#endif
