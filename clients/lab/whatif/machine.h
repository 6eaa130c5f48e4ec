/* machine.h: derives the description of a simulated GPU from a fingerprint. The functions are pure.
 */
#pragma once

#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "gpu/sim/sim_desc.h"

/* Describes the SMs of the fingerprint, and each TLB level with a known number of entries. A level
 * with unknown sets becomes one set. Returns STATUS_INCONCLUSIVE if the SMs or the entries of the
 * window level are unknown. */
enum status machine_from_fingerprint(const struct fingerprint *fp, struct sim_desc *out,
                                     struct err *err);

/* Describes the data cache of each SM as level 1 of a machine, whose entries are lines. The size is
 * the longest footprint that fits, at the measured division between cache and shared memory.
 * Returns false if the fingerprint lacks this footprint. */
bool machine_data_cache(const struct fingerprint *fp, const struct sim_desc *machine,
                        struct sim_desc *out);
