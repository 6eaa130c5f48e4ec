/* memory.h: finds the speed and the reach of one kind of memory (types/memory_kind.h). The
 * functions are pure.
 *
 * Random reads by all SMs over growing regions are fast up to the reach and slow beyond it. A
 * region is reached if it is read at 90 % of the plateau. Beyond it each group in its own window
 * may be fast again (Walker 2024), up to a region that is found in the same way. One group alone
 * has its own reach. The length of an entry follows from walks over one footprint beyond the reach
 * with strides that are halved. All loads hit while there are fewer pages than entries, and all
 * miss from the stride of an entry on (Karnagel 2017, section 3.2).
 *
 * The campaign, which requests missing probes, and the analysis share the estimate.
 */
#pragma once

#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

enum { MEMORY_MAX_POINTS = 32 };

/* A measured number of one region, of one number of SMs, or of one stride. */
struct memory_point {
    uint64_t at; /* bytes of the region, number of SMs, or bytes of the stride */
    double value;
    struct evidence evidence;
};

/* Points in ascending order of `at`. */
struct memory_points {
    uint32_t count;
    struct memory_point points[MEMORY_MAX_POINTS];
};

/* The largest point that is reached, and the smallest point that is not. Each is 0 if no point
 * qualifies. */
struct memory_bounds {
    double plateau;
    struct evidence plateau_evidence;
    uint64_t reach, onset;
    struct evidence evidence;
};

/* A row of memory_rows: GB/s of the shortest and of the longest region. */
struct memory_row {
    struct memory_point near, far;
};

/* The accesses beside the reads of the curve. Rows of the other lengths are interpolated, so these
 * are the lengths at which the limit changes: requests limit the speed of short rows, and the link
 * limits the speed of long rows. */
struct memory_row_kind {
    enum access access;
    uint32_t bytes;
};
extern const struct memory_row_kind memory_rows[FINGERPRINT_MAX_ROWS];

struct memory_estimate {
    enum memory_kind kind;
    uint32_t peer;
    bool tried;
    struct maybe_u64 bytes; /* bytes of the range; absent if it cannot be allocated */
    char peer_uuid[64];
    struct maybe_u64 peer_bytes;                 /* bytes of all memory of the peer */
    uint32_t windows;                            /* number of windows of by_group and by_sm */
    struct memory_points naive, by_group, by_sm; /* GB/s by region */
    struct memory_points alone;                  /* GB/s of one group by region */
    struct memory_points counts;                 /* GB/s by the number of SMs that read */
    struct memory_points strides; /* cycles of a load by stride beyond the reach, lowest decile */
    struct memory_points walks;   /* medians of the same loads */
    struct memory_point near;     /* cycles of a load within the reach */
    struct memory_point rates[ACCESS_COUNT]; /* GB/s of 32 bytes; index ACCESS_READ is empty */
    struct memory_row rows[FINGERPRINT_MAX_ROWS];
    struct memory_point written; /* GB/s over the longest region of rows that are also written */
    struct memory_bounds reach, windows_reach, group_reach;
};

/* `partition` contains the groups of the window level; its group_count is 0 if they are not
 * known. */
void memory_estimate(const struct observation_set *set, const struct sm_partition *partition,
                     enum memory_kind kind, uint32_t peer, struct memory_estimate *out);

/* Returns the bytes of an entry: the shortest stride at which all loads miss. Returns 0 if no
 * stride stands out. */
uint64_t memory_entry_bytes(const struct memory_estimate *e, struct evidence *out);

/* Returns the index of the first of `counts` whose reads are within 5 % of the speed of all SMs.
 * Returns counts.count if there is none. */
uint32_t memory_filling_count(const struct memory_estimate *e);

/* Returns the shortest region that counts, because the L2 cache holds memory of the device: 32
 * times the cache that the driver reports. (With device memory of an H200, regions of 17 times the
 * cache were 3.6 % above the plateau, and regions of 34 times 1.4 %.) The L2 does not hold memory
 * of the host and of peers, which is read at the 51 GB/s of the link from 1 MiB on. */
uint64_t memory_cached_bytes(const struct observation_set *set);

/* Host memory of fewer bytes is not probed. */
#define MEMORY_LEAST_HOST_BYTES ((uint64_t)32 << 20)

/* Returns the longest range of host memory if this amount is allowed: a power of two, or some
 * eighths more if an eighth remains unused. The allowed amount varies with the memory that other
 * processes use. */
uint64_t memory_host_range(uint64_t allowed);

/* Fills in out->memory, which must be empty; its partition must be filled in. It stays empty if no
 * kind was probed. */
void memory_derive(const struct observation_set *set, struct fingerprint *out);
