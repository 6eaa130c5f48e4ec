/* snapshot.h: an immutable view of the current fingerprints, from which every request is answered.
 *
 * Writers (the pipeline) build a new view and publish it; readers (the API) acquire the newest,
 * read without a lock, and release it. Nothing in a published view changes,
 * not even lazily. The last release frees it. All functions here may be called from any thread.
 */
#ifndef REACH_SNAPSHOT_SNAPSHOT_H
#define REACH_SNAPSHOT_SNAPSHOT_H

#include "base/status.h"
#include "fingerprint/fingerprint.h"

enum gpu_state {
    GPU_STATE_UNKNOWN = 0, /* seen, never measured */
    GPU_STATE_QUEUED,      /* a measurement waits */
    GPU_STATE_MEASURING,
    GPU_STATE_READY,    /* the fingerprint describes this chip as it is */
    GPU_STATE_FAILED,   /* the last measurement failed; an older fingerprint may be served */
    GPU_STATE_LOST,     /* the driver no longer shows it */
    GPU_STATE_CHECKING, /* a few probes look whether the fingerprint is still true */
    GPU_STATE_STALE     /* it is not, and is served until a new one is there */
};
const char *gpu_state_name(enum gpu_state s);

struct snapshot_gpu {
    struct gpu_identity identity;
    enum gpu_state state;
    struct err last_error; /* status STATUS_OK: none */
    bool has_fingerprint;
    bool unidentified; /* the driver fails or hangs when it identifies the GPU; last_error has the
                          reason */
    bool fingerprint_stale; /* known to be from before a change; last_error has the change */
    struct fingerprint fingerprint;
    char fingerprint_id[FINGERPRINT_ID_BYTES]; /* "" without one */
};

struct snapshot {
    uint64_t generation;     /* rises by one with every publication, from 1 */
    char source[16];         /* "cuda", "simulated" */
    struct err source_error; /* why there are no GPUs; STATUS_OK: there are */
    bool discovering;        /* the source has not answered yet: an empty list claims nothing */
    uint32_t gpu_count;
    struct snapshot_gpu gpus[]; /* by PCI address (identity_compare), the index in docs/http.md */
};

struct snapshot_cell; /* holds the newest */

/* A cell with an empty view, generation 1. NULL without memory. */
struct snapshot_cell *snapshot_cell_new(void);
void snapshot_cell_free(struct snapshot_cell *take);
/* A descriptor (eventfd, non-blocking) that becomes readable with each publication from now on. The
 * cell's; one reader. -1 on failure. Before other threads use the cell. */
int snapshot_cell_watch(struct snapshot_cell *cell);

/* The generation of the newest view, without a lock: is the one at hand still the newest? */
uint64_t snapshot_generation(struct snapshot_cell *cell);
/* The newest view, to be given back with snapshot_release. Never NULL. */
const struct snapshot *snapshot_acquire(struct snapshot_cell *cell);
void snapshot_release(const struct snapshot *take);

/* A zeroed draft with room for `gpu_count` GPUs, or a copy of `from`. NULL without memory. */
struct snapshot *snapshot_draft(uint32_t gpu_count);
struct snapshot *snapshot_draft_copy(const struct snapshot *from);
/* Makes the draft the newest view; sets its generation. Takes it. */
void snapshot_publish(struct snapshot_cell *cell, struct snapshot *take);
/* Throws a draft away. */
void snapshot_discard(struct snapshot *take);

/* By UUID (exact, case ignored) or by decimal index ("0"). NULL if there is no such GPU. */
const struct snapshot_gpu *snapshot_find(const struct snapshot *s, const char *uuid_or_index);
/* Finds a GPU by its name in a request: as above; by the beginning of its UUID; by "pci:N", which
 * counts the GPUs that the driver shows, by PCI address, like nvidia-smi and Slurm; or by "cuda:N",
 * which counts like CUDA without CUDA_DEVICE_ORDER. If NULL, `*err` has the reason, but not for a
 * node without GPUs (STATUS_OK). */
const struct snapshot_gpu *snapshot_resolve(const struct snapshot *s, const char *name,
                                            struct err *err);

#endif
