/* snapshot.h: an immutable view of the current fingerprints, from which every request is answered.
 *
 * Writers (the pipeline) build a new view and publish it; readers (the API) acquire the newest
 * view, read it without a lock, and release it. A published view never changes. The last release
 * frees the view. All functions here may be called from any thread.
 */
#pragma once

#include "base/status.h"
#include "fingerprint/fingerprint.h"

enum gpu_state {
    GPU_STATE_UNKNOWN = 0, /* seen, but never measured */
    GPU_STATE_QUEUED,      /* a measurement waits for its turn, or for other work to end */
    GPU_STATE_MEASURING,
    GPU_STATE_READY,    /* the fingerprint describes this chip in its present state */
    GPU_STATE_FAILED,   /* the last measurement failed; an older fingerprint may be served */
    GPU_STATE_LOST,     /* the driver no longer shows the GPU */
    GPU_STATE_CHECKING, /* a few probes check whether the fingerprint is still valid */
    GPU_STATE_STALE     /* the fingerprint is invalid, and is served until there is a new one */
};
const char *gpu_state_name(enum gpu_state s);

/* The result of the newest quick check (check-every). Times are of the wall clock, in seconds since
 * 1970. A text is "" if there is no drift. */
struct snapshot_check {
    int64_t checked_at; /* 0 if there was none */
    int64_t put_off_at; /* last attempt after checked_at; 0 if there was none */
    char put_off[160];  /* the reason why the attempt made no check */
    char drift[160];    /* clock, speed or structure */
    char link[160];     /* the PCIe link */
};

struct snapshot_gpu {
    struct gpu_identity identity;
    struct maybe_u32 minor; /* N of /dev/nvidiaN, from the latest list of the driver */
    enum gpu_state state;
    struct err last_error; /* STATUS_OK means no error */
    bool has_fingerprint;
    bool unidentified; /* the driver fails or hangs when it identifies the GPU; last_error has the
                          reason */
    bool fingerprint_stale; /* the fingerprint is older than a change, which last_error describes */
    struct fingerprint fingerprint;
    char fingerprint_id[FINGERPRINT_ID_BYTES]; /* id of the fingerprint; "" if there is none */
    struct snapshot_check check;
    int64_t next_attempt_at; /* wall clock, seconds since 1970, at which the daemon measures or
                                checks the GPU again; 0 if no attempt is scheduled */
};

struct snapshot {
    uint64_t generation;     /* incremented with every publication, from 1 */
    char source[16];         /* "cuda", "simulated" */
    struct err source_error; /* the reason why there are no GPUs; STATUS_OK if there are some */
    bool discovering;        /* the source has not answered yet: an empty list has no meaning */
    bool stored_only;        /* the GPUs come from the store; no driver was asked */
    uint32_t expected_gpus;  /* GPUs that the node must have; 0 if the number was not given */
    uint32_t gpu_count;
    struct snapshot_gpu gpus[]; /* in order of PCI address (identity_compare), which gives the index
                                   in docs/http.md */
};

struct snapshot_cell; /* holds the newest view */

/* Returns a cell with an empty view of generation 1, or NULL if memory runs out. */
struct snapshot_cell *snapshot_cell_new(void);
void snapshot_cell_free(struct snapshot_cell *take);
/* Returns a descriptor (eventfd, non-blocking) that becomes readable with each publication from now
 * on, or -1 on failure. The cell owns the descriptor, which has one reader. Call the function
 * before other threads use the cell. */
int snapshot_cell_watch(struct snapshot_cell *cell);

/* Returns the generation of the newest view, without a lock. A caller can compare the result with
 * the generation of its view. */
uint64_t snapshot_generation(struct snapshot_cell *cell);
/* Returns the newest view, which is never NULL and must be released with snapshot_release. */
const struct snapshot *snapshot_acquire(struct snapshot_cell *cell);
void snapshot_release(const struct snapshot *take);

/* Return a zeroed draft with room for `gpu_count` GPUs, or a copy of `from`, or NULL if memory runs
 * out. */
struct snapshot *snapshot_draft(uint32_t gpu_count);
struct snapshot *snapshot_draft_copy(const struct snapshot *from);
/* Makes the draft the newest view, sets its generation, and takes ownership. */
void snapshot_publish(struct snapshot_cell *cell, struct snapshot *take);
/* Frees a draft that was not published. */
void snapshot_discard(struct snapshot *take);

enum { SNAPSHOT_TOPICS = 5 };
/* Writes the names of the topics that no measurement of this GPU has covered yet ("throughput"), in
 * the order in which measurements cover them. Returns their number. A number that a measurement has
 * left unknown is not missing, because the fingerprint has its reason. */
uint32_t snapshot_missing(const struct snapshot_gpu *gpu, const char *out[SNAPSHOT_TOPICS]);

/* Finds a GPU by UUID (complete, case ignored) or by decimal index ("0"). Returns NULL if there is
 * no such GPU. */
const struct snapshot_gpu *snapshot_find(const struct snapshot *s, const char *uuid_or_index);
/* Finds a GPU by its name in a request. The name is a UUID, the beginning of a UUID, an index,
 * "pci:N" or "cuda:N". "pci:N" counts the GPUs that the driver shows, by PCI address, like
 * nvidia-smi and Slurm. "cuda:N" counts like CUDA without CUDA_DEVICE_ORDER. "pci:N@A,B" and
 * "cuda:N@A,B" count only the GPUs with the device files /dev/nvidiaA and /dev/nvidiaB. If the
 * result is NULL, `*err` has the reason, or STATUS_OK for a node without GPUs. */
const struct snapshot_gpu *snapshot_resolve(const struct snapshot *s, const char *name,
                                            struct err *err);
