/* stream_walks.h: counts the accesses of a stream that miss every TLB level. Only what-if includes
 * this header. Only one thread may use a stream at a time. */
#pragma once

#include "clients/lab/whatif/miss_queue.h"
#include "clients/lab/whatif/stream.h"

/* Writes the walks of each part [ends[i - 1], ends[i]) to walks[i]. Unless `cold` is set, each part
 * is run once before it is counted. The TLBs are then full, like in the middle of a long job.
 * `queue` gives misses their latency. If it is NULL, an entry is present as soon as one access
 * missed it. Returns STATUS_NO_MEMORY if out of memory. */
enum status stream_walks_count(const struct stream *s, const struct sim_desc *machine,
                               const struct miss_queue *queue, bool cold, const size_t *ends,
                               uint32_t parts, uint64_t *walks, struct err *err);
