/* gpu_thread_publish.h: publishes the changes of one GPU as a new snapshot. The mutex of the
 * pipeline is held. */
#pragma once

#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "snapshot/snapshot.h"

struct gpu_thread;

/* A change of a published GPU. Members that are not set change nothing. */
struct gpu_update {
    enum gpu_state state;
    bool has_error;                  /* `error` is set; STATUS_OK in it clears the error */
    bool stale;                      /* the published fingerprint is stale */
    bool has_check;                  /* `check` is set */
    bool any;                        /* any member is set */
    struct fingerprint *fingerprint; /* a new fingerprint, which is not stale */
    char fingerprint_id[FINGERPRINT_ID_BYTES];
    struct err error;
    struct snapshot_check check;
};

/* The first publishes `update`, whose fingerprint it takes; the second publishes the pending
 * update. */
void gpu_thread_publish(struct gpu_thread *thread, const struct gpu_update *update);
void gpu_thread_publish_pending(struct gpu_thread *thread);
