/* price.h: what one random access costs, in nanoseconds of the whole GPU, by kind, size and the
 * memory it is spread over: read off a fingerprint's rates. Pure; no allocation; any thread. Part
 * of placement.
 *
 * Two prices are kept apart. Memory takes inside_ns for an access, wherever it goes. Translation
 * takes a time that depends on the bytes alone. An access costs the dearer of the two: on an H200
 * 128-byte reads over B bytes take max(0.0304, 0.315 (1 - reach / B)) ns within half a percent,
 * from 64 to 140 GiB (docs/measurements/nvidia-h200-b76f831d-2026-11-21), and reads, writes and
 * atomics of 4 to 512 bytes all come to the same number of translations a second there.
 */
#ifndef REACH_PLACEMENT_PRICE_H
#define REACH_PLACEMENT_PRICE_H

#include "fingerprint/fingerprint.h"
#include "placement/limit.h"
#include "placement/strategy.h"

enum { PRICE_MAX_POINTS = FINGERPRINT_MAX_CURVE + 1 };

struct price_point {
    uint64_t bytes;
    double ns; /* of one access */
};

struct price_series {
    uint32_t count;
    struct price_point points[PRICE_MAX_POINTS]; /* by rising bytes; the first at the reach */
};

/* Accesses of one kind and size, as measured. */
struct price_source {
    uint32_t transaction_bytes;
    double inside_ns;
    struct price_series naive;
    struct price_series by_group;
};

struct price {
    enum basis basis;
    uint32_t transaction_bytes;
    uint64_t reach_bytes;       /* of one group; 0: no limit seen */
    struct maybe_f64 inside_ns; /* of one access inside the reach */
    double stream_ns;           /* of one byte read in order; 0: not known */
    double write_factor;        /* what a scattered byte written costs more than one read; 2 unless
                                   writes and reads of 32 bytes are measured */
    /* Of what it is put together: `part` of the way from low to high. sources: 0, 1 or 2. */
    uint32_t sources;
    double part;
    struct price_source low;
    struct price_source high;
    /* Accesses of any kind of which most fit into a second inside the reach, so that memory hides
     * least of what translation takes. transaction_bytes 0: none. */
    struct price_source clear;
};

/* `inside_gbps`: what the job measured itself; 0: nothing. `transaction_bytes` > 0. */
void price_read(const struct fingerprint *fp, const struct limit *limit, enum access access,
                uint32_t transaction_bytes, double inside_gbps, struct price *out);

/* ns that translation takes for an access of any SM anywhere in `bytes`; 0 inside the reach.
 * Unknown, with the reason, where no measurement speaks of that many bytes. */
struct maybe_f64 price_translation_ns(const struct price *p, uint64_t bytes);

/* By how much an access is slower than inside the reach where each group stays in its own window,
 * `bytes` in all: as measured, 1 where nobody did. */
double price_by_group_slowdown(const struct price *p, uint64_t bytes);

#endif
