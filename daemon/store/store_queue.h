/* store_queue.h: stores a measurement now, or as soon as the disk works.
 *
 * A measurement does not depend on the disk. Records that cannot be written are kept in memory, in
 * order, and maintenance (store.h) writes them when writing works. The memory is bounded: beyond
 * the limit the observations of the oldest measurements are dropped, followed by the oldest
 * fingerprints if necessary. A crash loses the records in memory; the health reports their number.
 *
 * A run belongs to one thread; any thread may have runs.
 */
#pragma once

#include "store/store.h"

struct store_run;

/* The limit of the queue. 8 H200 measured at depth full need 90 MiB. */
#define STORE_QUEUE_LIMIT_BYTES ((size_t)128 << 20)
/* Sets the limit. Call it before the threads start. */
void store_queue_set_limit(struct store *store, size_t bytes);

/* Begins a run like store_begin_run. The caller owns `*out` until store_run_finish or
 * store_run_fail. Returns STATUS_NO_MEMORY if memory runs out. */
enum status store_run_begin(struct store *store, const struct gpu_identity *gpu,
                            const struct gpu_limits *limits, enum depth depth, int64_t started_at,
                            struct store_run **out, struct err *err);
/* Adds an observation like store_add_observation. Returns STATUS_OK if the observation is stored,
 * or kept in the queue. */
enum status store_run_observe(struct store *store, struct store_run *run,
                              const struct observation *o, struct err *err);
/* Ends a run like store_finish_run. Takes ownership of the run if it succeeds. */
enum status store_run_finish(struct store *store, struct store_run *take,
                             const struct fingerprint *measured, const struct fingerprint *known,
                             struct err *err);
/* Ends a run like store_fail_run. Takes ownership of the run in any case. */
enum status store_run_fail(struct store *store, struct store_run *take, const struct err *why,
                           struct err *err);
