/* queue.h: the table of measurements. A plain structure without a lock: the pipeline holds its own.
 */
#ifndef REACH_MEASURE_QUEUE_H
#define REACH_MEASURE_QUEUE_H

#include "measure/pipeline.h"

enum {
    QUEUE_MAX = 256,       /* remembered */
    QUEUE_MAX_WAITING = 8, /* waiting for one GPU */
    QUEUE_NONE = -1
};

struct measurement_queue {
    uint64_t last;               /* number of the newest; 0: none yet */
    uint64_t numbers[QUEUE_MAX]; /* of the measurement in each slot; 0: free */
    struct measurement items[QUEUE_MAX];
    uint64_t forgotten_done; /* ended ones whose slot another measurement has now */
    uint64_t forgotten_failed;
};

/* Makes a queued measurement, in place of the oldest ended one if the table is full. QUEUE_NONE:
 * all of them are still under way. */
int queue_add(struct measurement_queue *queue, const char *uuid, enum measurement_kind kind,
              enum depth depth, int64_t now);
/* Slot of the measurement with this id, or QUEUE_NONE. */
int queue_find(const struct measurement_queue *queue, const char *id);
/* Slot of the oldest queued measurement of this GPU, or QUEUE_NONE. One GPU of the node at a time
 * is measured at depth memory: two at once write to each other and share the host's memory (two
 * H200s wrote to each other at 71 to 87 GB/s, one alone at 282). */
int queue_next(const struct measurement_queue *queue, const char *uuid);
/* Slot of the queued measurement of this GPU, kind and depth, or QUEUE_NONE. */
int queue_waiting_like(const struct measurement_queue *queue, const char *uuid,
                       enum measurement_kind kind, enum depth depth);
/* Ends a measurement that was cancelled; `why` has the reason. */
void queue_end_cancelled(struct measurement *measurement, const struct err *why, int64_t now);
void queue_count(const struct measurement_queue *queue, struct measurement_counts *out);
/* How many measurements of this GPU are queued. */
uint32_t queue_count_waiting(const struct measurement_queue *queue, const char *uuid);

#endif
