/* store_queue.h: one measurement, stored now or as soon as the disk takes it.
 *
 * A measurement does not depend on the disk. What cannot be written is kept in memory, in order,
 * and maintenance (store.h) writes it when writing works. The memory is bounded: beyond the limit
 * the observations of the oldest measurements are dropped, and if that is not enough the oldest
 * fingerprints. A crash loses what is in memory; the health reports how much that is.
 *
 * A run belongs to one thread; any thread may have one.
 */
#ifndef REACH_STORE_STORE_QUEUE_H
#define REACH_STORE_STORE_QUEUE_H

#include "store/store.h"

struct store_run;

/* 8 H200 measured at depth full need 90 MiB. */
#define STORE_QUEUE_LIMIT_BYTES ((size_t)128 << 20)
/* Before the threads start. */
void store_queue_set_limit(struct store *store, size_t bytes);

/* Begins a run, as store_begin_run. The caller owns `*out` until store_run_finish or
 * store_run_fail. STATUS_NO_MEMORY. */
enum status store_run_begin(struct store *store, const struct gpu_identity *gpu,
                            const struct gpu_limits *limits, enum depth depth, int64_t started_at,
                            struct store_run **out, struct err *err);
/* As store_add_observation. STATUS_OK: stored, or kept until it can be. */
enum status store_run_observe(struct store *store, struct store_run *run,
                              const struct observation *o, struct err *err);
/* As store_finish_run. Takes the run if it succeeds. */
enum status store_run_finish(struct store *store, struct store_run *take,
                             const struct fingerprint *measured, const struct fingerprint *known,
                             struct err *err);
/* As store_fail_run. Takes the run in any case. */
enum status store_run_fail(struct store *store, struct store_run *take, const struct err *why,
                           struct err *err);

#endif
