/* health.h: the problems of the GPUs of a node, derived from a view. A problem needs an operator: a
 * GPU that is missing, that the driver cannot use, or that has become slower. A measurement that
 * failed beside other work is no problem. The functions are pure and may be called on any thread.
 */
#pragma once

#include "snapshot/snapshot.h"

enum health_kind {
    HEALTH_GPUS_MISSING = 0, /* fewer GPUs were found than the node must have */
    HEALTH_GPU_LOST,         /* the driver no longer shows a known GPU */
    HEALTH_GPU_FAILED,       /* the driver does not identify a GPU, or a GPU fails or hangs */
    HEALTH_LINK_DEGRADED,    /* the PCIe link is slower than it can be or was */
    HEALTH_GPU_DRIFT,        /* a quick check found a GPU slower than its fingerprint, or changed */
    HEALTH_KINDS
};
/* Returns "gpus-missing", "gpu-lost", "gpu-failed", "link-degraded" or "gpu-drift". */
const char *health_kind_name(enum health_kind k);

/* Returns the number of GPUs that the driver shows and identifies. MIG instances count as the GPU
 * that they are part of. */
uint32_t health_count_found(const struct snapshot *s);

/* Returns whether the number of found GPUs is known. It is not known during discovery, and for a
 * daemon that serves stored results only. */
bool health_is_counted(const struct snapshot *s);

/* Returns the number of expected GPUs that were not found, or 0 if that is not known. */
uint32_t health_count_missing(const struct snapshot *s);

/* Receives a problem. `gpu` is NULL if the problem concerns the whole node. `why` has the sentence
 * and the next step. Both pointers are valid during the call. */
typedef void health_fn(void *self, enum health_kind kind, const struct snapshot_gpu *gpu,
                       const struct err *why);

/* Visits the problems of a view: first those of the node, then those of each GPU in the order of
 * the indices. Returns the number of problems. */
uint32_t health_visit(const struct snapshot *s, health_fn *visit, void *self);
