/* memory_facts.h: the kinds of memory beside plain device memory. members.c describes each member.
 */
#pragma once

#include "fingerprint/throughput.h"
#include "types/memory_kind.h"

enum {
    FINGERPRINT_MAX_PEERS = 16, /* largest number of GPUs whose memory this GPU can access */
    FINGERPRINT_MAX_MEMORY = MEMORY_PEER - 1 + FINGERPRINT_MAX_PEERS,
    /* Number of kinds that every document has. It may omit the later kinds. */
    FINGERPRINT_LEAST_MEMORY = MEMORY_HOST_PAGEABLE - 1,
    FINGERPRINT_MAX_MEMORY_CURVE = 24,
    FINGERPRINT_MAX_ROWS = 6,
    FINGERPRINT_WRITTEN_BYTES = 256, /* rows of written_factor */
    FINGERPRINT_MAX_NODES = 16
};

/* Random accesses of rows of one length, other than the reads of the curve. A row is accessed by
 * neighboring lanes, 4 bytes each. */
struct row_rate {
    enum access access;
    uint32_t transaction_bytes;
    struct maybe_f64 plateau_gbps;
    struct maybe_f64 probed_gbps;
    struct row_evidence {
        struct evidence plateau_gbps, probed_gbps;
    } evidence;
};

/* Reads of memory of one NUMA node of the host. */
struct memory_node {
    uint32_t node;
    struct maybe_f64 gbps;
};

/* One kind of memory other than plain device memory, which tlb, topology and throughput describe.
 * All numbers describe random reads of 128 bytes, unless stated otherwise. If memory of the kind
 * cannot be allocated, all numbers are absent, and `probed_bytes` has the reason.
 *
 * Memory is reached if it is read at 90 % of the plateau or more. If all probed memory is reached,
 * reach_bytes is not observable (beyond-memory): the reach is at least probed_bytes. If a limit of
 * host memory cut the probed memory too, reach_bytes is unknown (no-host-memory). */
struct memory_facts {
    enum memory_kind kind;
    char peer_uuid[64]; /* "" if the kind is not MEMORY_PEER */
    struct maybe_u64 peer_memory_bytes;
    struct maybe_u64 probed_bytes;
    struct maybe_f64 plateau_gbps;
    struct maybe_u64 reach_bytes;
    struct maybe_u64 onset_bytes;
    struct maybe_u64 windows_reach_bytes;
    struct maybe_u64 windows_onset_bytes;
    struct maybe_u64 group_reach_bytes;
    struct maybe_u64 group_onset_bytes;
    struct maybe_u64 entry_bytes;
    struct maybe_f64 beyond_gbps;
    struct maybe_f64 written_factor;
    struct maybe_f64 latency_cycles;
    struct maybe_f64 beyond_latency_cycles;
    struct maybe_u32 sms_to_fill;
    struct maybe_f64 write_gbps;
    struct maybe_f64 atomic_gbps;
    uint32_t curve_count;
    struct curve_point curve[FINGERPRINT_MAX_MEMORY_CURVE];
    uint32_t row_count;
    struct row_rate rows[FINGERPRINT_MAX_ROWS];
    uint32_t node_count;
    struct memory_node nodes[FINGERPRINT_MAX_NODES];
    struct memory_evidence {
        struct evidence plateau_gbps, reach_bytes, windows_reach_bytes, group_reach_bytes,
            entry_bytes, beyond_gbps, written_factor, latency_cycles, beyond_latency_cycles,
            sms_to_fill, write_gbps, atomic_gbps;
    } evidence;
};
