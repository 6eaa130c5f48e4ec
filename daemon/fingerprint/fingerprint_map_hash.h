/* fingerprint_map_hash.h: a short name for a group map, so that a fleet can be counted by it.
 *
 * Two chips have the same name where the same SM ids go together, whatever their groups are called:
 * groups are numbered anew by their lowest SM before anything is hashed. So "how many different
 * maps has this model?" is a count of names, in a report as in a monitoring system. It names the
 * map alone: sizes, levels and numbers may differ.
 *
 * Pure; any thread.
 */
#ifndef REACH_FINGERPRINT_FINGERPRINT_MAP_HASH_H
#define REACH_FINGERPRINT_FINGERPRINT_MAP_HASH_H

#include "fingerprint/fingerprint.h"

enum { FINGERPRINT_MAP_HASH_BYTES = 20 }; /* "map" and 16 hex digits, and the end */

/* Writes the name; returns `out`, of at least FINGERPRINT_MAP_HASH_BYTES. "" where no groups are
 * known. Groups may have any numbers below REACH_MAX_GROUPS, gaps too; an SM of
 * FINGERPRINT_NO_GROUP counts as one that is not there. */
char *fingerprint_map_hash(const struct sm_partition *partition, char *out);

#endif
