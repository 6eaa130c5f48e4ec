/* hotplug.c: GPUs that come, go or change while the daemon runs. Each list of the driver is merged
 * with the published GPUs:
 *
 *     listed, and not known          it is new, and gets a thread
 *     listed, and expected           it is in the store at the start: checked, or measured if
 * changed listed, and lost               it is back: checked, or measured if it has no fingerprint
 *     listed with another identity   (driver, SMs, memory) its fingerprint is stale
 *     listed, and divided            it has no results; its instances count as GPUs
 *     listed, and whole again        its fingerprint in the store is checked
 *     listed with an error           the driver cannot identify it: it has failed, with the reason
 *     not listed                     it is lost until it is back or an administrator forgets it
 *
 * A GPU with a running measurement is not changed, because the measurement ends with the current
 * state. The driver is queried at the start, on SIGHUP and while a GPU is lost, otherwise never.
 * The list of the start is merged whenever it grows, so a GPU that is slow to answer delays no
 * other.
 */
#include "measure/hotplug.h"

#include "analysis/check.h"
#include "base/log.h"
#include "measure/gpu_thread.h"
#include "measure/order.h"
#include "measure/pipeline_state.h"
#include "measure/start.h"
#include "snapshot/health.h"

#include <string.h>
#include <strings.h>

/* The hint for a lost GPU. */
#define FORGET_HINT                                                                                \
    "If it will not come back: reachctl forget UUID, or DELETE /v1/gpus/{gpu}. It is looked for "  \
    "from time to time."

/* The hint for a driver that fails or shows no GPU. A container keeps the driver library and the
 * devices with which it was started. */
#define DRIVER_HINT                                                                                \
    "If the driver was replaced or the container lost its devices, restart the container. The "    \
    "driver is queried again from time to time."

/* Returns the index of a UUID in a view, or the number of its GPUs if it is not there. */
static uint32_t index_of(const struct snapshot *s, const char *uuid)
{
    const struct snapshot_gpu *const gpu = snapshot_find(s, uuid);

    return gpu ? (uint32_t)(gpu - s->gpus) : s->gpu_count;
}

/* Returns the GPU of a list with this UUID, or NULL if it is not there. */
static const struct gpu_listed *find_listed(const struct gpu_listing *listing, const char *uuid)
{
    for (uint32_t i = 0; i < listing->count; i++) {
        if (strcasecmp(listing->gpus[i].identity.uuid, uuid) == 0)
            return &listing->gpus[i];
    }
    return NULL;
}

/* Returns the first GPU of a list to merge. When the list is complete, all its GPUs are merged
 * again, because some may have had no room before. */
static uint32_t first_new(const struct gpu_listing *listing)
{
    return listing->complete ? 0 : listing->merged;
}

/* Returns whether a GPU that was divided is whole again. */
static bool is_whole_again(const struct gpu_identity *was, const struct gpu_identity *now)
{
    return identity_is_divided(was) && !identity_is_divided(now);
}

/* Returns whether the store must be read for this GPU. Such a GPU is not published, or not yet in
 * its present form. The mutex is held. */
static bool is_arrival(struct pipeline *p, const struct snapshot *s, const struct gpu_listed *gpu)
{
    const struct gpu_thread *const thread = pipeline_find_thread(p, gpu->identity.uuid);
    const uint32_t at = index_of(s, gpu->identity.uuid);

    if (at == s->gpu_count)
        return true;
    return gpu->error.status == STATUS_OK &&
           ((thread && thread->expected) || is_whole_again(&s->gpus[at].identity, &gpu->identity));
}

/* Collects the arrivals of the list, with their data in the store. The mutex is not held. */
static enum status find_arrivals(struct pipeline *p, const struct gpu_listing *listing,
                                 struct snapshot **out, struct err *err)
{
    struct gpu_identity arrivals[REACH_MAX_GPUS];
    const struct snapshot *const s = snapshot_acquire(p->cell);
    uint32_t n = 0;

    pthread_mutex_lock(&p->mutex);
    for (uint32_t i = first_new(listing); i < listing->count; i++) {
        if (is_arrival(p, s, &listing->gpus[i]))
            arrivals[n++] = listing->gpus[i].identity;
    }
    pthread_mutex_unlock(&p->mutex);
    snapshot_release(s);
    return pipeline_draft(p, arrivals, n, out, err);
}

/* Handles a GPU that the driver lists with an error. Returns whether anything has changed. */
static bool merge_unidentified(struct gpu_thread *thread, const struct err *why,
                               struct snapshot_gpu *gpu)
{
    struct err now = *why;

    err_prefix(&now, "the driver cannot identify the GPU");
    if (gpu->unidentified && strcmp(gpu->last_error.text, now.text) == 0)
        return false;
    thread->lost = true;
    thread->expected = false;
    thread->retry_at = 0;
    gpu->unidentified = true;
    gpu->state = GPU_STATE_FAILED;
    gpu->last_error = now;
    log_warning("gpu %s: %s", gpu->identity.uuid, gpu->last_error.text);
    pthread_cond_signal(&thread->wake); /* the thread polls for it from time to time */
    return true;
}

/* Handles a known GPU that the driver lists. Returns true if `gpu` has changed; `thread` then has
 * work if the options require it. The mutex is held. */
static bool merge_listed(struct gpu_thread *thread, const struct gpu_identity *now,
                         struct snapshot_gpu *gpu)
{
    struct check check;

    if (thread->expected || is_whole_again(&gpu->identity, now))
        return false; /* the GPU is among the arrivals */
    check_identity(&gpu->identity, now, &check);
    if (!thread->lost && check.result != CHECK_CHANGED)
        return false;
    log_info("gpu %u %s %s%s", thread->index, now->uuid,
             thread->lost ? "is back" : "has changed: ", thread->lost ? "" : check.message);
    thread->lost = false;
    thread->retry_at = thread->retry_pause = thread->rediscover_at = 0;
    thread->rediscover_pause = 0;
    gpu->unidentified = false;
    gpu->identity = *now;
    gpu->last_error = (struct err){.status = STATUS_OK};
    if (identity_is_divided(now)) {
        gpu->has_fingerprint = gpu->fingerprint_stale = false;
        gpu->fingerprint_id[0] = '\0';
    }
    if (gpu->has_fingerprint)
        check_identity(&gpu->fingerprint.gpu, now, &check);
    if (gpu->has_fingerprint && check.result == CHECK_CHANGED) {
        gpu->fingerprint_stale = true;
        err_set_hint(&gpu->last_error, STATUS_CONFLICT, MEASURE_AGAIN_HINT, "%s; measure again",
                     check.message);
    }
    gpu->state = pipeline_idle_state(gpu);
    return true;
}

/* Returns the listed GPU that has the address of this lost GPU, or NULL if there is none. */
static const struct gpu_identity *find_at(const struct gpu_listing *listing,
                                          const struct gpu_identity *lost)
{
    for (uint32_t i = 0; i < listing->count; i++) {
        if (identity_is_same_address(&listing->gpus[i].identity, lost) &&
            lost->mig == listing->gpus[i].identity.mig &&
            lost->mlopart == listing->gpus[i].identity.mlopart)
            return &listing->gpus[i].identity;
    }
    return NULL;
}

/* Handles a GPU that the driver does not list. The mutex is held. */
static bool merge_absent(struct gpu_thread *thread, const struct gpu_listing *listing,
                         struct snapshot_gpu *gpu)
{
    const struct gpu_identity *const other = find_at(listing, &gpu->identity);
    const char *const uuid = gpu->identity.uuid;

    if (thread->lost && gpu->state == GPU_STATE_LOST)
        return false;
    thread->lost = true;
    thread->expected = false;
    thread->retry_at = 0;
    gpu->unidentified = false;
    gpu->state = GPU_STATE_LOST;
    if (other)
        err_set_hint(&gpu->last_error, STATUS_NOT_FOUND, FORGET_HINT,
                     "the driver shows no GPU %s; %s is at its PCI address", uuid, other->uuid);
    else if (listing->unnamed)
        err_set_hint(
            &gpu->last_error, STATUS_NOT_FOUND, FORGET_HINT,
            "the driver shows no GPU %s; the GPU may be one of %u that cannot be identified: "
            "%.200s",
            uuid, listing->unnamed, listing->why_unnamed.text);
    else if (listing->why.status)
        err_set_hint(&gpu->last_error, STATUS_NOT_FOUND, DRIVER_HINT,
                     "the driver shows no GPU %s: %.300s", uuid, listing->why.text);
    else
        err_set_hint(&gpu->last_error, STATUS_NOT_FOUND, FORGET_HINT, "the driver shows no GPU %s",
                     uuid);
    log_warning("gpu %s is lost: %s", uuid, gpu->last_error.text);
    pthread_cond_signal(&thread->wake); /* the thread polls for it from time to time */
    return true;
}

/* Returns whether the driver itself reported the error, which then applies to each of its GPUs. */
static bool is_of_driver(enum status status)
{
    return status == STATUS_GPU_FAULT || status == STATUS_NOT_PERMITTED ||
           status == STATUS_DRIVER_TOO_OLD;
}

/* Handles a driver that has no list, at the start or later; it is queried again. The mutex is held.
 */
static bool merge_unanswered(struct gpu_thread *thread, const struct err *why,
                             struct snapshot_gpu *gpu)
{
    struct err local;

    if (!thread->expected) {
        err_set_hint(&local, why->status, DRIVER_HINT, "%s", why->text);
        return is_of_driver(why->status) && merge_unidentified(thread, &local, gpu);
    }
    if (strcmp(gpu->last_error.text, why->text) == 0)
        return false;
    gpu->unidentified = why->status != STATUS_NO_DRIVER;
    gpu->state = gpu->unidentified ? GPU_STATE_FAILED : GPU_STATE_LOST;
    gpu->last_error = *why;
    return true;
}

/* Merges known GPUs; `changed` marks the GPUs to queue. Returns true if any published GPU has
 * changed. The mutex is held. */
static bool merge_known(struct pipeline *p, const struct gpu_listing *listing,
                        struct snapshot *draft, bool changed[REACH_MAX_GPUS])
{
    bool any = false;

    for (uint32_t i = 0; i < draft->gpu_count; i++) {
        struct snapshot_gpu *const gpu = &draft->gpus[i];
        struct gpu_thread *const thread = pipeline_find_thread(p, gpu->identity.uuid);
        if (!thread || thread->slot != QUEUE_NONE || find_listed(listing, gpu->identity.uuid))
            continue;
        if (listing->complete)
            any = merge_absent(thread, listing, gpu) || any;
        else if (listing->why.status != STATUS_OK)
            any = merge_unanswered(thread, &listing->why, gpu) || any;
    }
    for (uint32_t i = first_new(listing); i < listing->count; i++) {
        const struct gpu_listed *const now = &listing->gpus[i];
        const uint32_t at = index_of(draft, now->identity.uuid);
        struct gpu_thread *const thread = pipeline_find_thread(p, now->identity.uuid);
        if (at == draft->gpu_count || !thread || thread->slot != QUEUE_NONE)
            continue;
        if (now->error.status != STATUS_OK) {
            any = merge_unidentified(thread, &now->error, &draft->gpus[at]) || any;
            continue;
        }
        changed[at] = merge_listed(thread, &now->identity, &draft->gpus[at]);
        any = any || changed[at];
    }
    return any;
}

/* Makes room for a listed GPU: removes a lost GPU, which stays in the store. The mutex is held. */
static bool make_room(struct pipeline *p, struct snapshot *draft, bool changed[REACH_MAX_GPUS])
{
    uint32_t at = draft->gpu_count;

    while (at > 0 && draft->gpus[at - 1].state != GPU_STATE_LOST)
        at--;
    if (at-- == 0)
        return false;
    log_warning("gpu %s is lost and no longer listed: the limit is %d GPUs",
                draft->gpus[at].identity.uuid, REACH_MAX_GPUS);
    pipeline_remove(p, draft, at);
    memmove(changed + at, changed + at + 1, (REACH_MAX_GPUS - at - 1) * sizeof *changed);
    return true;
}

/* Handles a published GPU for which the store had to be read: it is back unchanged, or whole
 * again. */
static bool merge_recalled(struct gpu_thread *thread, const struct snapshot_gpu *now,
                           struct snapshot_gpu *gpu)
{
    if (!thread || thread->slot != QUEUE_NONE ||
        !(thread->expected || is_whole_again(&gpu->identity, &now->identity)))
        return false;
    thread->lost = thread->expected = false;
    thread->rediscover_at = thread->rediscover_pause = 0;
    *gpu = *now;
    return true;
}

/* Starts the threads of new GPUs. Returns whether there were any. The mutex is held. */
static bool merge_arrivals(struct pipeline *p, const struct gpu_listing *listing,
                           const struct snapshot *arrivals, struct snapshot *draft,
                           bool changed[REACH_MAX_GPUS])
{
    struct err err = {.text = "the table of GPUs is full"};
    bool any = false;

    for (uint32_t i = 0; i < arrivals->gpu_count; i++) {
        const struct gpu_identity *const now = &arrivals->gpus[i].identity;
        const struct gpu_listed *const listed = find_listed(listing, now->uuid);
        const bool failed = listed && listed->error.status != STATUS_OK;
        const uint32_t known = index_of(draft, now->uuid);
        if (known < draft->gpu_count) { /* another list may have added the GPU meanwhile */
            changed[known] = merge_recalled(pipeline_find_thread(p, now->uuid), &arrivals->gpus[i],
                                            &draft->gpus[known]) ||
                             changed[known];
            any = any || changed[known];
            continue;
        }
        if ((draft->gpu_count == REACH_MAX_GPUS && !make_room(p, draft, changed)) ||
            pipeline_start_thread(p, now, false, &err)) {
            log_error("gpu %s is not served: %s", now->uuid, err.text);
            continue;
        }
        if (!draft->discovering && !failed)
            log_info("gpu %s has arrived: %s, %u SMs", now->uuid, now->name, now->sm_count);
        const uint32_t at = draft->gpu_count++;
        draft->gpus[at] = arrivals->gpus[i];
        if (failed)
            (void)merge_unidentified(pipeline_find_thread(p, now->uuid), &listed->error,
                                     &draft->gpus[at]);
        changed[at] = !failed;
        any = true;
    }
    return any;
}

/* Updates the numbers of device files. The order in which drivers are bound to GPUs decides them,
 * so no identity has them. Returns true if one has changed. */
static bool merge_minors(const struct gpu_listing *listing, struct snapshot *draft)
{
    bool any = false;

    for (uint32_t i = 0; i < listing->count; i++) {
        const struct maybe_u32 now = listing->gpus[i].minor;
        const uint32_t at = index_of(draft, listing->gpus[i].identity.uuid);
        if (at == draft->gpu_count ||
            (draft->gpus[at].minor.known == now.known && draft->gpus[at].minor.v == now.v))
            continue;
        draft->gpus[at].minor = now;
        any = true;
    }
    return any;
}

/* Updates the state of the list itself: whether discovery is done, and why there are no GPUs or
 * some are missing. Returns true if it has changed. */
static bool merge_source(struct pipeline *p, const struct gpu_listing *listing,
                         struct snapshot *draft)
{
    const bool was_discovering = draft->discovering;
    struct err why = listing->why;

    if (!listing->complete && !why.status)
        return false;
    if (listing->complete && listing->unnamed)
        err_set(&why, listing->why_unnamed.status, "%u GPU%s cannot be identified: %.300s",
                listing->unnamed, listing->unnamed == 1 ? "" : "s", listing->why_unnamed.text);
    if (p->discovery.found &&
        listing->why.status) /* the GPUs that were published before have the error */
        return false;
    draft->discovering = false;
    if (!was_discovering && strcmp(draft->source_error.text, why.text) == 0)
        return false;
    draft->source_error = why;
    return true;
}

static void log_discovered(const struct snapshot *s)
{
    for (uint32_t i = 0; i < s->gpu_count; i++) {
        const struct gpu_identity *const id = &s->gpus[i].identity;
        log_info("gpu %u %s: %s, %u SMs, %s%s", i, id->uuid, id->name, id->sm_count,
                 s->gpus[i].has_fingerprint ? s->gpus[i].fingerprint_id : "not measured",
                 s->gpus[i].state == GPU_STATE_LOST ? ", lost" : "");
    }
}

/* Reports a change of the number of missing GPUs in one line. `missing` is the number before, or 0
 * during discovery. */
static void log_missing(const struct snapshot *s, uint32_t missing)
{
    const uint32_t now = health_count_missing(s);

    if (now > missing)
        log_warning("%u of %u expected GPUs were found", s->expected_gpus - now, s->expected_gpus);
    else if (now == 0 && missing > 0)
        log_info("all %u expected GPUs were found", s->expected_gpus);
}

/* Returns a copy of the newest view with room for `more` GPUs, which are not counted yet. The mutex
 * is held. */
static struct snapshot *copy_with_room(struct pipeline *p, uint32_t more)
{
    const struct snapshot *const now = snapshot_acquire(p->cell);
    struct snapshot *const draft = snapshot_draft(now->gpu_count + more);

    if (draft)
        memcpy(draft, now, sizeof(*now) + now->gpu_count * sizeof(now->gpus[0]));
    snapshot_release(now);
    return draft;
}

/* Merges a list with the published GPUs, and publishes the result. The mutex is held. */
static void merge(struct pipeline *p, const struct gpu_listing *listing,
                  const struct snapshot *arrivals)
{
    bool changed[REACH_MAX_GPUS] = {false};
    struct snapshot *draft = copy_with_room(p, arrivals->gpu_count);

    if (!draft) {
        log_error(
            "cannot allocate a snapshot: out of memory; the previous snapshot stays published");
        return;
    }
    const bool was_discovering = draft->discovering;
    const uint32_t missing = health_count_missing(draft);
    const bool known = merge_known(p, listing, draft, changed);
    const bool arrived = merge_arrivals(p, listing, arrivals, draft, changed);
    const bool minors = merge_minors(listing, draft);
    const bool source = merge_source(p, listing, draft);

    if (!known && !arrived && !minors && !source) {
        snapshot_discard(draft);
        return;
    }
    draft = pipeline_sort(p, draft, changed);
    p->discovery.found = p->discovery.found || listing->complete;
    if (was_discovering && !draft->discovering)
        log_discovered(draft);
    log_missing(draft, missing);
    pipeline_publish_and_queue(p, draft, changed);
    pipeline_wake_all(p);
}

/* Returns whether this list must not be merged yet. After a failure at the start, discovery counts
 * as done, so only a complete list is merged. */
static bool is_too_early(struct pipeline *p, const struct gpu_listing *listing)
{
    const struct snapshot *const s = snapshot_acquire(p->cell);

    pthread_mutex_lock(&p->mutex);
    const bool early =
        !listing->complete && !listing->why.status && !s->discovering && !p->discovery.found;
    pthread_mutex_unlock(&p->mutex);
    snapshot_release(s);
    return early;
}

void pipeline_merge(struct pipeline *p, struct gpu_listing *listing)
{
    struct snapshot *arrivals = NULL;
    struct err err = {0};

    if (is_too_early(p, listing))
        return;
    if (find_arrivals(p, listing, &arrivals, &err)) {
        log_error("cannot read the GPU list of the driver: %s", err.text);
        return;
    }
    pthread_mutex_lock(&p->mutex);
    if (!p->stopping)
        merge(p, listing, arrivals);
    pthread_mutex_unlock(&p->mutex);
    snapshot_discard(arrivals);
    listing->merged = listing->count;
}
