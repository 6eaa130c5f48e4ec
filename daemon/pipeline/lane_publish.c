/* lane_publish.c: what one GPU's thread has published about it. News that finds no memory is owed:
 * it is joined with what comes later, and published as soon as there is memory again. See lane.h.
 */
#include "base/log.h"
#include "pipeline/lane.h"

#include <stdlib.h>
#include <string.h>

/* Adds to what is owed; the later word counts. A fingerprint changes hands. */
static void lane_add_news(struct lane_news *owed, const struct lane_news *news)
{
    owed->any = true;
    owed->state = news->state;
    owed->stale = owed->stale || news->stale;
    if (news->has_error) {
        owed->has_error = true;
        owed->error = news->error;
    }
    if (news->fingerprint) {
        free(owed->fingerprint);
        owed->fingerprint = news->fingerprint;
        memcpy(owed->fingerprint_id, news->fingerprint_id, sizeof owed->fingerprint_id);
        owed->stale = false;
    }
}

static void lane_apply(const struct lane_news *news, struct snapshot_gpu *gpu)
{
    gpu->state = news->state;
    if (news->has_error) {
        gpu->last_error = news->error;
    }
    if (news->fingerprint) {
        gpu->fingerprint_stale = false;
        gpu->has_fingerprint = true;
        gpu->fingerprint = *news->fingerprint;
        memcpy(gpu->fingerprint_id, news->fingerprint_id, sizeof gpu->fingerprint_id);
        gpu->identity = gpu->fingerprint.gpu;
    }
    gpu->fingerprint_stale = gpu->fingerprint_stale || news->stale;
}

/* Publishes what is owed. Without memory an older view stays published and the lane's thread tries
 * again. The mutex is held, so that no publication loses another. */
void lane_publish_owed(struct lane *lane)
{
    struct snapshot_cell *cell = lane->pipeline->cell;
    const struct snapshot *current = snapshot_acquire(cell);
    struct snapshot *draft = snapshot_draft_copy(current);

    snapshot_release(current);
    if (!draft) {
        log_error("gpu %u: no memory for a snapshot; an older one stays published", lane->index);
        pthread_cond_signal(&lane->wake);
        return;
    }
    lane_apply(&lane->owed, &draft->gpus[lane->index]);
    snapshot_publish(cell, draft);
    free(lane->owed.fingerprint);
    lane->owed = (struct lane_news){.any = false};
}

void lane_publish(struct lane *lane, const struct lane_news *news)
{
    lane_add_news(&lane->owed, news);
    lane_publish_owed(lane);
}

void lane_forget(struct lane *lane)
{
    free(lane->owed.fingerprint);
    lane->owed.fingerprint = NULL;
}
