/* machine.h: a fingerprint as the description of a simulated GPU. Pure. */
#ifndef REACH_CLIENTS_LAB_WHATIF_MACHINE_H
#define REACH_CLIENTS_LAB_WHATIF_MACHINE_H

#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "gpu/sim/sim_desc.h"

/* Describes the SMs of the fingerprint, and each TLB level whose number of entries is known. A
 * level whose sets are not known becomes one set. STATUS_INCONCLUSIVE if the SMs or the entries of
 * the window level are not known. */
enum status machine_from_fingerprint(const struct fingerprint *fp, struct sim_desc *out,
                                     struct err *err);

#endif
