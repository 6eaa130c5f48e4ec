/* verify.h: checks whether the stored fingerprint still describes this GPU, with a few probes in a
 * worker, when the daemon starts and when a GPU comes back. */
#ifndef REACH_MEASURE_VERIFY_H
#define REACH_MEASURE_VERIFY_H

#include "analysis/check.h"
#include "measure/measure.h"

/* Opens the GPU of `request` (its store and depth are not used), compares its identity, and runs
 * the probes of verify_probes. A probe that is not clean is repeated; a change is checked twice.
 * `*probe_ns` is the time of the first check, without opening the GPU.
 * STATUS_OK: `*out` is complete. Errors are those of the worker; nothing is stored. */
enum status verify_gpu(const struct measure_request *request, const struct fingerprint *fp,
                       struct check *out, nsec_t *probe_ns, struct err *err);

#endif
