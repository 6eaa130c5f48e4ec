/* share.h: makes the anonymous document that a chip contributes to the reference set. The document
 * consists of the values of metrics.h: numbers, words of this program, and the name of the model.
 * It contains no UUID, serial number, bus address, host, driver, or time of day. The functions are
 * pure and may be called on any thread.
 *
 *     {"format": "reachd-share-1",
 *      "gpu": {"name": "..", "compute_capability": "9.0", "sm_count": 132, "memory_bytes": 1},
 *      "depth": "full", "measured_on": "2026-11-21",
 *      "map": "<hash>" or null,              which SMs form a group, as reachctl map names it
 *      "properties": {"tlb.levels[1].replacement": "lru", ..},     of the design
 *      "numbers": {"throughput.plateau_gbps": 4025.24, ..}}        measured
 */
#pragma once

#include "base/status.h"
#include "fingerprint/fingerprint.h"

#define SHARE_FORMAT "reachd-share-1"

enum { SHARE_FILE_BYTES = 80 };

/* Makes the text of the document, allocated by malloc. `out_file` (SHARE_FILE_BYTES) gets the name
 * of its file: the model and a hash of the text. Returns STATUS_NOT_APPLICABLE for a simulated or
 * imported fingerprint, and STATUS_NO_MEMORY if memory runs out. */
enum status share_make(const struct fingerprint *fp, char **out_text, size_t *out_bytes,
                       char *out_file, struct err *err);

/* Returns whether this property of metrics.h determines the kind of a chip. */
bool share_is_key(const char *property);
