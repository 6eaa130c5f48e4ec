/* queue.c: see queue.h. The 256 slots are searched one by one: requests are rare, and the search is
 * cheap compared to a request. */
#include "measure/queue.h"

#include "types/name_of.h"

#include <stdio.h>
#include <string.h>

NAME_FUNCTION(
    measurement_state_name, enum measurement_state, [MEASUREMENT_QUEUED] = "queued",
    [MEASUREMENT_RUNNING] = "running", [MEASUREMENT_DONE] = "done", [MEASUREMENT_FAILED] = "failed")

NAME_FUNCTION(measurement_kind_name,
              enum measurement_kind, [MEASUREMENT_NEW] = "measure", [MEASUREMENT_CHECK] = "check")

int queue_add(struct measurement_queue *queue, const char *uuid, enum measurement_kind kind,
              enum depth depth, int64_t now)
{
    int slot = QUEUE_NONE;

    for (int i = 0; i < QUEUE_MAX; i++) {
        if (queue->numbers[i] == 0) {
            slot = i;
            break;
        }
        if (measurement_is_ended(&queue->items[i]) &&
            (slot == QUEUE_NONE || queue->numbers[i] < queue->numbers[slot]))
            slot = i;
    }
    if (slot == QUEUE_NONE)
        return QUEUE_NONE;
    struct measurement *measurement = &queue->items[slot];

    if (queue->numbers[slot] != 0) {
        queue->forgotten_done += measurement->state == MEASUREMENT_DONE;
        queue->forgotten_failed += measurement->state == MEASUREMENT_FAILED;
    }
    queue->numbers[slot] = ++queue->last;
    *measurement = (struct measurement){
        .kind = kind, .depth = depth, .state = MEASUREMENT_QUEUED, .queued_at = now};
    snprintf(measurement->id, sizeof measurement->id, "m-%llu", (unsigned long long)queue->last);
    snprintf(measurement->uuid, sizeof measurement->uuid, "%s", uuid);
    snprintf(measurement->message, sizeof measurement->message, "waiting for its turn");
    return slot;
}

int queue_find(const struct measurement_queue *queue, const char *id)
{
    for (int i = 0; i < QUEUE_MAX; i++) {
        if (queue->numbers[i] != 0 && strcmp(queue->items[i].id, id) == 0)
            return i;
    }
    return QUEUE_NONE;
}

static bool queue_is_waiting(const struct measurement_queue *queue, int slot, const char *uuid)
{
    return queue->numbers[slot] != 0 && queue->items[slot].state == MEASUREMENT_QUEUED &&
           strcmp(queue->items[slot].uuid, uuid) == 0;
}

/* Returns whether a measurement at depth memory is running. */
static bool queue_memory_is_taken(const struct measurement_queue *queue)
{
    for (int i = 0; i < QUEUE_MAX; i++) {
        if (queue->numbers[i] != 0 && queue->items[i].state == MEASUREMENT_RUNNING &&
            queue->items[i].depth == DEPTH_MEMORY)
            return true;
    }
    return false;
}

int queue_next(const struct measurement_queue *queue, const char *uuid)
{
    const bool taken = queue_memory_is_taken(queue);
    int slot = QUEUE_NONE;

    for (int i = 0; i < QUEUE_MAX; i++) {
        if (queue_is_waiting(queue, i, uuid) && !(taken && queue->items[i].depth == DEPTH_MEMORY) &&
            (slot == QUEUE_NONE || queue->numbers[i] < queue->numbers[slot]))
            slot = i;
    }
    return slot;
}

int queue_waiting_like(const struct measurement_queue *queue, const char *uuid,
                       enum measurement_kind kind, enum depth depth)
{
    for (int i = 0; i < QUEUE_MAX; i++) {
        if (queue_is_waiting(queue, i, uuid) && queue->items[i].kind == kind &&
            queue->items[i].depth == depth)
            return i;
    }
    return QUEUE_NONE;
}

void queue_end_cancelled(struct measurement *measurement, const struct err *why, int64_t now)
{
    measurement->state = MEASUREMENT_FAILED;
    measurement->ended_at = now;
    measurement->error = *why;
    snprintf(measurement->message, sizeof measurement->message, "%.150s", why->text);
}

void queue_count(const struct measurement_queue *queue, struct measurement_counts *out)
{
    *out = (struct measurement_counts){.done = queue->forgotten_done,
                                       .failed = queue->forgotten_failed};
    for (int i = 0; i < QUEUE_MAX; i++) {
        if (queue->numbers[i] == 0)
            continue;
        const enum measurement_state state = queue->items[i].state;

        out->queued += state == MEASUREMENT_QUEUED;
        out->running += state == MEASUREMENT_RUNNING;
        out->done += state == MEASUREMENT_DONE;
        out->failed += state == MEASUREMENT_FAILED;
    }
}

uint32_t queue_count_waiting(const struct measurement_queue *queue, const char *uuid)
{
    uint32_t count = 0;

    for (int i = 0; i < QUEUE_MAX; i++)
        count += queue_is_waiting(queue, i, uuid);
    return count;
}
