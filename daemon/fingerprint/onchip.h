/* onchip.h: shared memory, thread block clusters, and the parallelism that keeps memory busy.
 * members.c describes each member. */
#pragma once

#include "fingerprint/topology.h"

enum {
    FINGERPRINT_SHARED_WIDTHS = 3, /* number of load sizes: 4, 8 and 16 bytes per lane */
    FINGERPRINT_MAX_STRIDES = 128,
    FINGERPRINT_MAX_CLUSTER = 16, /* largest number of cluster sizes */
    FINGERPRINT_MAX_CONCURRENCY = 32,
    FINGERPRINT_MAX_BY_SMS = 24
};

/* Loads of a warp from shared memory. Each lane loads `width_bytes`. */
struct shared_width {
    uint32_t width_bytes;
    struct maybe_f64 latency_cycles;
    struct maybe_f64 conflict_cycles;
    struct maybe_f64 bytes_per_cycle;
    struct maybe_u32 loads_enough;
    struct maybe_u32 loads_needed;
    struct shared_width_evidence {
        struct evidence latency_cycles, conflict_cycles, bytes_per_cycle, loads_enough;
    } evidence;
};
/* Loads of a warp whose lanes are `stride_bytes` apart. */
struct shared_stride {
    uint32_t width_bytes;
    uint32_t stride_bytes;
    struct maybe_f64 cycles;
    struct maybe_u32 passes;
};
/* The shared memory of an SM. Consecutive words of bank_bytes are in consecutive banks. If lanes
 * load different words of one bank, the load takes several passes (Mei 2016, section 6). */
struct fingerprint_shared {
    struct maybe_u64 sm_bytes;
    struct maybe_u64 block_bytes;
    struct maybe_u32 banks;
    struct maybe_u32 bank_bytes;
    uint32_t width_count;
    struct shared_width widths[FINGERPRINT_SHARED_WIDTHS];
    uint32_t stride_count;
    struct shared_stride strides[FINGERPRINT_MAX_STRIDES];
    struct shared_evidence {
        struct evidence banks;
    } evidence;
};

/* Clusters of `sms` blocks with one block per SM. */
struct cluster_size {
    uint32_t sms;
    struct maybe_u32 clusters;
    struct maybe_u32 usable_sms;
    struct maybe_f64 latency_cycles;
    struct maybe_f64 bytes_per_cycle;
    struct cluster_size_evidence {
        struct evidence clusters, latency_cycles, bytes_per_cycle;
    } evidence;
};
/* Thread block clusters, whose SMs load from each other's shared memory. On a GPU without them
 * `largest` is not applicable, and no other member is known. */
struct fingerprint_clusters {
    struct maybe_u32 largest;
    struct maybe_f64 own_cycles;
    struct maybe_u32 gpcs;
    struct sm_partition gpc_of_sm; /* GPC of each SM id; known if `gpcs` is known */
    uint32_t size_count;
    struct cluster_size sizes[FINGERPRINT_MAX_CLUSTER];
    struct clusters_evidence {
        struct evidence largest, own_cycles, gpcs;
    } evidence;
};

/* Throughput of random reads of 128 bytes by all SMs, with `warps` warps on each SM and `loads`
 * loads in flight in each warp. */
struct concurrency_point {
    uint32_t warps;
    uint32_t loads;
    struct maybe_f64 gbps;
};
/* Throughput of random reads by `sms` SMs, spread over the groups, with the largest number of loads
 * in flight. */
struct sms_point {
    uint32_t sms;
    struct maybe_f64 gbps;
};
/* The numbers of loads in flight and of SMs that keep memory busy. Every SM reads within the reach
 * of its own TLB. A number is sufficient if it reaches 95 % of the plateau. */
struct fingerprint_parallelism {
    struct maybe_f64 plateau_gbps;
    struct maybe_f64 latency_ns;
    struct maybe_u32 loads_enough;
    struct maybe_u32 loads_short;
    struct maybe_u32 sms_enough;
    struct maybe_u32 sms_short;
    uint32_t surface_count;
    struct concurrency_point surface[FINGERPRINT_MAX_CONCURRENCY];
    uint32_t by_sms_count;
    struct sms_point by_sms[FINGERPRINT_MAX_BY_SMS];
    struct parallelism_evidence {
        struct evidence plateau_gbps, latency_ns, loads_enough, sms_enough;
    } evidence;
};
