/* throughput.h: the throughput of random reads by all SMs, and the cost of a miss. members.c
 * describes each member. */
#pragma once

#include "base/maybe.h"
#include "fingerprint/evidence.h"
#include "types/access.h"

enum {
    FINGERPRINT_MAX_CURVE = 32,
    FINGERPRINT_MAX_RATES = 8, /* kinds of access other than the reads of the curve */
    FINGERPRINT_MAX_RATE_POINTS = 12,
    FINGERPRINT_CURVE_BYTES = 128 /* size of one read of the curve */
};

/* A point of the curve, or of another kind of access. Another kind of access has no by_sm_gbps, and
 * has by_group_gbps only at the largest region. */
struct curve_point {
    uint64_t region_bytes;
    struct maybe_f64 naive_gbps;
    struct maybe_f64 by_group_gbps;
    struct maybe_f64 by_sm_gbps;
    uint32_t windows;
    struct curve_evidence {
        struct evidence naive_gbps, by_group_gbps, by_sm_gbps;
    } evidence;
};

/* Random accesses of one kind by all SMs. A number in GB/s is accesses per second *
 * transaction_bytes / 10^9.
 */
struct access_rate {
    enum access access;
    uint32_t transaction_bytes;
    struct maybe_f64 plateau_gbps;
    uint32_t point_count;
    struct curve_point points[FINGERPRINT_MAX_RATE_POINTS];
    struct rate_evidence {
        struct evidence plateau_gbps;
    } evidence;
};

struct throughput {
    struct maybe_f64 plateau_gbps;
    struct maybe_f64 whole_memory_gbps;
    uint32_t curve_count;
    struct curve_point curve[FINGERPRINT_MAX_CURVE];
    /* Other kinds of access, or none if they were not measured. The reads of 128 bytes of the curve
     * are not repeated here. */
    uint32_t rate_count;
    struct access_rate rates[FINGERPRINT_MAX_RATES];
    struct throughput_evidence {
        struct evidence plateau_gbps, whole_memory_gbps;
    } evidence;
};

/* The price of a miss for physically contiguous and for scattered memory around the address. Prices
 * are nanoseconds of the whole GPU per miss, beyond windows.reach_bytes. A frame that is not one
 * run of physical memory has the scattered price. If runs make no difference, frame_bytes is not
 * observable and the prices are equal. */
struct fingerprint_contiguity {
    struct maybe_u64 frame_bytes;
    struct maybe_f64 contiguous_miss_ns;
    struct maybe_f64 scattered_miss_ns;
    struct contiguity_evidence {
        struct evidence frame_bytes, contiguous_miss_ns, scattered_miss_ns;
    } evidence;
};

/* Returns the price of a miss in scattered memory, relative to contiguous memory. */
static inline struct maybe_f64 contiguity_factor(const struct fingerprint_contiguity *c)
{
    struct maybe_f64 factor = c->scattered_miss_ns;

    if (!IS_KNOWN(c->contiguous_miss_ns))
        return c->contiguous_miss_ns;
    if (IS_KNOWN(factor))
        factor.v /= c->contiguous_miss_ns.v;
    return factor;
}
