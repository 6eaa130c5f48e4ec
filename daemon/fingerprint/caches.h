/* caches.h: the data caches, the sides of the L2, and the latency of memory. members.c describes
 * each member.
 */
#pragma once

#include "fingerprint/tlb.h"

enum {
    FINGERPRINT_MAX_WORKING_SETS = 64,
    FINGERPRINT_MAX_CARVEOUTS = 6,
    FINGERPRINT_TRACE_BYTES = 64
};

/* The two sides of the L2, if it has sides. A hash of its physical address puts a line on one side,
 * and SMs of the other side wait longer for the line. Near and far are relative to an SM. If an SM
 * waits equally long for all lines, the sides are not observable (no-contrast). */
struct fingerprint_l2 {
    struct maybe_u32 sides;
    struct maybe_u64 granule_bytes;
    struct maybe_f64 atomic_near_cycles;
    struct maybe_f64 atomic_far_cycles;
    struct sm_partition side_of_sm; /* side of each SM id; known if `sides` is known */
    /* The driver reports both numbers. They are not-supported if the driver has no such attribute.
     */
    struct maybe_u32 locality_domains;
    struct maybe_u32 locality_domain_sms;
    enum finding sides_match_domains; /* l2_match_domains */
    struct l2_evidence {
        struct evidence sides, granule_bytes, atomic_near_cycles, atomic_far_cycles;
    } evidence;
};

/* Returns whether the measured sides agree with the locality domains that the driver reports. They
 * agree if there is one side for each domain, and each side has the SMs of a domain. A side may
 * have more SMs, because some SMs may belong to no domain. An L2 whose sides are not observable
 * counts as one side. Returns FINDING_UNKNOWN if the sides or the domains are unknown. */
enum finding l2_match_domains(const struct fingerprint_l2 *l2);

/* Throughput of random reads of a set by all SMs, through all caches. A read has
 * `transaction_bytes`: 128 (a line) or 512 (four adjacent lines). */
struct working_set {
    uint32_t transaction_bytes;
    uint64_t set_bytes;
    struct maybe_f64 same_gbps;
    struct maybe_f64 own_gbps;
    struct maybe_f64 near_gbps;
    struct working_set_evidence {
        struct evidence same_gbps, own_gbps, near_gbps;
    } evidence;
};

/* The data caches that the pointer chase looks for, nearest first. */
enum cache_kind { CACHE_L1 = 0, CACHE_READ_ONLY, CACHE_CONSTANT, CACHE_L2, CACHE_KIND_COUNT };
const char *cache_kind_name(enum cache_kind k); /* "l1", "read-only", "constant", "l2" */

/* The L1 at one division of the memory of an SM between L1 and shared memory. */
struct cache_carveout {
    uint64_t shared_bytes;
    struct maybe_u64 size_bytes;
    struct maybe_u64 fits_bytes;
};

/* One data cache, measured by dependent loads of one thread (Mei and Chu 2016, section 4).
 * Latencies do not include the time to read the clock. */
struct cache_facts {
    enum cache_kind kind;
    struct maybe_u64 size_bytes;
    struct maybe_u64 fits_bytes;
    struct maybe_u64 line_bytes;
    struct maybe_u64 sector_bytes;
    struct maybe_u64 fill_bytes;
    struct maybe_u32 sets;
    struct maybe_u32 ways;
    enum replacement replacement;
    char trace[FINGERPRINT_TRACE_BYTES]; /* "HHM..", the result of each load; "" if there is no
                                            trace */
    struct maybe_f64 latency_cycles;
    struct maybe_f64 miss_latency_cycles;
    enum finding same_as_l1;
    uint32_t carveout_count;
    struct cache_carveout carveouts[FINGERPRINT_MAX_CARVEOUTS];
    struct cache_evidence {
        struct evidence size_bytes, fits_bytes, line_bytes, sector_bytes, fill_bytes, sets,
            replacement, latency_cycles, same_as_l1;
    } evidence;
};

/* Returns the measured division of the L1 with the least shared memory that is at least
 * `shared_bytes`, or NULL if there is no such division. */
const struct cache_carveout *cache_carveout_beside(const struct cache_facts *l1,
                                                   uint64_t shared_bytes);
/* Returns the bytes of a working set that a cache keeps: `fits`, or `size` if `fits` is unknown. */
struct maybe_u64 cache_kept_bytes(struct maybe_u64 fits, struct maybe_u64 size);

/* The latency of one load of one thread: P1 to P6 of Mei and Chu 2016, section 5.2, and the modes
 * of memory. P1 to P6 differ in the places of the data and of its translation. Latencies are
 * medians without the time to read the clock. P4 and P5 describe the near mode if memory has two
 * modes. */
struct fingerprint_latency {
    struct maybe_f64 p1_cycles;
    struct maybe_f64 p2_cycles;
    struct maybe_f64 p3_cycles;
    struct maybe_f64 p4_cycles;
    struct maybe_f64 p5_cycles;
    struct maybe_f64 p6_cycles;
    struct maybe_f64 near_cycles;
    struct maybe_f64 far_cycles;
    struct maybe_f64 tail_cycles;
    struct maybe_f64 tail_share;
    struct latency_evidence {
        struct evidence p1_cycles, p2_cycles, p3_cycles, p4_cycles, p5_cycles, p6_cycles,
            near_cycles, tail_cycles;
    } evidence;
};
