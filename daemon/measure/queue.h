/* queue.h: the table of measurements. It is a plain structure without a lock, because the pipeline
 * has a lock.
 */
#pragma once

#include "measure/pipeline.h"

enum {
    QUEUE_MAX = 256,       /* measurements in the table */
    QUEUE_MAX_WAITING = 8, /* measurements that wait for one GPU */
    QUEUE_NONE = -1
};

struct measurement_queue {
    uint64_t last;               /* number of the newest measurement; 0 if there was none */
    uint64_t numbers[QUEUE_MAX]; /* number of the measurement in each slot; 0 if free */
    struct measurement items[QUEUE_MAX];
    uint64_t forgotten_done; /* ended measurements whose slot was reused */
    uint64_t forgotten_failed;
};

/* Makes a queued measurement. Replaces the oldest ended measurement if the table is full. Returns
 * QUEUE_NONE if no measurement in the table has ended. */
int queue_add(struct measurement_queue *queue, const char *uuid, enum measurement_kind kind,
              enum depth depth, int64_t now);
/* Returns the slot of the measurement with this id, or QUEUE_NONE. */
int queue_find(const struct measurement_queue *queue, const char *id);
/* Returns the slot of the oldest queued measurement of this GPU, or QUEUE_NONE. One GPU of the node
 * at a time is measured at depth memory. Two GPUs at once would write to each other and share the
 * host's memory. (Two H200s wrote to each other at 71 to 87 GB/s, one H200 alone wrote at 282.) */
int queue_next(const struct measurement_queue *queue, const char *uuid);
/* Returns the slot of the queued measurement of this GPU, kind and depth, or QUEUE_NONE. */
int queue_waiting_like(const struct measurement_queue *queue, const char *uuid,
                       enum measurement_kind kind, enum depth depth);
/* Ends a measurement that was cancelled; `why` has the reason. */
void queue_end_cancelled(struct measurement *measurement, const struct err *why, int64_t now);
/* Counts the measurements by state. */
void queue_count(const struct measurement_queue *queue, struct measurement_counts *out);
/* Returns the number of queued measurements of this GPU. */
uint32_t queue_count_waiting(const struct measurement_queue *queue, const char *uuid);
