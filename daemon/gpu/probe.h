/* probe.h: the probes that a GPU can run, and the shape of their answers.
 *
 * A probe is a flat value (`struct probe_spec`). Every source, a real GPU or the MMU model, answers
 * the same probes. A probe decides nothing: it returns cycles and counts. If the SM clock changes
 * during CHASE, ROUND or PAIRS, the cycles are those at the clock of its first reference
 * (kernels/abi.h).
 *
 * Page i of a probe with stride S is the 128-byte line at virtual offset `base_bytes + i * S` of
 * the arena. The source chooses the memory behind the range and reports it
 * (probe_conditions.arena).
 *
 * CHASE runs one thread of one SM. For every point n the thread walks pages 0..n-1 as a cycle,
 * `warm_laps` times untimed. Then it times `samples` loads one by one, each dependent on the one
 * before.
 *     values[point][sample]: cycles of one load
 *
 * ROUND runs all SMs. P is the number of SMs times slice_pages. Each repeat has two halves. In each
 * half, all SMs prime the slices (pages 0..P-1), each starting at its own slice. Then they walk the
 * next `flush_pages` pages. In the second half, the pivot walks `thrash_pages` pages beyond those,
 * `warm_laps` times. Then every SM times a load of each page of its own slice [i*s, i*s+s), where i
 * is its position. The first half is the control.
 *     values[repeat][half][sm][slice page]: cycles of one load
 *
 * PAIRS runs two SMs at a time, for every pivot p and every SM k (Karnagel 2017, section 4.2). s is
 * slice_pages. k primes pages 0..s-1, walks the next `flush_pages` and times pages 0..s-1 (the
 * control). Then k primes and walks once more. Then p walks `thrash_pages` pages beyond those,
 * `warm_laps` times, and k times pages 0..s-1 again. All other SMs are idle. If k is p, one SM does
 * it all.
 *     values[pivot][half][sm][slice page]: cycles of one load
 *
 * SIDES runs the SMs of `sms` at the same time. They walk pages 0..samples-1 as a cycle, each from
 * a page of its own: `warm_laps` times untimed, then `repeats` times. On each page an SM adds 0
 * atomically and waits for the result. L2 executes an atomic in the half that holds the line, so a
 * line of the far side stays far.
 *     values[repeat][sm of the spec][sample]: cycles of one atomic
 *
 * CACHE runs one thread of the SM of each point. It is the fine-grained pointer chase of Mei and
 * Chu (2016). For every point n, the SM walks elements 0..n-1, `stride_bytes` apart, as a cycle, in
 * order or scattered: `warm_laps` times untimed by `warm_path`. Then come the sweeps below, then
 * `samples` loads by `path`, timed one by one. The SM of point p is sms[p modulo their number].
 * Points of several SMs run at the same time unless there are sweeps.
 *     values[point][sample]: cycles of one load, at most 65535
 *
 * The sweeps of a CACHE come in this order, each only if the spec has it. All SMs load the
 * footprint, or only its elements (sweep_footprint), or `sweep_bytes` behind the longest footprint,
 * past L1. The SM loads one line of every `touch_bytes` of the footprint past L1, so that the TLBs
 * hold its translations. The SM walks `evict_bytes` behind the longest footprint by `path`. The
 * private caches of an SM are empty at the start of a probe. shared_bytes is the shared memory of
 * the block of an SM; on many chips L1 is the rest of the same array. PATH_CONSTANT reads the bank
 * of constants, PROBE_CONSTANT_BYTES long, and no memory of the range.
 *
 * SHARED runs the SMs of `sms` at the same time. For every point d, the lanes of `warps` warps load
 * `transaction_bytes` each from shared memory, d bytes apart. Every warp makes `samples` loads,
 * `in_flight` at a time. Each load returns the address of a later load. `warm_laps` untimed laps
 * come first (Mei 2016, section 6).
 *     values[repeat][sm of the spec][point]: cycles until the last load is there
 *
 * PEER runs all clusters of `cluster_sms` SMs that fit on the GPU. Every SM makes `samples` loads
 * from shared memory of each SM of its cluster in turn, each dependent on the one before. Then all
 * read PROBE_RING_BYTES from the next SM of their cluster. Row 0 has the number of clusters that
 * fit at once according to the driver (0 if not reported), and the number of clusters launched. Row
 * 1 + SM begins with the number of the SM's cluster from 1, or 0 if it is in no cluster. The SM's
 * rank in the cluster follows, then the cycles of the loads from each rank, then the cycles of the
 * ring.
 *     values[repeat][1 + sm][column of cluster_sms + 3]
 *
 * READ runs all warps of all SMs. For every point R (bytes), every SM reads random 128-byte lines
 * for `duration_us`, inside its own window of the region [0, R) (probe_window; Walker 2024).
 *     values[point][repeat][1 + sm]: elapsed ns, then the lines that each SM has read
 *
 * `access` and `transaction_bytes` choose other kinds of access; the counts are then accesses:
 *
 *   read   32   each lane of a warp loads 4 bytes of its own sector
 *   read  128   each warp loads a line: the curve
 *   read  512   each warp loads four lines side by side
 *   atomic 32   each lane adds 0 to 8 bytes of its own sector and uses the result
 *   write  32   each lane stores 4 bytes of 0 into its own sector
 *
 * In memory of another kind than the device's own, each access also has 64, 128, 256, 512 or 1024
 * bytes. A row of these bytes is accessed by neighboring lanes, 4 bytes each. Rows of
 * MEMORY_HOST_GATHERED are gathered by threads of the CPU and copied, for at least `duration_us`;
 * the counts are the gathered rows, divided evenly among the SMs.
 *
 * With `output`, each lane also stores what it has read to device memory, where the rows lie side
 * by side, as the rows of a gather do. Only reads of rows in memory of another kind have output.
 *
 * With `run_bytes`, the first `scattered_bytes` of the region are backed by runs of physical memory
 * of that length, and no run continues the one before. All other memory is as contiguous as the
 * source can make it.
 *
 * CONCURRENCY is like READ of 128 bytes over one region of `region_bytes`. Every point has the
 * number of warps of an SM, and the number of loads that each warp has in flight
 * (probe_concurrency).
 *
 * WORKING_SET_READ runs all warps of all SMs. For every point W (bytes), they read
 * `transaction_bytes`, 128 or 512, at random places of a set of W bytes, which L1 may cache.
 * `set_read` selects the part of the set that an SM reads: all of the set (same), its own part of W
 * / SMs (own), or the granules of `stride_bytes` on its side of the L2 (near). Before the reads,
 * the SMs find the near granules by timing atomics. `sms` has the SMs of one side, ascending. The
 * answer has the form of the answer of READ.
 *
 * CHASE and READ can touch other kinds of memory than the device's own. `memory` selects the kind
 * (types/memory_kind.h). The source makes such a range, as long as the probe needs, and keeps it
 * until a probe touches other memory. If the kind is not available, the answer has no values, and
 * the conditions have the reason. `node` selects the NUMA node of the pages of host memory.
 *
 * MEANS and MEAN_PAIRS never run on a GPU. They hold published measurements of others
 * (daemon/import), in thousandths of a cycle. MEANS is a walk like CHASE of every point n by an
 * unnamed SM; values[point] is the mean of all n loads. MEAN_PAIRS takes every SM i and every SM k
 * (Karnagel 2017, section 3.3). i walks pages 0..t-1 (t is thrash_pages), k walks the t pages
 * beyond them, and i walks its own pages again. values[sm i][sm k] is the mean of one load.
 *
 * flush_pages evict the slice from the levels nearer to the SM than the probed level. Hits in
 * nearer levels would hide the eviction. The SMs also walk these pages before priming, because a
 * page that hits in a nearer level is not filled into the farther one.
 *
 * `%smid` values need not be dense (MIG). A result lists the ids of the SMs in ascending order
 * (probe_result.sm_ids). Every [sm] axis is indexed by position in that list; specs name SMs by id.
 *
 * Memory is zero before and after a probe. A value is 0 if another process had the GPU at every
 * attempt to time it. Then all values of that point of CHASE, repeat of ROUND or pair of PAIRS are
 * 0.
 *
 * All functions here are pure and may be called from any thread.
 */
#pragma once

#include "types/access.h"
#include "base/clock.h"
#include "types/identity.h"
#include "types/memory_kind.h"
#include "base/status.h"

enum {
    PROBE_MAX_POINTS = 256,
    PROBE_MAX_SAMPLES = 8192,
    PROBE_MAX_SLICE = 64,
    PROBE_MAX_REPEATS = 64,
    PROBE_MAX_WINDOWS = 64,
    PROBE_LINE_BYTES = 128,
    PROBE_SHARED_BYTES = 32 << 10, /* bytes of shared memory that SHARED may touch */
    PROBE_RING_BYTES = 512 << 10,  /* bytes that each SM reads from the next SM in PEER */
    PROBE_MAX_CLUSTER = 16,
    PROBE_MAX_WARPS = 32,
    PROBE_MAX_IN_FLIGHT = 32,
    PROBE_SECTOR_BYTES = 32, /* the smallest unit that memory transfers */
    PROBE_BLOCK_BYTES = 512, /* the most bytes that one access of a warp moves */
    PROBE_ROW_BYTES = 1024,  /* the same in memory of other kinds than the device's own */
    PROBE_WORD_BYTES = 4,
    PROBE_CONSTANT_BYTES = 65536,
    PROBE_MAX_NODES = 64, /* NUMA nodes of a host */
    PROBE_SWEEP_ELEMENTS = 2,
    PROBE_MAX_AXES = 4,
    PROBE_SM_IDLE = 0xffff /* in window_of_sm: this SM does not read */
};

enum probe_kind {
    PROBE_CHASE = 0,
    PROBE_ROUND,
    PROBE_PAIRS,
    PROBE_READ,
    PROBE_MEANS,
    PROBE_MEAN_PAIRS,
    PROBE_SIDES,
    PROBE_WORKING_SET_READ,
    PROBE_CACHE,
    PROBE_SHARED,
    PROBE_PEER,
    PROBE_CONCURRENCY,
    PROBE_KIND_COUNT
};
enum { PROBE_MEAN_SCALE = 1000 }; /* MEANS, MEAN_PAIRS: the value of one cycle */

/* Returns "chase", "round", "pairs", "read", "means", "mean-pairs", "sides", "cache", "shared",
 * "peer", "in-flight" or "spread". */
const char *probe_kind_name(enum probe_kind kind);
bool probe_kind_from_name(const char *name, enum probe_kind *out);

/* Parts of a spec. Each kind of probe has some of them (probe_parts). */
enum {
    SPEC_PAGES = 1 << 0,  /* stride_bytes, from page to page */
    SPEC_STRIDE = 1 << 1, /* stride_bytes with another meaning */
    SPEC_BASE = 1 << 2,
    SPEC_POINTS = 1 << 3,
    SPEC_SAMPLES = 1 << 4,
    SPEC_LAPS = 1 << 5,
    SPEC_SLICE = 1 << 6, /* slice_pages, flush_pages */
    SPEC_THRASH = 1 << 7,
    SPEC_REPEATS = 1 << 8,
    SPEC_ONE_SM = 1 << 9,
    SPEC_SMS = 1 << 10,
    SPEC_ASCENDING = 1 << 11, /* the SMs ascend */
    SPEC_CACHE = 1 << 12,     /* the members from path to shared_bytes */
    SPEC_SHARED = 1 << 13,    /* warps, in_flight */
    SPEC_CLUSTER = 1 << 14,
    SPEC_DURATION = 1 << 15, /* duration_us, seed */
    SPEC_ACCESS = 1 << 16,   /* access, output, run_bytes, scattered_bytes */
    SPEC_TRANSACTION = 1 << 17,
    SPEC_SET_READ = 1 << 18, /* set_read, and the SMs of a side if there are sides */
    SPEC_REGION = 1 << 19,
    SPEC_WINDOWS = 1 << 20,
    SPEC_MEMORY = 1 << 21,   /* memory, peer */
    SPEC_IMPORTED = 1 << 22, /* never measured */
    SPEC_ANY_SMS = SPEC_ONE_SM | SPEC_SMS | SPEC_SET_READ
};
unsigned probe_parts(enum probe_kind kind);

/* The path of a load of CACHE to memory. */
enum probe_path {
    PATH_L2 = 0,    /* bypassing L1 (ld.cg) */
    PATH_L1,        /* through L1 (ld.ca) */
    PATH_READ_ONLY, /* the read-only path, which is the texture path (ld.nc) */
    PATH_CONSTANT,
    PATH_NONE, /* no load; only the clock is read, twice */
    PATH_COUNT
};
const char *probe_path_name(enum probe_path path); /* "l2", "l1", "read-only", "constant", "none" */

/* WORKING_SET_READ: the part of the set that an SM reads. */
enum set_read { SET_READ_SAME = 0, SET_READ_OWN, SET_READ_NEAR, SET_READ_COUNT };
const char *set_read_name(enum set_read part); /* returns "same", "own" or "near" */

/* One probe. Members that a kind does not use must be 0. probe_check lists the members that each
 * kind needs. */
struct probe_spec {
    enum probe_kind kind;
    uint64_t stride_bytes; /* distance of two pages, a multiple of 128. CACHE: distance of two
                              elements, a multiple of 4. WORKING_SET_READ: the granule of a side, a
                              power of two from 512 on */
    uint64_t base_bytes;   /* offset of page 0 (the latency probes) or of the region (READ) */
    uint32_t point_count;  /* CHASE, READ, MEANS, CACHE, SHARED, CONCURRENCY, WORKING_SET_READ:
                              1..PROBE_MAX_POINTS */
    uint64_t points[PROBE_MAX_POINTS]; /* CHASE, MEANS: pages; READ: bytes of the region; CACHE:
                                          elements; SHARED: distance in bytes between lanes;
                                          CONCURRENCY: probe_concurrency; WORKING_SET_READ: bytes
                                          of the set */
    uint64_t region_bytes;             /* CONCURRENCY: length of the region */
    uint32_t warps;                    /* SHARED: 1..PROBE_MAX_WARPS */
    uint32_t in_flight;                /* SHARED: loads that a warp has in flight: 1, 2, 4 or 8 */
    uint32_t cluster_sms;              /* PEER: 2..PROBE_MAX_CLUSTER */
    uint32_t
        samples; /* CHASE, CACHE: timed loads of a point; SIDES: pages; SHARED: loads of a warp, a
                    multiple of 8; PEER: loads of a pair of SMs; 1..PROBE_MAX_SAMPLES */
    uint32_t warm_laps;   /* CHASE, SIDES: 0..16; ROUND, PAIRS: laps of the thrashing walk, 1..16 */
    uint32_t slice_pages; /* ROUND, PAIRS: 1..PROBE_MAX_SLICE */
    uint32_t flush_pages; /* ROUND, PAIRS: 0..2^20 */
    uint32_t thrash_pages;      /* ROUND, PAIRS, MEAN_PAIRS: >= 1 */
    uint32_t repeats;           /* ROUND, READ, SIDES, WORKING_SET_READ: 1..PROBE_MAX_REPEATS */
    uint32_t duration_us;       /* READ, WORKING_SET_READ: 100..100000 */
    uint32_t seed;              /* READ, WORKING_SET_READ: seed of the random positions */
    enum access access;         /* READ: see the table in the description of the probes */
    uint32_t transaction_bytes; /* READ, WORKING_SET_READ: bytes that one access moves; 0 means 128.
                                   SHARED: bytes that a lane loads */
    enum set_read set_read;     /* WORKING_SET_READ: the part that an SM reads */
    uint32_t output;            /* READ: 1 if the rows are also written to device memory */
    uint64_t run_bytes;         /* READ: 0 for no runs, or a power of two times the granule, at most
                                   probe_longest_run */
    uint64_t scattered_bytes;   /* READ: a multiple of run_bytes; 0 if run_bytes is 0 */
    enum probe_path path; /* CACHE alone has this member and the next ones, up to shared_bytes */
    enum probe_path warm_path;
    uint32_t scattered;       /* 1 if each element is far from the element before it */
    uint32_t sweep_footprint; /* 1 if all SMs load the footprint, PROBE_SWEEP_ELEMENTS if they load
                                 only its elements */
    uint64_t sweep_bytes;     /* 0 if sweep_footprint is set */
    uint64_t touch_bytes;     /* length of a block of the footprint; the SM loads one line of each
                                 block. 0, or a multiple of 128 */
    uint64_t evict_bytes;     /* bytes that the SM walks before it times, a multiple of 128 */
    uint64_t shared_bytes;
    enum memory_kind memory; /* CHASE, READ: the kind of memory that is touched */
    uint32_t peer; /* MEMORY_PEER: index among the other GPUs, in the order of the driver */
    uint32_t node; /* memory of the host: number of the NUMA node of its pages, plus 1; 0 means the
                      node nearest to the GPU */
    uint32_t sm_count; /* length of `sms`. CHASE, ROUND: 1, for the SM or the pivot; PAIRS: the
                          pivots; SIDES, CACHE, SHARED: the SMs that work; WORKING_SET_READ: the SMs
                          of one side for SET_READ_NEAR, otherwise 0 */
    uint16_t sms[REACH_MAX_SMS]; /* ids of SMs */
    uint32_t window_count;       /* READ: 1..PROBE_MAX_WINDOWS */
    uint32_t window_sms;         /* READ: length of window_of_sm, which is indexed by the SM's id */
    uint16_t window_of_sm[REACH_MAX_SMS]; /* READ: window index, or PROBE_SM_IDLE */
};

enum arena_kind {
    ARENA_ALIAS = 0, /* a small backing, mapped again and again over a large virtual range */
    ARENA_PLAIN,     /* one plain allocation as large as the range */
    ARENA_SIMULATED
};
const char *arena_kind_name(enum arena_kind kind); /* "alias", "plain", "simulated" */

/* The limits of a source, valid after it is opened. */
struct gpu_limits {
    enum arena_kind arena;
    uint64_t range_bytes;         /* length of the range: no probe touches more than this */
    uint64_t backing_bytes;       /* physical memory behind the range */
    uint64_t granule_bytes;       /* the page with which the driver maps, usually 2 MiB */
    uint64_t device_memory_bytes; /* the memory that the probes hold on the device */
    /* Free memory of the device before the first allocation. If the memory is also memory of the
     * host, at most a quarter of the host's available memory. */
    uint64_t free_bytes;
    uint32_t sm_count;
    uint64_t host_memory_bytes; /* limit for probes of host memory; 0 means no such probes */
    uint64_t host_total_bytes;  /* memory of the host, used or not; 0 if not reported */
    uint32_t memory_ms;  /* time limit for all kinds of memory; 0 means the default of the depth */
    uint32_t peer_count; /* number of other GPUs */
    uint64_t host_nodes; /* NUMA nodes of the host that have CPUs and memory, as bits; 0 if the
                            source does not report nodes */
    /* Shared memory of an SM, and the largest shared memory of one block. Both are 0 if the source
     * does not answer SHARED. */
    uint64_t shared_sm_bytes;
    uint64_t shared_block_bytes;
    uint32_t cluster_sms; /* largest cluster that PEER may request; 0 if the GPU has no clusters */
    /* The link to the host: the generation and the lanes that the GPU and its slot support, and the
     * lanes in use. */
    struct maybe_u32 pcie_generation;
    struct maybe_u32 pcie_lanes_supported;
    struct maybe_u32 pcie_lanes;
    struct maybe_u32 locality_domains;    /* domains whose SMs have memory and L2 of their own */
    struct maybe_u32 locality_domain_sms; /* SMs of each domain */
};

/* The circumstances of one run. Values that the source does not report are unknown, with the
 * reason. */
struct probe_conditions {
    int64_t started_at; /* wall clock, seconds since 1970 UTC */
    nsec_t duration_ns; /* duration of the whole run: launch, kernel, copy back */
    enum arena_kind arena;
    uint64_t range_bytes;
    uint64_t backing_bytes;
    uint64_t device_memory_bytes;
    struct maybe_u32 sm_clock_khz; /* read back after the run */
    struct maybe_u32 memory_clock_khz;
    struct maybe_u32 temperature_celsius;
    struct maybe_u32 other_processes;     /* compute processes on this GPU besides this process */
    struct maybe_u64 throttle_reasons;    /* NVML's bit mask, after the run; 0 if not throttled */
    struct maybe_u32 sm_clock_before_khz; /* read before the run */
    /* Share of the last second or so in which any kernel ran on this GPU, read before the GPU was
     * opened. */
    struct maybe_u32 busy_percent_before;
    struct maybe_u64 uncorrected_errors; /* memory errors (ECC) since the GPU was opened */
    /* The number of other processes whose kernels may run at the same time as kernels of this
     * process: the other clients of MPS. */
    struct maybe_u32 concurrent_processes;
    /* CHASE, ROUND, PAIRS: number of stretches during which another process had the GPU for its
     * time slice. They were repeated in the same launch (kernels/abi.h). */
    struct maybe_u32 interruptions;
    struct maybe_u64 xid; /* the driver's last error number since the GPU was opened, or 0 */
    /* Highest generation of the link to the host since the GPU was opened, read after the run. The
     * link of an idle GPU falls back to the first generation. */
    struct maybe_u32 pcie_generation;
    /* For a probe of other memory, the length of the range, or the reason if there is no range.
     * Otherwise zero. */
    struct maybe_u64 memory_bytes;
    char peer_uuid[64];                 /* UUID of the GPU for MEMORY_PEER */
    struct maybe_u64 peer_memory_bytes; /* MEMORY_PEER: all memory of that GPU */
};

/* The time of a probe by activity, for measure/times.h. It is not part of an observation: it is
 * neither stored nor analyzed. */
struct probe_time {
    nsec_t memory_ns;   /* part of conditions.duration_ns: making, mapping and freeing memory */
    nsec_t query_ns;    /* after the run: reading clocks, temperature and errors */
    nsec_t messages_ns; /* in the worker: writing the previous answer, and reading the request */
    nsec_t idle_ns;     /* in the worker: waiting for the request */
};

/* One answer. It owns `values`, which probe_result_free frees. */
struct probe_result {
    uint32_t sm_count;              /* SMs that took part in the launch */
    uint16_t sm_ids[REACH_MAX_SMS]; /* ascending */
    uint32_t *values;               /* in the order that the description of the probe gives */
    size_t value_count;
    struct probe_conditions conditions;
    struct probe_time time;
};

/* Checks whether this spec is complete and within the limits. If `limits` is NULL, ranges are not
 * checked. Returns STATUS_INVALID_ARGUMENT, and an error that names the field. With limits, returns
 * STATUS_NOT_SUPPORTED for MEANS and MEAN_PAIRS, because no GPU answers them. */
enum status probe_check(const struct probe_spec *spec, const struct gpu_limits *limits,
                        struct err *err);

/* Returns the number of values in the answer to `spec` on a GPU with `sm_count` SMs; `spec` must
 * have passed probe_check. */
size_t probe_value_count(const struct probe_spec *spec, uint32_t sm_count);

/* Reports the lengths of the axes of these values, the last axis fastest. Returns the number of
 * axes. Their product is probe_value_count. */
uint32_t probe_shape(const struct probe_spec *spec, uint32_t sm_count, uint32_t *axes);

/* Returns the highest virtual offset (exclusive) that `spec` touches on a GPU with `sm_count` SMs.
 * Saturates at UINT64_MAX. */
uint64_t probe_range_bytes(const struct probe_spec *spec, uint32_t sm_count);

/* READ: returns the longest run_bytes that these limits allow, or 0 if the source cannot lay out
 * memory. */
uint64_t probe_longest_run(const struct gpu_limits *limits);

/* Returns whether two specs are equal in every member. Padding is ignored. */
bool probe_same(const struct probe_spec *a, const struct probe_spec *b);
/* Returns whether two specs touch the same memory. */
bool probe_same_memory(const struct probe_spec *a, const struct probe_spec *b);
/* Returns whether this answer reports that the probe's kind of memory is not available. Such an
 * answer has no values. */
bool probe_is_absent(const struct probe_spec *spec, const struct probe_result *result);

/* Returns the largest point of a spec, or 0 if it has no points. */
uint64_t probe_largest_point(const struct probe_spec *spec);

/* READ, WORKING_SET_READ: returns the bytes that one access moves: transaction_bytes, or 128 if
 * that is 0. */
uint32_t probe_access_bytes(const struct probe_spec *spec);
/* READ: returns whether an access only reads 128 bytes, like the accesses of the throughput
 * curve. */
bool probe_is_line_read(const struct probe_spec *spec);

/* CACHE: returns the step from one element to the next of a scattered cycle of n. The step has no
 * common divisor with n. */
uint64_t probe_scatter_step(uint64_t n);
/* CACHE: returns whether each part of a scattered cycle of n covers the whole cycle evenly. If the
 * even step has a common divisor with n, another step is used, and the walk returns to a few places
 * again and again. */
bool probe_scatters_evenly(uint64_t n);
/* CACHE: returns the offset from element 0 of the end of the longest footprint. sweep_bytes begin
 * there, followed by evict_bytes. */
uint64_t probe_cache_behind(const struct probe_spec *spec);

/* PEER: returns the number of values of one row. */
uint32_t probe_peer_columns(const struct probe_spec *spec);

/* CONCURRENCY: the first function packs warps and loads into a point, and the others unpack
 * them. */
uint64_t probe_concurrency(uint32_t warps, uint32_t loads);
uint32_t probe_concurrency_warps(uint64_t point);
uint32_t probe_concurrency_loads(uint64_t point);

/* READ, CONCURRENCY: reports the window `w` of the region [0, region_bytes). Windows lie side by
 * side and cover the region. The length of each is proportional to its number of SMs (SMs of
 * `sm_ids` that are not idle). Borders are rounded down to whole lines. A window without SMs is
 * empty. */
void probe_window(const struct probe_spec *spec, const uint16_t *sm_ids, uint32_t sm_count,
                  uint64_t region_bytes, uint32_t w, uint64_t *first_byte, uint64_t *length_bytes);

/* READ, CONCURRENCY: returns the window of the SM with this id. Returns PROBE_SM_IDLE also if the
 * spec does not name the id. */
uint32_t probe_window_index(const struct probe_spec *spec, uint16_t sm_id);
/* Returns the position of an SM among `sm_count` ids, or `sm_count` if it is not among them. */
uint32_t probe_sm_position(const uint16_t *sm_ids, uint32_t sm_count, uint16_t sm_id);

/* Returns whether the kernel of the probe relates its times to a reference, so that they do not
 * depend on a change of the SM clock (kernels/abi.h). */
bool probe_has_reference(const struct probe_spec *spec);

/* Initializes the conditions of a probe on a GPU with these limits. All values of the run are "not
 * reported". */
void probe_conditions_init(const struct gpu_limits *limits, struct probe_conditions *out);

/* Frees the memory of a result and zeroes it. A zeroed result is allowed. */
void probe_result_free(struct probe_result *take);
