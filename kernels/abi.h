/* abi.h: the structs that host and device share. They are plain C with members of fixed width.
 * Device addresses are uint64_t, and the size of every struct is a multiple of 8 bytes. Both sides
 * assert the sizes.
 *
 * All kernels are launched with one block per SM. The dynamic shared memory of a block is more than
 * half of the SM's, so that no two blocks fit on one SM. Each block adds one to `arrived` and waits
 * until the whole grid has arrived. Only then does %smid decide the role of a block. Every wait
 * gives up after `limit_ns` (by %globaltimer) and sets *gave_up, so that no kernel can hang a
 * device.
 *
 * If other processes use the GPU too, each process has all SMs for a time slice (2 ms on an H200).
 * Translations may be lost after a time slice of another process. So the latency kernels read
 * %clock at every load. If more than REACH_AWAY_CYCLES lie between two loads, the GPU was away. The
 * interrupted point, pair, or repeat of a round is then measured again. A point is repeated as a
 * whole REACH_WHOLE_AGAIN times, then from its last timed load on. After REACH_MOST_FUTILE futile
 * attempts the values are 0.
 *
 * The SM clock may change while a latency kernel runs. So each part begins or ends with loads of
 * one page that hit, and their median is the reference of the part. If the reference differs from
 * the first reference of the probe by more than one part in REACH_REFERENCE_SLACK, the times of the
 * part are multiplied by the first reference and divided by its own. No assumption is needed about
 * the clocks from which a load takes its time.
 */
#ifndef REACH_KERNELS_ABI_H
#define REACH_KERNELS_ABI_H

#ifdef __CUDACC__
#include <cstdint>
#define REACH_ABI_ASSERT static_assert
#else
#include <stdint.h>
#define REACH_ABI_ASSERT _Static_assert
#endif

/* The part that all launches share. Addresses are of device memory. */
struct reach_grid {
    uint64_t arrived;   /* uint32_t[1], 0 at launch: barrier arrivals, turns of reach_pairs */
    uint64_t gave_up;   /* uint32_t[1], 0 at launch: set when a wait ran past its limit */
    uint64_t away;      /* uint32_t[3], 0 at launch: enum reach_away */
    uint64_t positions; /* uint32_t[sm_slots]: SM id -> position in the list of SMs */
    uint64_t limit_ns;  /* limit of one wait */
    uint32_t blocks;    /* blocks of the grid: the number of SMs */
    uint32_t sm_slots;  /* highest SM id + 1 */
};

/* The meaning of the words of `away`. */
enum reach_away {
    REACH_AWAY_INTERRUPTED = 0, /* number of stretches that were repeated */
    REACH_AWAY_GIVEN_UP, /* stretches that were interrupted each time, so their values are 0 */
    REACH_AWAY_ATTEMPT, /* reach_round: number of the last attempt that was interrupted on any SM */
    REACH_AWAY_WORDS
};
/* A load behind a full queue takes some thousand cycles. A time slice and its two context switches
 * took 800,000 and more on every GPU observed. */
#define REACH_AWAY_CYCLES     100000u
#define REACH_MOST_FUTILE     16
#define REACH_REFERENCE_SLACK 128
#define REACH_WHOLE_AGAIN     2

/* reach_census: seen[smid] counts the blocks on this SM. */
struct reach_census_args {
    struct reach_grid grid;
    uint64_t seen; /* uint32_t[sm_slots] */
};

/* The arguments of the latency probes: reach_chase (PROBE_CHASE), reach_round (PROBE_ROUND),
 * reach_pairs (PROBE_PAIRS) and reach_sides (PROBE_SIDES). Each kernel reads its part of the
 * members. */
struct reach_walk_args {
    struct reach_grid grid;
    uint64_t base; /* address of page 0 */
    uint64_t stride_bytes;
    uint64_t points;  /* chase: uint64_t[count], pages of each cycle */
    uint64_t pivots;  /* pairs, sides: uint32_t[count], SM ids */
    uint64_t values;  /* uint32_t[count * samples], [count * 2 * blocks * slice_pages], or sides:
                         [repeats * count * samples] */
    uint32_t count;   /* points, repeats of a round, or pivots */
    uint32_t samples; /* chase, sides: at most REACH_CHASE_MAX_SAMPLES */
    uint32_t laps;    /* chase, sides: untimed laps; otherwise laps of the thrashing walk */
    uint32_t sm;      /* id; chase: the one SM that works; round: the pivot */
    uint32_t slice_pages;
    uint32_t flush_pages;
    uint32_t thrash_pages;
    uint32_t repeats;       /* sides: timed laps */
    uint32_t has_reference; /* chase: 1 if each point has a reference */
    uint32_t pad;
};
#define REACH_CHASE_MAX_SAMPLES 8192

/* One SM's window for reach_read. If `lines` is 0, the SM is idle. */
struct reach_window {
    uint64_t first_line;
    uint64_t lines; /* at most 2^32 */
    uint32_t rank;  /* rank of this SM among the SMs that are not idle */
    uint32_t pad;
};

/* reach_read reads random 128-byte lines. A warp loads one line at a time and has REACH_READ_UNROLL
 * loads in flight. The other kinds of access have kernels with the same arguments; `lines` then
 * counts accesses:
 *
 *   reach_read_concurrent  each of `warps` warps loads lines, with `in_flight` loads in flight, in
 *                        a scattered order that does not soon repeat a line
 *   reach_read_far       a warp loads rows of `row_bytes`, with REACH_FAR_UNROLL loads in flight
 *   reach_atomic_far     the same, and each lane adds 0 to 4 bytes, and uses the result
 *   reach_write_far      the same, and each lane stores 4 bytes of 0
 *   reach_copy_far       like reach_read_far, and each lane stores what it has loaded to the
 *                        output, where the rows of all warps lie side by side
 *   reach_read_sectors   each lane loads 4 bytes of its own random sector of 32 bytes
 *   reach_read_blocks    a warp loads REACH_BLOCK_LINES lines side by side
 *   reach_atomic         each lane adds 0 to 8 bytes of a random sector, and uses the result
 *   reach_write          each lane stores 4 bytes of 0 into a random sector
 *
 * All kernels but reach_read and reach_read_concurrent continue for a REACH_COOL_DIVISOR-th of
 * run_ns after the count has ended, so that no SM counts after others have stopped.
 *
 * If memory is mapped again and again (period_lines > 0), a line would be found in L2 more often
 * than in a region of different lines. So a warp draws only some of its lines (random_share of
 * 2^32) from the whole window. The other lines come from its own part of the period, in scattered
 * order, and a copy of each is drawn at random. */
struct reach_read_args {
    struct reach_grid grid;
    uint64_t base;
    uint64_t windows; /* struct reach_window[sm_slots] */
    uint64_t lines;   /* uint32_t[blocks]: lines read, by position */
    uint64_t started; /* uint64_t[blocks]: %globaltimer, by position */
    uint64_t ended;   /* uint64_t[blocks] */
    uint64_t sink;    /* uint32_t[1], never written: memory is zero */
    uint64_t warm_ns; /* time before the count, in which reads are not counted */
    uint64_t run_ns;
    uint64_t late_ns; /* time that the last accesses may take after the kernel should have ended */
    uint64_t period_lines; /* 0 if no line of the range repeats; otherwise a power of two, and
                              copies begin at `base` */
    uint64_t output;       /* reach_copy_far: address of the output in device memory */
    uint32_t seed;
    uint32_t readers;      /* number of SMs that are not idle */
    uint32_t random_share; /* of 2^32 */
    uint32_t zero; /* always 0: the value that is added and stored; the compiler cannot assume it */
    uint32_t gap_lines;    /* reach_read_far: lines between two pieces of REACH_PIECE_LINES. The
                              `lines` of the windows count only the pieces */
    uint32_t in_flight;    /* reach_read_concurrent: 1, 2, 4, 8, 16 or 32 */
    uint32_t warps;        /* warps of a block; 0 means REACH_READ_THREADS / 32 */
    uint32_t row_bytes;    /* far memory: a power of two from 32 to REACH_FAR_UNROLL * 128 */
    uint32_t output_bytes; /* reach_copy_far: length of the output, which is written in a circle; a
                              power of two */
    uint32_t pad;
};

/* The arguments of reach_shared (PROBE_SHARED). */
struct reach_shared_args {
    struct reach_grid grid;
    uint64_t sms;    /* uint32_t[sm_count], SM ids */
    uint64_t points; /* uint64_t[count], bytes from lane to lane */
    uint64_t values; /* uint32_t[repeats * sm_count * count] */
    uint32_t sm_count;
    uint32_t count;
    uint32_t samples;
    uint32_t laps; /* untimed */
    uint32_t repeats;
    uint32_t width; /* bytes that a lane loads */
    uint32_t warps; /* warps of a block */
    uint32_t in_flight;
};

/* The arguments of reach_peer (PROBE_PEER). It is launched in clusters, without a barrier over the
 * grid, because the clusters need not run at the same time. */
struct reach_peer_args {
    struct reach_grid grid;
    uint64_t values; /* uint32_t[(1 + SMs) * columns], 0 at launch; the host fills in row 0 */
    uint32_t columns;
    uint32_t samples;
    uint32_t ring_bytes; /* a multiple of REACH_PEER_LAP_BYTES */
    uint32_t pad;
};
#define REACH_SHARED_BYTES   32768 /* shared memory that reach_shared uses */
#define REACH_PEER_THREADS   1024
#define REACH_PEER_LAP_BYTES 65536       /* read by all threads, with four loads of 16 bytes each */
#define REACH_PEER_TWICE     0xffffffffu /* in place of the cluster of an SM that had two blocks */

#define REACH_PIECE_LINES  32
#define REACH_READ_UNROLL  16
#define REACH_READ_THREADS 1024
#define REACH_LANE_UNROLL  4 /* loads in flight of a lane, if each lane works alone */
#define REACH_FAR_UNROLL   8
#define REACH_BLOCK_LINES  4
#define REACH_COOL_DIVISOR 8

/* An SM, for the kernels of working sets. */
struct reach_working_set_sm {
    uint32_t side;     /* 0 or 1 */
    uint32_t rank;     /* rank among the SMs of its side */
    uint32_t side_sms; /* SMs of its side */
    uint32_t pad;
};

/* The arguments of the kernels of working sets (PROBE_WORKING_SET_READ). In reach_working_set_sort,
 * the SMs of either side time an atomic on each granule of a set. `bits` then has a 1 for each
 * granule that is near to side 1. reach_working_set_lines and reach_working_set_blocks read the set
 * at random, in accesses of 128 and 512 bytes. */
struct reach_working_set_args {
    struct reach_grid grid;
    uint64_t base;
    uint64_t sms;    /* struct reach_working_set_sm[sm_slots] */
    uint64_t bits;   /* uint32_t[granules / 32 + 1] */
    uint64_t cycles; /* uint16_t[2 * granules] */
    uint64_t lines;  /* this member and the next three are like in reach_read_args */
    uint64_t started;
    uint64_t ended;
    uint64_t sink;
    uint64_t set_bytes;
    uint64_t warm_ns;
    uint64_t run_ns;
    uint32_t granules;     /* granules of the set; 0 if the sides do not matter */
    uint32_t granule_bits; /* log2 of the bytes of a granule */
    uint32_t own; /* 1 if each SM reads its own part of the set, which has `blocks` parts */
    uint32_t seed;
};
#define REACH_WORKING_SET_LAPS 4 /* atomics on a granule, the first untimed */

/* The arguments of reach_cache (PROBE_CACHE). One thread of an SM works, and all threads of all
 * blocks sweep. */
enum {
    REACH_PATH_L2 = 0,
    REACH_PATH_L1,
    REACH_PATH_READ_ONLY,
    REACH_PATH_CONSTANT,
    REACH_PATH_NONE
};
struct reach_cache_point {
    uint64_t elements;
    uint64_t step; /* elements from one load to the next, modulo `elements` */
    uint32_t sm;   /* id of the SM that works */
    uint32_t pad;
};
struct reach_cache_args {
    struct reach_grid grid;
    uint64_t claimed; /* uint32_t[sm_slots], 0 at launch: 1 if a block runs on the SM */
    uint64_t base; /* address of element 0; not used with REACH_PATH_CONSTANT, which reads the bank
                      of constants */
    uint64_t stride_bytes;
    uint64_t points;      /* struct reach_cache_point[count] */
    uint64_t values;      /* uint32_t[count * samples] */
    uint64_t sink;        /* uint32_t[1], never written */
    uint64_t sweep_base;  /* start of the sweep_bytes that all SMs load before each point */
    uint64_t sweep_bytes; /* 0 means no sweep */
    uint64_t touch_bytes; /* the SM first loads one line of each of these blocks of the footprint */
    uint64_t evict_from;  /* offset of the range that the SM walks before it times */
    uint64_t evict_bytes;
    uint32_t count;
    uint32_t samples;
    uint32_t laps; /* untimed */
    uint32_t path; /* path of the timed loads */
    uint32_t warm_path;
    uint32_t sweep_footprint; /* 1 if all SMs load the footprint before each point,
                                 REACH_SWEEP_ELEMENTS if they load only its elements */
    uint32_t rehearse;        /* 1 if the timed loop first runs once on the element at evict_from */
    uint32_t pad;
};
#define REACH_CACHE_THREADS  1024
#define REACH_CONSTANT_BYTES 65536
#define REACH_SWEEP_BYTES    32
#define REACH_SWEEP_ELEMENTS 2
#define REACH_EVICT_STRIDE   32
#define REACH_TOUCH_OFFSET   96 /* offset within the first line of each block */

REACH_ABI_ASSERT(sizeof(struct reach_grid) == 48, "abi");
REACH_ABI_ASSERT(sizeof(struct reach_cache_point) == 24, "abi");
REACH_ABI_ASSERT(sizeof(struct reach_cache_args) == 168, "abi");
REACH_ABI_ASSERT(sizeof(struct reach_census_args) == 56, "abi");
REACH_ABI_ASSERT(sizeof(struct reach_walk_args) == 128, "abi");
REACH_ABI_ASSERT(sizeof(struct reach_read_args) == 176, "abi");
REACH_ABI_ASSERT(sizeof(struct reach_shared_args) == 104, "abi");
REACH_ABI_ASSERT(sizeof(struct reach_peer_args) == 72, "abi");
REACH_ABI_ASSERT(sizeof(struct reach_window) == 24, "abi");
REACH_ABI_ASSERT(sizeof(struct reach_working_set_args) == 152, "abi");
REACH_ABI_ASSERT(sizeof(struct reach_working_set_sm) == 16, "abi");

#endif
