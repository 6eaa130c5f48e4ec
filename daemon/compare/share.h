/* share.h: what a chip contributes to the reference set: one anonymous document. It is made of what
 * metrics.h derives, so it has numbers, the words of this program, the name of the model, and
 * nothing else: no UUID, serial number, bus address, host, driver, or time of day. Pure; any
 * thread.
 *
 *     {"format": "reachd-share-1",
 *      "gpu": {"name": "..", "compute_capability": "9.0", "sm_count": 132, "memory_bytes": 1},
 *      "depth": "full", "measured_on": "2026-11-21",
 *      "map": "<hash>" or null,              which SMs form a group, as reachctl map names it
 *      "properties": {"tlb.levels[1].replacement": "lru", ..},     of the design
 *      "numbers": {"throughput.plateau_gbps": 4025.24, ..}}        measured
 */
#ifndef REACH_COMPARE_SHARE_H
#define REACH_COMPARE_SHARE_H

#include "base/status.h"
#include "fingerprint/fingerprint.h"

#include <jansson.h>

#define SHARE_FORMAT "reachd-share-1"

enum { SHARE_FILE_BYTES = 80 };

/* The text of the document, from malloc, and the name of its file in `out_file`
 * (SHARE_FILE_BYTES): the model and a hash of the text. STATUS_NOT_APPLICABLE: a simulated or
 * imported fingerprint. STATUS_NO_MEMORY. */
enum status share_make(const struct fingerprint *fp, char **out_text, size_t *out_bytes,
                       char *out_file, struct err *err);

/* Does this property of metrics.h determine the kind of a chip? */
bool share_is_key(const char *property);

#endif
