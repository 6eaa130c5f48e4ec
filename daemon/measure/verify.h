/* verify.h: does the stored fingerprint still describe this chip? Asked in a worker, with a
 * handful of probes, when the daemon starts and when a GPU comes back. */
#ifndef REACH_MEASURE_VERIFY_H
#define REACH_MEASURE_VERIFY_H

#include "analysis/check.h"
#include "measure/measure.h"

/* Opens the GPU of `request` (its store and depth are not used), compares who it is, and asks what
 * verify_probes says. A probe that is not clean is asked again; what is found changed is looked at
 * twice. `*probe_ns` is what the first look took, without opening the GPU.
 * STATUS_OK: `*out` is complete. Errors are those of the worker; nothing is stored. */
enum status verify_gpu(const struct measure_request *request, const struct fingerprint *fp,
                       struct check *out, nsec_t *probe_ns, struct err *err);

#endif
