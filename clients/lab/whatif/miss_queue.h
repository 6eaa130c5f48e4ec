/* miss_queue.h: counts page walks with a clock, so that misses take time.
 *
 * A miss of the last TLB level is resolved after its latency. Until then, another access to the
 * same entry from an SM of the group also misses. It joins the pending walk if it is to the same
 * page, and starts a second walk otherwise. A group has a limited number of walks in flight. An SM
 * issues its accesses in order and stalls while its group has no free slot for a walk.
 *
 * All parameters come from the fingerprint. The latency of a miss is measured for each group. The
 * number of walks in flight follows from Little's law: latency times the misses per second of the
 * group alone out of its reach.
 *
 * Times are integers in picoseconds, so sums are exact and results repeat. Private to what-if. One
 * thread. */
#ifndef REACH_CLIENTS_LAB_WHATIF_MISS_QUEUE_H
#define REACH_CLIENTS_LAB_WHATIF_MISS_QUEUE_H

#include "clients/lab/whatif/stream.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "gpu/sim/sim_mmu.h"

enum { MISS_QUEUE_MAX_WALKS = 64 }; /* in flight, of a group */

struct miss_queue {
    uint32_t page_shift;
    uint64_t cycle_ps;                  /* the least time between two accesses of an SM */
    uint64_t access_ps;                 /* memory's time for one access of an SM */
    uint64_t ahead_ps;                  /* the most that an SM's accesses run ahead of memory */
    uint64_t walk_ps;                   /* between two walks of the whole GPU */
    uint64_t latency_ps[REACH_MAX_SMS]; /* of a miss, by group */
    uint32_t walks[REACH_MAX_SMS];      /* in flight at most, by group */
};

/* What the queue depends on besides the fingerprint. */
struct miss_queue_job {
    double miss_ns;           /* of the whole GPU, per walk */
    double access_ns;         /* of the whole GPU's memory, per access */
    uint64_t loads_in_flight; /* of an SM, at most */
};

/* False if the fingerprint has no clock or no speed of each group alone out of reach, or if the
 * last level of the machine is not the level of the groups. */
bool miss_queue_from_fingerprint(const struct fingerprint *fp, const struct sim_desc *machine,
                                 const struct miss_queue_job *job, struct miss_queue *out);

/* The bytes that one walk translates: the smallest page that a level reports, or the smallest entry
 * if no level reports a page. */
uint64_t miss_queue_page_bytes(const struct fingerprint *fp, const struct sim_desc *machine);

/* Runs accesses [from, to) of the stream once and writes the number of walks to *walks.
 * STATUS_NO_MEMORY. */
enum status miss_queue_count(const struct miss_queue *q, const struct sim_desc *machine,
                             struct sim_mmu *mmu, const struct stream *s, size_t from, size_t to,
                             uint64_t *walks, struct err *err);

#endif
