/* probe.h: the probes that a GPU can run, and the shape of their answers.
 *
 * A probe is a flat value (`struct probe_spec`). Every source, a real GPU or the MMU model, answers
 * the same probes. A probe decides nothing: it returns raw cycles and raw counts.
 *
 * Addresses. A probe speaks of *pages*: page i of a probe with stride S is the one 128-byte line at
 * virtual offset `base_bytes + i * S` of the arena. How the source backs the range with memory is
 * not specified, and is reported in the conditions (probe_conditions.arena).
 *
 *   kind    who works            what it does                                   values[..]
 *   CHASE   one SM, one thread   for every point n: walks pages 0..n-1 as a     [point][sample]
 *                                cycle, `warm_laps` times untimed, and then     cycles of one load
 *                                times the `samples` loads that follow, one
 *                                by one, each dependent on the one before
 *   ROUND   all SMs              for every repeat, twice: all SMs prime the     [repeat][0 or 1]
 *                                slices, pages 0..P-1 (P = number of SMs *      [sm][slice page]
 *                                slice_pages), each from its own slice on;      cycles of one load
 *                                when all are done, all walk the next
 *                                `flush_pages` pages; in the second half the
 *                                pivot then walks `thrash_pages` pages beyond
 *                                those, `warm_laps` times; then every SM times
 *                                a load of each page of its own slice
 *                                [i*s, i*s+s), i being its position. Half 0 is
 *                                the control without thrashing.
 *   PAIRS   two SMs at a time    for every pivot p, and every SM k: k primes    [pivot][0 or 1]
 *                                pages 0..s-1, walks the next `flush_pages`,    [sm][slice page]
 *                                and times pages 0..s-1 (control); primes and   cycles of one load
 *                                walks once more; p walks `thrash_pages` pages
 *                                beyond those, `warm_laps` times; k times pages
 *                                0..s-1 again. All other SMs are idle.
 *                                Karnagel 2017, section 4.2. For k == p one SM
 *                                does it all.
 *
 *   SIDES   the SMs of `sms`,    go through the pages 0..samples-1 as a cycle,   [repeat]
 *           at the same time     each SM from a page of its own on: `warm_laps`  [sm of the spec]
 *                                times untimed, then `repeats` times. On each    [sample]
 *                                page an SM adds 0 atomically, and waits for     cycles of one
 *                                the result. An atomic is carried out where the  atomic
 *                                line lives in L2, so that a line of the far
 *                                side stays far.
 *
 * flush_pages are there to push the slice out of the levels nearer to the SM than the one that
 * is probed: their hits would hide the eviction. They are walked before priming too: a page that
 * still hits in a nearer level is not filled into the farther one.
 *
 *   READ    all SMs, all warps   for every point R (bytes): every SM reads      [point][repeat]
 *                                random 128-byte lines for `duration_us`,       [1 + sm]
 *                                each SM inside its own window of the region    column 0: elapsed
 *                                [0, R) (see probe_window). Walker 2024.        ns; then the lines
 *                                                                               each SM has read
 *
 * READ knows other kinds of access too, by `access` and `transaction_bytes`; each SM's number is
 * then that of its accesses:
 *
 *   read   32   each lane of a warp loads 4 bytes of a sector of its own
 *   read  128   each warp loads a line: the curve
 *   read  512   each warp loads four lines side by side
 *   atomic 32   each lane adds 0 to 8 bytes of a sector of its own and uses the result
 *   write  32   each lane stores 4 bytes of 0 into a sector of its own
 *
 * Memory is zero before and after.
 *
 * With `run_bytes`, READ also says what lies behind the addresses: the first `scattered_bytes` of
 * the region are backed by runs of physical memory of that length, none of which continues the one
 * before. The rest, and all without run_bytes, is as contiguous as the source can make it.
 *
 * CHASE and READ know other kinds of memory than the device's own, by `memory`
 * (base/memory_kind.h): the range then is one of that kind, as long as the probe needs, which the
 * source makes for it and keeps until a probe touches other memory. A kind that cannot be had is an
 * answer too: no values, and the reason in the conditions.
 *
 * Two more kinds never run on a GPU. They hold what others have measured and published
 * (daemon/import), in thousandths of a cycle:
 *
 *   MEANS       one unnamed SM   a walk like CHASE of every point n, of which    [point]
 *                                only the mean of all n loads is given           mean of one load
 *   MEAN_PAIRS  two SMs          for every SM i, and every SM k: i walks         [sm i][sm k]
 *                                pages 0..t-1 (t = thrash_pages), k walks        mean of one load
 *                                the t pages beyond them, i walks its own
 *                                again. Karnagel 2017, section 3.3.
 *
 * Positions and ids: `%smid` values need not be dense (MIG). A result lists the ids it saw in
 * ascending order (probe_result.sm_ids); every [sm] axis is indexed by position in that list.
 * Specs name SMs by id.
 *
 * A value is 0 where another process had the GPU each time that it was to be timed: a whole point
 * of CHASE, repeat of ROUND or pair of PAIRS.
 *
 * All functions here are pure and may be called from any thread.
 */
#ifndef REACH_GPU_PROBE_H
#define REACH_GPU_PROBE_H

#include "base/access.h"
#include "base/clock.h"
#include "base/identity.h"
#include "base/memory_kind.h"
#include "base/status.h"

enum {
    PROBE_MAX_POINTS = 256,
    PROBE_MAX_SAMPLES = 8192,
    PROBE_MAX_SLICE = 64,
    PROBE_MAX_REPEATS = 64,
    PROBE_MAX_WINDOWS = 64,
    PROBE_LINE_BYTES = 128,
    PROBE_SECTOR_BYTES = 32, /* the least that memory moves */
    PROBE_BLOCK_BYTES = 512, /* the most that one access of a warp moves */
    PROBE_SM_IDLE = 0xffff   /* window_of_sm: this SM does not read */
};

enum probe_kind {
    PROBE_CHASE = 0,
    PROBE_ROUND,
    PROBE_PAIRS,
    PROBE_READ,
    PROBE_MEANS,
    PROBE_MEAN_PAIRS,
    PROBE_SIDES,
    PROBE_KIND_COUNT
};
enum { PROBE_MEAN_SCALE = 1000 }; /* MEANS, MEAN_PAIRS: values per cycle */

/* "chase", "round", "pairs", "read", "means", "mean-pairs", "sides". */
const char *probe_kind_name(enum probe_kind kind);
bool probe_kind_from_name(const char *name, enum probe_kind *out);

/* One probe. Zero what a kind does not use; probe_check has what each kind needs. */
struct probe_spec {
    enum probe_kind kind;
    uint64_t stride_bytes; /* all but READ: distance of two pages; a multiple of 128 */
    uint64_t base_bytes;   /* offset of page 0 (the latency probes) or of the region (READ) */
    uint32_t point_count;  /* CHASE, READ, MEANS: 1..PROBE_MAX_POINTS */
    uint64_t points[PROBE_MAX_POINTS]; /* CHASE, MEANS: pages; READ: bytes of the region */
    uint32_t samples;     /* CHASE: timed loads a point; SIDES: pages; 1..PROBE_MAX_SAMPLES */
    uint32_t warm_laps;   /* CHASE, SIDES: 0..16; ROUND, PAIRS: laps of the thrashing walk, 1..16 */
    uint32_t slice_pages; /* ROUND, PAIRS: 1..PROBE_MAX_SLICE */
    uint32_t flush_pages; /* ROUND, PAIRS: 0..2^20 */
    uint32_t thrash_pages;      /* ROUND, PAIRS, MEAN_PAIRS: >= 1 */
    uint32_t repeats;           /* ROUND, READ, SIDES: 1..PROBE_MAX_REPEATS */
    uint32_t duration_us;       /* READ: 100..100000 */
    uint32_t seed;              /* READ: of the random positions */
    enum access access;         /* READ: see the table above */
    uint32_t transaction_bytes; /* READ: moved by one access; 0: 128 */
    uint64_t run_bytes;         /* READ: 0: none; a power of two times the granule, at most
                                   probe_longest_run */
    uint64_t scattered_bytes;   /* READ: a multiple of run_bytes; 0 with it */
    enum memory_kind memory;    /* CHASE, READ: what is touched */
    uint32_t peer;     /* MEMORY_PEER: place among the other GPUs, as the driver lists them */
    uint32_t sm_count; /* CHASE, ROUND: 1, the SM or the pivot; PAIRS: the pivots; SIDES: who works,
                          ascending */
    uint16_t sms[REACH_MAX_SMS];          /* their ids */
    uint32_t window_count;                /* READ: 1..PROBE_MAX_WINDOWS */
    uint32_t window_sms;                  /* READ: length of window_of_sm; index is the SM's id */
    uint16_t window_of_sm[REACH_MAX_SMS]; /* READ: window index, or PROBE_SM_IDLE */
};

enum arena_kind {
    ARENA_ALIAS = 0, /* a small backing, mapped again and again over a large virtual range */
    ARENA_PLAIN,     /* one plain allocation as large as the range */
    ARENA_SIMULATED
};
const char *arena_kind_name(enum arena_kind kind); /* "alias", "plain", "simulated" */
bool arena_kind_from_name(const char *name, enum arena_kind *out);

/* The limits of a source; known once it is open. */
struct gpu_limits {
    enum arena_kind arena;
    uint64_t range_bytes;         /* base + points * stride (or + region) must stay within this */
    uint64_t backing_bytes;       /* physical memory behind the range */
    uint64_t granule_bytes;       /* the page the driver maps with, usually 2 MiB */
    uint64_t device_memory_bytes; /* what the probes hold on the device, all counted */
    uint64_t free_bytes;          /* free on the device before anything was taken */
    uint32_t sm_count;
    uint64_t host_memory_bytes; /* most that probes of host memory may take; 0: none of these */
    uint64_t host_total_bytes;  /* memory of the host, used or not; 0: not reported */
    uint32_t memory_ms;         /* most time for all kinds of memory; 0: that of the depth */
    uint32_t peer_count;        /* other GPUs */
};

/* The circumstances of one run. What the source does not report is unknown with the reason. */
struct probe_conditions {
    int64_t started_at; /* wall clock, seconds since 1970 UTC */
    nsec_t duration_ns; /* of the whole run: launch, kernel, copy back */
    enum arena_kind arena;
    uint64_t range_bytes;
    uint64_t backing_bytes;
    uint64_t device_memory_bytes;
    struct maybe_u32 sm_clock_khz; /* read back after the run */
    struct maybe_u32 memory_clock_khz;
    struct maybe_u32 temperature_celsius;
    struct maybe_u32 other_processes;     /* compute processes on this GPU besides ours */
    struct maybe_u64 throttle_reasons;    /* NVML's bit mask, after the run; 0: none */
    struct maybe_u32 sm_clock_before_khz; /* read before the run */
    /* Share of the last second or so in which any kernel ran on this GPU, before it was opened. */
    struct maybe_u32 busy_percent_before;
    struct maybe_u64 uncorrected_errors; /* of memory (ECC), since the GPU was opened */
    /* Of these, whose kernels may run at the same time as ours: the other clients of MPS. */
    struct maybe_u32 concurrent_processes;
    /* Of CHASE, ROUND and PAIRS: stretches during which another process had the GPU (its time
     * slice), and which were done again in the same launch (kernels/abi.h). */
    struct maybe_u32 interruptions;
    struct maybe_u64 xid; /* the driver's last error number since the GPU was opened; 0: none */
    /* Of a probe of other memory, and otherwise zero: its range, or why it cannot be had. */
    struct maybe_u64 memory_bytes;
    char peer_uuid[64]; /* of MEMORY_PEER */
};

/* One answer. `values` belongs to the result: probe_result_free. */
struct probe_result {
    uint32_t sm_count;              /* SMs that took part in the launch */
    uint16_t sm_ids[REACH_MAX_SMS]; /* ascending */
    uint32_t *values;               /* see the table above */
    size_t value_count;
    struct probe_conditions conditions;
};

/* Is this spec complete and within the limits? `limits` may be NULL: then ranges are not checked.
 * STATUS_INVALID_ARGUMENT names the field. With limits, MEANS and MEAN_PAIRS are
 * STATUS_NOT_SUPPORTED: no GPU answers them. */
enum status probe_check(const struct probe_spec *spec, const struct gpu_limits *limits,
                        struct err *err);

/* Number of values that the answer to `spec` has on a GPU with `sm_count` SMs; `spec` must have
 * passed probe_check. */
size_t probe_value_count(const struct probe_spec *spec, uint32_t sm_count);

/* Highest virtual offset (exclusive) that `spec` touches on a GPU with `sm_count` SMs. Saturates
 * at UINT64_MAX. */
uint64_t probe_range_bytes(const struct probe_spec *spec, uint32_t sm_count);

/* READ: the longest run_bytes that these limits allow; 0: the source cannot lay out memory. */
uint64_t probe_longest_run(const struct gpu_limits *limits);

/* Do the two touch the same memory? */
bool probe_same_memory(const struct probe_spec *a, const struct probe_spec *b);
/* Is this the answer that the probe's kind of memory cannot be had? It has no values then. */
bool probe_is_absent(const struct probe_spec *spec, const struct probe_result *result);

/* READ: bytes that one access moves: transaction_bytes, or 128 if that is 0. */
uint32_t probe_access_bytes(const struct probe_spec *spec);
/* READ: is it the curve's kind, reads of 128 bytes? */
bool probe_is_line_read(const struct probe_spec *spec);

/* READ: the window `w` of the region [0, region_bytes). Windows lie side by side, cover the region,
 * and are as long as their share of the SMs (those of `sm_ids` that are not idle); borders are
 * rounded down to whole lines. A window without SMs is empty. */
void probe_window(const struct probe_spec *spec, const uint16_t *sm_ids, uint32_t sm_count,
                  uint64_t region_bytes, uint32_t w, uint64_t *first_byte, uint64_t *length_bytes);

/* READ: the window of the SM with this id; PROBE_SM_IDLE also if the spec does not name the id. */
uint32_t probe_window_of(const struct probe_spec *spec, uint16_t sm_id);
/* The position of an SM among `sm_count` ids; `sm_count` if it is none of them. */
uint32_t probe_sm_position(const uint16_t *sm_ids, uint32_t sm_count, uint16_t sm_id);

/* The conditions of a probe on a GPU with these limits, before anything is known of the run: the
 * rest is "not reported". */
void probe_conditions_init(const struct gpu_limits *limits, struct probe_conditions *out);

/* Frees what a result holds and zeroes it. A zeroed result is fine. */
void probe_result_free(struct probe_result *take);

#endif
