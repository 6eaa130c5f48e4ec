/* miss_queue.h: counts page walks with a clock, so that misses take time.
 *
 * A miss of the last TLB level is resolved after its latency. Until then, another access to the
 * same entry from an SM of the group also misses. This access joins the pending walk if it is to
 * the same page, and starts a second walk otherwise. A group has a limited number of walks in
 * flight. An SM issues its accesses in order and stalls while its group has no free slot for a
 * walk.
 *
 * All parameters come from the fingerprint. The latency of a miss is measured for each group.
 * Little's law gives the number of walks in flight: latency times the misses per second of the
 * group alone out of its reach.
 *
 * Times are integers in picoseconds, so sums are exact and results repeat. Only what-if includes
 * this header. Only one thread may use a queue at a time. */
#pragma once

#include "clients/lab/whatif/stream.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "gpu/sim/sim_mmu.h"

enum { MISS_QUEUE_MAX_WALKS = 64 }; /* maximum number of walks in flight per group */

struct miss_queue {
    uint32_t page_shift;
    uint64_t cycle_ps;  /* least time between two accesses of an SM */
    uint64_t access_ps; /* time of memory for one access of an SM */
    uint64_t ahead_ps;  /* most time by which an SM's accesses run ahead of memory */
    uint64_t walk_ps;   /* time between two walks of the whole GPU */
    uint64_t latency_ps[REACH_MAX_SMS]; /* latency of a miss, by group */
    uint32_t walks[REACH_MAX_SMS];      /* maximum number of walks in flight, by group */
};

/* The inputs of the queue besides the fingerprint. */
struct miss_queue_job {
    double miss_ns;           /* time of the whole GPU per walk */
    double access_ns;         /* time of the whole GPU's memory per access */
    uint64_t loads_in_flight; /* maximum per SM */
    double *beyond_walks;     /* misses per random read over twice the reach; counted if 0 */
};

/* Returns false if the fingerprint has no clock, or lacks the miss penalty or the speed out of
 * reach of a group. Returns false if the last level of the machine is not the level of the
 * groups. */
bool miss_queue_from_fingerprint(const struct fingerprint *fp, const struct sim_desc *machine,
                                 const struct miss_queue_job *job, struct miss_queue *out);

/* Returns the bytes that one walk translates. This is the smallest page that the fingerprint
 * reports for a level, but at most the smallest entry. */
uint64_t miss_queue_page_bytes(const struct fingerprint *fp, const struct sim_desc *machine);

/* Runs accesses [from, to) of the stream once and writes the number of walks to *walks. Returns
 * STATUS_NO_MEMORY if out of memory. */
enum status miss_queue_count(const struct miss_queue *q, const struct sim_desc *machine,
                             struct sim_mmu *mmu, const struct stream *s, size_t from, size_t to,
                             uint64_t *walks, struct err *err);
