/* start.h: the first steps with a GPU: its draft, its thread, its first measurement. */
#pragma once

#include "measure/pipeline.h"

/* Reads the data of these GPUs from the store, to be published. The mutex is not held. Returns
 * STATUS_NO_MEMORY if memory runs out. */
enum status pipeline_draft(struct pipeline *p, const struct gpu_identity *gpus, uint32_t count,
                           struct snapshot **out, struct err *err);

/* Returns the state of a GPU without a queued measurement. The state follows from the known results
 * of the GPU. */
enum gpu_state pipeline_idle_state(const struct snapshot_gpu *gpu);
/* Makes the thread of a GPU. The mutex is held. Returns STATUS_NO_MEMORY if memory runs out. */
enum status pipeline_start_thread(struct pipeline *p, const struct gpu_identity *identity,
                                  bool expected, struct err *err);
/* Publishes `take`, and queues the measurements that the options require for the GPUs that `which`
 * marks. The mutex is held. */
void pipeline_publish_and_queue(struct pipeline *p, struct snapshot *take,
                                const bool which[REACH_MAX_GPUS]);
/* Removes a GPU from a draft and ends its thread. The mutex is held. */
void pipeline_remove(struct pipeline *p, struct snapshot *draft, uint32_t index);
/* Publishes the GPUs whose fingerprints are in the store, until the driver is queried. The mutex is
 * not held. */
enum status pipeline_publish_expected(struct pipeline *p, struct err *err);
