/* gpu_thread.h: the thread of one GPU, which measures and checks it. */
#pragma once

#include "measure/pipeline.h"

#define MEASURE_AGAIN_HINT "Measure again: POST /v1/gpus/{gpu}/measurements, or reachctl measure."

struct gpu_listing;
struct gpu_thread;

/* Runs the thread of a GPU. `self` is the struct gpu_thread. */
void *gpu_thread_main(void *self);

/* Queues a measurement for `thread`, or joins a measurement that waits. The mutex is held. Returns
 * STATUS_FULL if the queue is full. */
enum status gpu_thread_queue(struct gpu_thread *thread, enum measurement_kind kind,
                             enum depth depth, struct measurement *out, struct err *err);

/* Ends the measurement in `slot`, which belongs to this thread. The mutex is held. Returns
 * STATUS_CONFLICT if it has ended. */
enum status gpu_thread_cancel(struct gpu_thread *thread, int slot, struct err *err);

/* Lists the GPUs through a worker. Each GPU is published as soon as the driver has identified it.
 * Meanwhile `*slot` is the worker, so that pipeline_stop can cancel it. `*hung_pid` is the process
 * of a worker that hangs and is abandoned. The mutex is not held. */
void gpu_thread_list_gpus(struct pipeline *p, struct worker **slot, int *hung_pid,
                          struct gpu_listing *out);
