/* access_cost.h: the cost of one random access, by kind, size and footprint, from the rates of a
 * fingerprint. The unit is a nanosecond of the whole GPU. The functions are pure, allocate nothing,
 * and may be called on any thread.
 *
 * There are two costs. Memory takes in_reach_ns per access, whatever its address. Translation takes
 * a time that depends on the footprint only. An access costs the larger of the two
 * (docs/planner.md).
 */
#pragma once

#include "fingerprint/fingerprint.h"
#include "planner/basis.h"
#include "planner/reach_limit.h"

enum { ACCESS_COST_MAX_POINTS = FINGERPRINT_MAX_CURVE + 1, ACCESS_COST_SECTOR_BYTES = 32 };

struct access_cost_point {
    uint64_t bytes;
    double ns; /* nanoseconds of one access */
};

struct access_cost_series {
    uint32_t count;
    uint64_t reach_bytes; /* size from which translation takes time; 0 if not known */
    struct access_cost_point points[ACCESS_COST_MAX_POINTS]; /* points in order of bytes; the first
                                                                one is at the reach */
};

/* Measured accesses of one kind and size. */
struct access_cost_source {
    uint32_t transaction_bytes;
    double in_reach_ns;
    struct access_cost_series naive;
    struct access_cost_series by_group;
};

struct access_cost {
    enum basis basis;
    uint32_t transaction_bytes;
    uint32_t element_bytes; /* of access_cost_add_lines; 0 without it */
    double lines;           /* lines that one access touches; 0 without access_cost_add_lines, or if
                               they are not counted */
    double moved_bytes;     /* of sectors per access */
    uint64_t reach_bytes;   /* reach of one group; 0 if no limit was seen */
    struct maybe_f64 scattering;  /* translation relative to the measured accesses, which are in
                                     contiguous memory */
    struct maybe_f64 in_reach_ns; /* nanoseconds of one access within the reach */
    double stream_ns;             /* nanoseconds of one byte read in order; 0 if not known */
    double write_factor; /* cost of a scattered write relative to a read; 2 unless writes and reads
                            of 32 bytes are measured */
    /* Number of sources (0, 1 or 2). Costs are interpolated between two sources: `part` is the
     * share of the way from `low` to `high`, 0..1. */
    uint32_t sources;
    double part;
    struct access_cost_source low;
    struct access_cost_source high;
    /* The kind of access that memory serves fastest within the reach, so that its translation shows
     * most. If there is no such kind, transaction_bytes is 0. */
    struct access_cost_source clear;
};

/* Computes the cost from the rates. `transaction_bytes` must be above 0. */
void access_cost_read(const struct throughput *t, const struct reach_limit *limit,
                      enum access access, uint32_t transaction_bytes, struct access_cost *out);

/* Returns the mean bytes of the aligned units of `unit_bytes`, a power of two, that an element
 * touches. Elements of this size follow one another in memory, so their first bytes lie at all
 * multiples of the largest power of two that divides the element. */
uint64_t access_cost_touched_bytes(uint32_t element_bytes, uint32_t unit_bytes);

/* Adds the cost of lines to reads, if the transaction is what an element of this size touches in
 * sectors. Such an element lies in more lines than an aligned read of the same size. A further
 * line takes the time of a line of a long read without its sectors, or no time if reads of a
 * sector, a line and several lines were not measured. */
void access_cost_add_lines(struct access_cost *p, const struct throughput *t, enum access access,
                           uint32_t element_bytes);

/* Sets the cost of reads that touch only this number of different lines per access, because
 * accesses near in time share lines. The sectors of a line are touched at random. Has no effect if
 * `lines` is 0 or not below p->lines. */
void access_cost_share_lines(struct access_cost *p, const struct throughput *t, double lines);

/* Returns the GB/s of accesses that take `ns` each. */
struct maybe_f64 access_cost_gbps(struct maybe_f64 ns, uint32_t transaction_bytes);

/* Sets the share of the job's memory, 0..1, that is not in physically contiguous frames.
 * access_cost_read sets it to 0. Another share requires that the price of a miss is known for both
 * kinds of memory. */
void access_cost_scatter(struct access_cost *p, const struct fingerprint *fp, double scattered);

/* Returns the nanoseconds of translation for an access of any SM anywhere in `bytes`; 0 if the
 * reach covers all bytes. The result is unknown, with the reason, if no measurement covers this
 * size. */
struct maybe_f64 access_cost_translation_ns(const struct access_cost *p, uint64_t bytes);

/* Returns the nanoseconds of an access of any SM anywhere in `bytes`: the larger of the times of
 * translation and of memory. The result is unknown, with the reason, if either time is unknown. */
struct maybe_f64 access_cost_naive_ns(const struct access_cost *p, uint64_t bytes);

/* Returns the slowdown of an access, relative to an access within the reach, if each group stays in
 * its own window. All windows together have `bytes`. The result is 1 if the slowdown was not
 * measured. */
double access_cost_by_group_slowdown(const struct access_cost *p, uint64_t bytes);
