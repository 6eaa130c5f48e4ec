/* host_batch.h: the time of a batch of accesses to host memory out of reach, in passes over scopes
 * and after a sort (docs/planner.md, "Memory"). In both, the accesses of a TLB entry come close
 * together, so that a miss serves several of them. The functions are pure, allocate nothing, and
 * may be called on any thread.
 */
#pragma once

#include "planner/access_cost.h"
#include "planner/requests.h"

struct host_batch {
    const struct memory_request *request; /* accesses are above 0, and bytes out of reach */
    const struct memory_facts *memory;    /* reach_bytes and entry_bytes are known */
    const struct access_cost *cost;       /* of the accesses to this memory */
    uint64_t longest_bytes;               /* longest region of the curve behind `cost` */
    double stream_gbps; /* throughput at which the GPU's own memory is scanned; 0 if unknown */
};

/* Returns the number of passes with which the batch takes the shortest time, in nanoseconds in
 * `*out_ns`. Scopes halve from the whole memory down to a quarter of the reach, and are shorter
 * than the longest region. Returns 0 if no number of passes is worth its effort. */
uint64_t host_batch_passes(const struct host_batch *b, double *out_ns);

/* Returns the nanoseconds of one launch after a sort by address, without the sort. Each TLB entry
 * is then loaded once. Returns 0 if the time is not known or not worth a sort. */
double host_batch_sorted_ns(const struct host_batch *b);
