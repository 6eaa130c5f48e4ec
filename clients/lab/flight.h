/* flight.h: misses that are under way. A miss of the last level takes time. Until it is there, a
 * further access to its entry from the SMs that share that level misses as well and is walked
 * again, unless it is to the very page of a walk under way, which it joins. A group has so many
 * walks under way at a time; an SM makes its accesses in order, and waits while there is no room
 * for the walk that the next one needs.
 *
 * All times come from the fingerprint: how long a miss of each group takes; how many are under way
 * at a time, by Little's law from that and from how fast the group reads alone beyond its reach;
 * how fast the whole GPU walks, and how fast memory is. Private to what-if. One thread.
 */
#ifndef REACH_CLIENTS_LAB_FLIGHT_H
#define REACH_CLIENTS_LAB_FLIGHT_H

#include "clients/lab/stream.h"
#include "fingerprint/fingerprint.h"
#include "gpu/sim/sim_mmu.h"

enum { FLIGHT_MAX_WALKS = 64 }; /* of a group at a time */

/* Times are in ps, whole ones, so that they add up the same everywhere. */
struct flight {
    uint32_t page_shift;
    uint64_t cycle_ps;                  /* between two accesses of an SM, at least */
    uint64_t access_ps;                 /* its share of memory takes so long for one */
    uint64_t ahead_ps;                  /* by which its accesses are ahead of memory, at most */
    uint64_t walk_ps;                   /* between two walks of the whole GPU */
    uint64_t latency_ps[REACH_MAX_SMS]; /* of a miss, by group */
    uint32_t walks[REACH_MAX_SMS];      /* of a group at a time */
};

struct flight_job {
    double miss_ns;           /* of the whole GPU, for a walk */
    double access_ns;         /* likewise, for an access in memory */
    uint64_t loads_in_flight; /* of an SM, at most */
};

/* False: the fingerprint lacks the clock or what a group reads alone beyond its reach, or the last
 * level of the machine is not that of its groups. */
bool flight_of(const struct fingerprint *fp, const struct sim_desc *machine,
               const struct flight_job *job, struct flight *out);

/* Of a page, which a walk is for: the one that the driver mapped, or the least entry. */
uint64_t flight_page_bytes(const struct fingerprint *fp, const struct sim_desc *machine);

/* Runs part [from, to) of the stream once; *walks is how many walks its accesses needed.
 * STATUS_NO_MEMORY. */
enum status flight_count(const struct flight *f, const struct sim_desc *machine,
                         struct sim_mmu *mmu, const struct stream *s, size_t from, size_t to,
                         uint64_t *walks, struct err *err);

#endif
