/* fingerprint.h: what analysis derived about one GPU. A flat value without pointers: copy it by
 * assignment, compare and hash it by its content. It does not depend on how anything was found.
 *
 * Units are part of every name: _bytes, _cycles (of the SM clock), _gbps (10^9 bytes per second).
 * Every number is known, unknown or not observable (base/maybe.h).
 */
#ifndef REACH_FINGERPRINT_FINGERPRINT_H
#define REACH_FINGERPRINT_FINGERPRINT_H

#include "types/identity.h"
#include "base/status.h"
#include "types/verdict.h"
#include "types/access.h"
#include "types/memory_kind.h"
#include "fingerprint/evidence.h"

#include <jansson.h>

enum {
    FINGERPRINT_MAX_LEVELS = 6,
    FINGERPRINT_MAX_CURVE = 32,
    FINGERPRINT_MAX_RATES = 8, /* kinds of access beside the curve's */
    FINGERPRINT_MAX_RATE_POINTS = 12,
    FINGERPRINT_CURVE_BYTES = 128, /* moved by one read of the curve */
    FINGERPRINT_MAX_PEERS = 16,    /* GPUs whose memory this one can access */
    FINGERPRINT_MAX_MEMORY = MEMORY_PEER - 1 + FINGERPRINT_MAX_PEERS,
    FINGERPRINT_MAX_MEMORY_CURVE = 24,
    FINGERPRINT_MAX_WORKING_SETS = 64,
    FINGERPRINT_MAX_CARVEOUTS = 6,
    FINGERPRINT_TRACE_BYTES = 64,
    FINGERPRINT_SHARED_WIDTHS = 3, /* bytes that one lane loads: 4, 8, 16 */
    FINGERPRINT_MAX_STRIDES = 128,
    FINGERPRINT_MAX_CLUSTER = 16, /* SMs of one cluster */
    FINGERPRINT_MAX_CONCURRENCY = 32,
    FINGERPRINT_MAX_BY_SMS = 24,
    FINGERPRINT_MAX_NOTES = 8,
    FINGERPRINT_MAX_SET_RUNS = 8,    /* different set sizes of one level */
    FINGERPRINT_MAX_DISABLED = 64,   /* SMs that a candidate can name */
    FINGERPRINT_MAX_CANDIDATES = 32, /* listed; there may be more */
    FINGERPRINT_MAX_SLOW_PAIRS = 32,
    FINGERPRINT_SIGNATURE_BYTES = 512,
    FINGERPRINT_ID_BYTES = 20, /* "fp" and 16 hex digits, and the end */
    FINGERPRINT_NO_GROUP = 0xffff
};

enum shared_by { SHARED_UNKNOWN = 0, SHARED_SM, SHARED_GROUP, SHARED_GPU };
const char *shared_by_name(enum shared_by s); /* "unknown", "sm", "group", "gpu" */

enum replacement { REPLACEMENT_UNKNOWN = 0, REPLACEMENT_LRU, REPLACEMENT_NOT_LRU };
const char *replacement_name(enum replacement r); /* "unknown", "lru", "not-lru" */

/* Does one miss fill a whole entry or a part of it? */
enum fill { FILL_UNKNOWN = 0, FILL_WHOLE, FILL_PARTS };
const char *fill_name(enum fill f); /* "unknown", "whole", "parts" */

/* The answer to a question, if it was examined. */
enum finding { FINDING_UNKNOWN = 0, FINDING_YES, FINDING_NO };
const char *finding_name(enum finding f); /* "unknown", "yes", "no" */

/* Why two groups slow each other down. */
enum slow_cause { SLOW_UNKNOWN = 0, SLOW_BY_TLB, SLOW_BY_BANDWIDTH };
const char *slow_cause_name(enum slow_cause c); /* "unknown", "tlb", "bandwidth" */

/* How a process allocates memory: the virtual memory API, a plain allocation, managed memory. */
enum allocation { ALLOCATION_VIRTUAL = 0, ALLOCATION_PLAIN, ALLOCATION_MANAGED, ALLOCATION_COUNT };
const char *allocation_name(enum allocation a); /* "virtual", "plain", "managed" */

/* Memory is full with more time and host memory for the kinds of memory; matrix is full with the
 * pair matrix. */
enum depth { DEPTH_QUICK = 0, DEPTH_FULL, DEPTH_MEMORY, DEPTH_MATRIX, DEPTH_COUNT };
const char *depth_name(enum depth d); /* "quick", "full", "memory", "matrix" */
bool depth_from_name(const char *name, enum depth *out);
/* Below depth memory no region of a kind of memory beside plain device memory is longer. */
#define DEPTH_FULL_REGION_BYTES ((uint64_t)8 << 30)

/* Which SMs share one thing. Groups are numbered by their lowest SM id. */
struct sm_partition {
    uint32_t group_count; /* 0: nothing known */
    /* by SM id; FINGERPRINT_NO_GROUP: no such SM, or not sure */
    uint16_t group_of_sm[REACH_MAX_SMS];
};

/* Sets of one level that have as many ways. */
struct set_run {
    uint32_t ways;
    uint32_t sets;
};

struct tlb_level {
    uint32_t level;                    /* 1 is nearest to the SM */
    struct maybe_u32 entries;          /* reach / entry_bytes, from the onset */
    struct maybe_u64 entry_bytes;      /* virtual bytes one entry translates */
    struct maybe_u64 page_bytes;       /* page the driver mapped the probe's memory with */
    struct maybe_u64 reach_bytes;      /* largest cyclic footprint without a miss */
    struct maybe_u64 onset_bytes;      /* smallest probed footprint with misses */
    struct maybe_u64 saturation_bytes; /* smallest probed footprint of which every load misses */
    struct maybe_u32 sets;             /* all of them */
    struct maybe_u32 ways;             /* if all sets have the same number */
    uint32_t run_count;                /* the sets by their ways, most ways first; 0: not known */
    struct set_run runs[FINGERPRINT_MAX_SET_RUNS];
    struct maybe_u32 victim_entries; /* behind the sets, as a walk in a cycle sees them */
    enum replacement replacement;    /* LRU: a cyclic walk evicts the oldest; so does FIFO */
    enum fill fill;
    struct maybe_u32 entry_pages; /* allocation pages that one entry covers */
    struct maybe_u64 tag_bytes;   /* filled in parts: all of an entry; entry_bytes is a part */
    struct maybe_f64 miss_penalty_cycles; /* on top of a hit in this level */
    enum shared_by shared_by;
    struct sm_partition sharing; /* if shared_by is SHARED_GROUP */
    struct maybe_f64 confidence; /* 0..1 */
    struct evidence evidence[LEVEL_EVIDENCE_COUNT];
};

struct sm_group {
    uint32_t sm_count;
    struct maybe_f64 miss_penalty_cycles;
    struct maybe_f64 random_read_gbps; /* all its SMs, within the reach, others working too */
    struct maybe_f64 alone_gbps;       /* the same with all other SMs idle */
    struct maybe_f64 beyond_gbps;      /* alone, over up to two reaches */
    struct maybe_u32 penalty_class;    /* 0: the group's misses cost least. By clear gaps only */
    struct maybe_u32 speed_class;      /* 0: slowest, alone and by SM */
    struct evidence evidence[GROUP_EVIDENCE_COUNT];
};

/* Two groups that read less side by side than alone, beyond noise. */
struct slow_pair {
    uint16_t groups[2];
    double ratio; /* of what the two read alone, added up */
    enum slow_cause cause;
};

/* Pairs of groups, each in a window of its own, both windows together beyond one reach. */
struct group_pairs {
    uint32_t measured; /* pairs; 0: none, and the rest says nothing */
    struct maybe_f64 worst_ratio;
    uint16_t worst[2];
    enum finding share_tlb; /* do any two? */
    uint32_t slow_count;
    uint32_t listed; /* of the slow ones */
    struct slow_pair slow[FINGERPRINT_MAX_SLOW_PAIRS];
};

/* The SMs of the full die that this chip lacks, as far as the groups show it. Each number is
 * that of the smallest regular die that explains the groups: a regular loss (one group of every
 * cluster, say) is not visible in it. */
struct disabled_sms {
    struct maybe_u32 sm_count; /* full_sm_count less the SMs that are there */
    struct maybe_u32 unit_sms; /* SMs with adjacent ids that are always enabled together (a TPC) */
    struct maybe_u32 lost_groups; /* groups of the die of which nothing is left */
    /* Chips with the same pattern have the same: "5x3/10,11" (five groups of three, the first
     * candidate) or "24x6/4:2,13:2" (groups 4 and 13 lack two each). "": not known. */
    char signature[FINGERPRINT_SIGNATURE_BYTES];
    /* Sets of SM ids of the full die that give the same pattern. Not observable if the ids were
     * assigned to the remaining SMs: then there is no list. */
    struct maybe_u32 candidate_count;
    uint32_t listed; /* the latest ids first */
    /* each has sm_count ids, rising; the rest of a slot is 0 */
    uint16_t candidates[FINGERPRINT_MAX_CANDIDATES][FINGERPRINT_MAX_DISABLED];
};

struct topology {
    struct maybe_u32 level;        /* the TLB level whose sharing makes the groups */
    struct sm_partition partition; /* SM id -> group */
    struct sm_group groups[REACH_MAX_GROUPS];
    struct maybe_u32 nominal_group_sms; /* SMs of a group of the full die */
    struct maybe_u32 full_sm_count;     /* SMs of the full die */
    struct disabled_sms disabled;
    struct maybe_f64 confidence; /* 0..1: least agreement of any SM's votes */
    struct maybe_f64 sm_miss_penalty_cycles[REACH_MAX_SMS]; /* by SM id */
    struct maybe_u32 penalty_classes;                       /* of groups; 1: no clear gap */
    struct maybe_u32 speed_classes;
    enum finding speed_follows_sms; /* does a group alone read in proportion to its SMs? */
    struct group_pairs pairs;
    struct evidence evidence[TOPOLOGY_EVIDENCE_COUNT];
};

/* Of the curve, or of another kind of access, which has no control and has by_group_gbps at the
 * largest region alone. */
struct curve_point {
    uint64_t region_bytes;
    struct maybe_f64 naive_gbps;    /* every SM anywhere in the region */
    struct maybe_f64 by_group_gbps; /* each group in its own window */
    struct maybe_f64 by_sm_gbps;    /* control: same windows, SMs assigned regardless of groups */
    uint32_t windows;               /* of the two columns before */
    struct evidence evidence[CURVE_EVIDENCE_COUNT];
};

/* Random accesses of one kind by all SMs. GB/s are accesses per second x transaction_bytes / 10^9.
 */
struct access_rate {
    enum access access;
    uint32_t transaction_bytes;    /* moved by one: 32 (each lane a sector of its own), 512 (a warp
                                      four lines side by side) */
    struct maybe_f64 plateau_gbps; /* within the reach of a group */
    uint32_t point_count;
    struct curve_point points[FINGERPRINT_MAX_RATE_POINTS]; /* out of it, by rising region_bytes */
    struct evidence evidence[RATE_EVIDENCE_COUNT];
};

struct throughput {
    struct maybe_f64 plateau_gbps;      /* random 128-byte reads within the reach */
    struct maybe_f64 whole_memory_gbps; /* naive, over the largest region probed */
    uint32_t curve_count;
    struct curve_point curve[FINGERPRINT_MAX_CURVE];
    /* By access, then by transaction_bytes; none if not measured. Reads of 128 bytes are the curve
     * and are not repeated here. */
    uint32_t rate_count;
    struct access_rate rates[FINGERPRINT_MAX_RATES];
    struct evidence evidence[THROUGHPUT_EVIDENCE_COUNT];
};

/* What a miss costs, by whether the memory around the address is physically contiguous. Prices are
 * nanoseconds of the whole GPU per miss, beyond windows.reach_bytes. A frame that is not one run of
 * physical memory has the scattered price. If runs make no difference, frame_bytes is not
 * observable and the prices are equal. */
struct fingerprint_contiguity {
    struct maybe_u64 frame_bytes; /* aligned, within which runs matter */
    struct maybe_f64 contiguous_miss_ns;
    struct maybe_f64 scattered_miss_ns;
    struct evidence evidence[CONTIGUITY_EVIDENCE_COUNT];
};

/* The two sides of the L2, if it has them: a line lives on one side, by a hash of its physical
 * address, and SMs of the other side wait longer for it. Near and far are relative to an SM. If all
 * lines are alike to an SM, nothing of this is observable (no-contrast). */
struct fingerprint_l2 {
    struct maybe_u32 sides;
    struct maybe_u64 granule_bytes; /* aligned, and all on one side */
    /* Of one atomic by one thread, as the SM sees it: median over all SMs. */
    struct maybe_f64 atomic_near_cycles;
    struct maybe_f64 atomic_far_cycles;
    struct sm_partition side_of_sm; /* SM id -> side; known with `sides` */
    struct evidence evidence[L2_EVIDENCE_COUNT];
};

/* Random reads of a set by all SMs, through all caches, of `transaction_bytes` each: 128 (a line)
 * or 512 (four side by side). An SM reads all of the set (same), a part of its own of set_bytes /
 * SMs (own), or what of the set lives on its side of the L2 (near). */
struct working_set {
    uint32_t transaction_bytes;
    uint64_t set_bytes; /* all SMs together */
    struct maybe_f64 same_gbps;
    struct maybe_f64 own_gbps;
    struct maybe_f64 near_gbps;
    struct evidence evidence[WORKING_SET_EVIDENCE_COUNT];
};

struct fingerprint;
/* The shared memory that an SM had to give while its working sets were read: a block of that probe
 * takes half of an SM's and a KiB, so that no second one fits. */
struct maybe_u64 working_set_shared_bytes(const struct fingerprint *fp);

/* The data caches that the pointer chase looks for, nearest first. */
enum cache_kind { CACHE_L1 = 0, CACHE_READ_ONLY, CACHE_CONSTANT, CACHE_L2, CACHE_KIND_COUNT };
const char *cache_kind_name(enum cache_kind k); /* "l1", "read-only", "constant", "l2" */

/* An SM divides one array between L1 and shared memory: what L1 has at one division. */
struct cache_carveout {
    uint64_t shared_bytes; /* asked for, by the whole SM */
    struct maybe_u64 size_bytes;
    struct maybe_u64 fits_bytes;
};

/* One data cache, as dependent loads of one thread show it (Mei and Chu 2016, section 4). */
struct cache_facts {
    enum cache_kind kind;
    /* All of its sets. Unknown if they are not equal, or if no rule for them was found. */
    struct maybe_u64 size_bytes;
    struct maybe_u64 fits_bytes;   /* longest cycle from an aligned start without a miss */
    struct maybe_u64 line_bytes;   /* of one tag */
    struct maybe_u64 sector_bytes; /* the least of a line that is there or not by itself */
    struct maybe_u64 fill_bytes;   /* brought by one miss */
    struct maybe_u32 sets;
    struct maybe_u32 ways; /* if all sets have the same number */
    enum replacement replacement;
    /* Loads of the lines of one set, in order, lap after lap: 'H' hit, 'M' miss. "": none. */
    char trace[FINGERPRINT_TRACE_BYTES];
    /* Without what it takes to read the clock. */
    struct maybe_f64 latency_cycles;      /* of a hit */
    struct maybe_f64 miss_latency_cycles; /* of a load that the next level answers */
    enum finding same_as_l1;              /* do its loads hit lines that L1 loads brought? */
    uint32_t carveout_count;              /* by rising shared_bytes */
    struct cache_carveout carveouts[FINGERPRINT_MAX_CARVEOUTS];
    struct evidence evidence[CACHE_EVIDENCE_COUNT];
};

/* The least measured division of L1 that leaves `shared_bytes` of shared memory; NULL: there is
 * none. */
const struct cache_carveout *cache_carveout_beside(const struct cache_facts *l1,
                                                   uint64_t shared_bytes);
/* What a cache keeps of a working set: what surely fits, or else all of its sets. */
struct maybe_u64 cache_kept_bytes(struct maybe_u64 fits, struct maybe_u64 size);

/* What one load of one thread takes, by where its data and its translation are: P1 to P6 of Mei and
 * Chu 2016, section 5.2, and the modes of memory. Cycles as the SM sees them, medians, without what
 * it takes to read the clock. P4 and P5 are those of the near mode where there are two. */
struct fingerprint_latency {
    struct maybe_f64 p1_cycles;   /* data in L1 */
    struct maybe_f64 p2_cycles;   /* data in L2, the first TLB level misses */
    struct maybe_f64 p3_cycles;   /* data in L2, two TLB levels miss */
    struct maybe_f64 p4_cycles;   /* data in memory, the translation at hand */
    struct maybe_f64 p5_cycles;   /* data in memory, two TLB levels miss */
    struct maybe_f64 p6_cycles;   /* P5, and the page table is another than before */
    struct maybe_f64 near_cycles; /* P4 in two modes: the lesser; all of P4 if there is one mode */
    struct maybe_f64 far_cycles;
    struct maybe_f64 tail_cycles; /* of the few loads beyond the modes */
    struct maybe_f64 tail_share;  /* of all loads of P4 */
    struct evidence evidence[LATENCY_EVIDENCE_COUNT];
};

/* Loads of all lanes of a warp from shared memory, `width_bytes` each. */
struct shared_width {
    uint32_t width_bytes;             /* 4, 8 or 16 */
    struct maybe_f64 latency_cycles;  /* lanes side by side, each load after the one before */
    struct maybe_f64 conflict_cycles; /* that each pass after the first adds */
    struct maybe_f64 bytes_per_cycle; /* of one SM, with enough loads in flight */
    struct maybe_u32 loads_enough;    /* fewest loads of warps in flight that reach 95 % of it */
    struct maybe_u32 loads_needed; /* to keep all banks busy, by Little's law; known with `banks` */
    struct evidence evidence[SHARED_WIDTH_EVIDENCE_COUNT];
};
/* One warp whose lanes load `stride_bytes` apart. */
struct shared_stride {
    uint32_t width_bytes;
    uint32_t stride_bytes;
    struct maybe_f64 cycles;
    struct maybe_u32 passes; /* that the banks found explain; known with them */
};
/* The shared memory of an SM. Words of bank_bytes lie in the banks in turn. Lanes that load
 * different words of one bank take passes, one after the other. Mei 2016, section 6. */
struct fingerprint_shared {
    struct maybe_u64 sm_bytes; /* of an SM, and most that one block may take: from the driver */
    struct maybe_u64 block_bytes;
    struct maybe_u32 banks;
    struct maybe_u32 bank_bytes;
    uint32_t width_count; /* by rising width_bytes */
    struct shared_width widths[FINGERPRINT_SHARED_WIDTHS];
    uint32_t stride_count; /* by width_bytes, then by stride_bytes */
    struct shared_stride strides[FINGERPRINT_MAX_STRIDES];
    struct evidence evidence[SHARED_EVIDENCE_COUNT];
};

/* Clusters of `sms` blocks, one block per SM. */
struct cluster_size {
    uint32_t sms;
    struct maybe_u32 clusters;        /* at the same time */
    struct maybe_u32 usable_sms;      /* that these occupy */
    struct maybe_f64 latency_cycles;  /* a load from shared memory of another SM; median of pairs */
    struct maybe_f64 bytes_per_cycle; /* of one SM, each reading from the next of its cluster */
    struct evidence evidence[CLUSTER_SIZE_EVIDENCE_COUNT];
};
/* Thread block clusters, whose SMs load from each other's shared memory. `largest` is not
 * applicable on a GPU without them, and nothing else is known then. */
struct fingerprint_clusters {
    struct maybe_u32 largest;      /* SMs of a cluster */
    struct maybe_f64 own_cycles;   /* a load from the SM's own shared memory in the same way */
    struct maybe_u32 gpcs;         /* sets of SMs of which clusters are made */
    struct sm_partition gpc_of_sm; /* SM id -> GPC; known with `gpcs` */
    uint32_t size_count;           /* by rising `sms` */
    struct cluster_size sizes[FINGERPRINT_MAX_CLUSTER];
    struct evidence evidence[CLUSTERS_EVIDENCE_COUNT];
};

/* Random reads of 128 bytes by all SMs, `warps` warps on each, `loads` in flight in each warp. */
struct concurrency_point {
    uint32_t warps;
    uint32_t loads;
    struct maybe_f64 gbps;
};
/* The same by some SMs, spread over the groups, with the most loads in flight. */
struct sms_point {
    uint32_t sms;
    struct maybe_f64 gbps;
};
/* How much must be under way for memory to be busy. Every SM reads within what its own TLB reaches.
 * Enough is what reaches 95 % of the plateau. */
struct fingerprint_parallelism {
    struct maybe_f64 plateau_gbps; /* of the surface */
    struct maybe_f64 latency_ns;   /* of one load: the fewest in flight over their throughput */
    struct maybe_u32 loads_enough; /* in flight in an SM; from so many on all points reach it */
    struct maybe_u32 loads_short;  /* the next fewer that were probed */
    struct maybe_u32 sms_enough;
    struct maybe_u32 sms_short; /* the next fewer that were probed */
    uint32_t surface_count;     /* by warps, then by loads */
    struct concurrency_point surface[FINGERPRINT_MAX_CONCURRENCY];
    uint32_t by_sms_count; /* by rising `sms` */
    struct sms_point by_sms[FINGERPRINT_MAX_BY_SMS];
    struct evidence evidence[PARALLELISM_EVIDENCE_COUNT];
};

/* One kind of memory beside plain device memory, which tlb, topology and throughput describe. All
 * numbers are of random reads of 128 bytes, if not said otherwise. `probed_bytes` is absent if the
 * kind cannot be had, with the reason; everything else then is too.
 *
 * Reached is what is read at 90 % of the plateau or more. If all that was probed is reached,
 * reach_bytes is not observable (beyond-memory): the reach is at least probed_bytes. */
struct memory_facts {
    enum memory_kind kind;
    char peer_uuid[64];                   /* of MEMORY_PEER; "" otherwise */
    struct maybe_u64 peer_memory_bytes;   /* of MEMORY_PEER: all memory of that GPU */
    struct maybe_u64 probed_bytes;        /* largest region that was read */
    struct maybe_f64 plateau_gbps;        /* all SMs, within the reach */
    struct maybe_u64 reach_bytes;         /* largest region probed that all SMs reach */
    struct maybe_u64 onset_bytes;         /* smallest region probed that they do not */
    struct maybe_u64 windows_reach_bytes; /* largest region that windows by group reach */
    struct maybe_u64 windows_onset_bytes; /* smallest that they do not */
    struct maybe_u64 group_reach_bytes;   /* of one group alone: largest region it reaches */
    struct maybe_u64 group_onset_bytes;
    struct maybe_u64 entry_bytes;    /* bytes that one entry translates */
    struct maybe_f64 beyond_gbps;    /* naive, over the largest region probed */
    struct maybe_f64 latency_cycles; /* of one load within the reach */
    struct maybe_f64 beyond_latency_cycles;
    struct maybe_u32 sms_to_fill; /* fewest SMs that read 95 % of the plateau */
    struct maybe_f64 write_gbps;  /* writes of 32 bytes within the reach */
    struct maybe_f64 atomic_gbps; /* atomics likewise */
    uint32_t curve_count;         /* by rising region_bytes; windows and control beyond the reach */
    struct curve_point curve[FINGERPRINT_MAX_MEMORY_CURVE];
    struct evidence evidence[MEMORY_EVIDENCE_COUNT];
};

struct fingerprint_conditions {
    enum verdict verdict;
    char arena[16];         /* "alias", "plain", "simulated" */
    uint64_t range_bytes;   /* virtual range the probes could use */
    uint64_t backing_bytes; /* device memory behind it */
    struct maybe_u32 sm_clock_khz;
    struct maybe_u32 other_processes;
    struct maybe_u64 host_memory_bytes; /* of the node, used or not */
    uint32_t note_count;                /* what was lost, and why: one sentence each */
    char notes[FINGERPRINT_MAX_NOTES][160];
};

/* What a measurement determines as a whole or not at all, and what merge.h therefore takes from one
 * measurement as a whole. Every level has the parts of enum level_part. */
enum level_part {
    LEVEL_PART_SIZE = 0, /* entries, entry, page, reach, onset, saturation, confidence */
    LEVEL_PART_PENALTY,  /* miss_penalty_cycles */
    LEVEL_PART_SHARING,  /* shared_by, groups */
    LEVEL_PART_SETS,     /* sets, ways, victim entries, replacement */
    LEVEL_PART_FILL,     /* fill, entry_pages, tag_bytes */
    LEVEL_PART_COUNT
};
enum fingerprint_part {
    PART_LEVELS = 0, /* level k (an index), part p: k * LEVEL_PART_COUNT + p */
    PART_BEYOND = FINGERPRINT_MAX_LEVELS * LEVEL_PART_COUNT,
    PART_PAGE_BYTES,
    PART_GROUPS,          /* which SMs make a group, disabled SMs, windows */
    PART_GROUP_PENALTIES, /* of groups and of SMs, and their classes */
    PART_GROUP_SPEEDS,    /* random reads of each group, and their classes */
    PART_GROUP_PAIRS,
    PART_CURVE, /* plateau, whole memory, curve */
    PART_RATES,
    PART_CONTIGUITY,
    PART_L2_SIDES,
    PART_WORKING_SETS,
    PART_CACHES,
    PART_LATENCY,
    PART_SHARED,
    PART_CLUSTERS,
    PART_PARALLELISM,
    PART_MEMORY, /* each element of memory is a part: PART_MEMORY + its index */
    PART_COUNT = PART_MEMORY + FINGERPRINT_MAX_MEMORY
};
enum { PART_NAME_BYTES = 40 };
/* "tlb.levels[0].size", "throughput.curve": where the part is in the JSON document. `out` needs
 * PART_NAME_BYTES; returns it. */
const char *fingerprint_part_name(enum fingerprint_part part, char *out);

/* The measurement that found something. */
struct fingerprint_source {
    char id[FINGERPRINT_ID_BYTES]; /* of the measurement as it was made; "": no such measurement */
    enum depth depth;
    int64_t taken_at; /* seconds since 1970, UTC */
};

struct fingerprint {
    struct gpu_identity gpu;
    enum depth depth;
    int64_t taken_at;     /* seconds since 1970, UTC */
    uint32_t duration_ms; /* of the whole measurement, context included */
    uint32_t probe_ms;    /* of the probes alone, after the context was created */
    uint64_t device_memory_bytes;
    uint32_t level_count;
    struct tlb_level levels[FINGERPRINT_MAX_LEVELS];
    /* Beyond the last level that was observed. */
    struct fingerprint_beyond {
        uint64_t probed_bytes;        /* largest footprint that was walked */
        struct maybe_u64 reach_bytes; /* of one level more */
        struct maybe_f64 walk_cycles; /* of a page walk that misses in every level */
    } beyond;
    struct maybe_u64 page_bytes[ALLOCATION_COUNT]; /* by enum allocation */
    struct topology topology;
    struct fingerprint_windows {
        struct maybe_u64 reach_bytes;       /* of one group */
        struct maybe_u64 entry_bytes;       /* alignment of windows */
        struct maybe_u64 recommended_bytes; /* reach less one entry, for an unaligned base */
    } windows;
    struct throughput throughput;
    struct fingerprint_contiguity contiguity;
    struct fingerprint_l2 l2;
    /* By transaction_bytes, then by set_bytes; none if not measured. */
    uint32_t working_set_count;
    struct working_set working_sets[FINGERPRINT_MAX_WORKING_SETS];
    /* None if not measured; otherwise each kind in the order of enum cache_kind. Elements beyond
     * cache_count are "not measured" throughout, so that caches[CACHE_L1] can always be read. */
    uint32_t cache_count;
    struct cache_facts caches[CACHE_KIND_COUNT];
    struct fingerprint_latency latency;
    struct fingerprint_shared shared;
    struct fingerprint_clusters clusters;
    struct fingerprint_parallelism parallelism;
    /* None if not measured; otherwise each kind in the order of enum memory_kind, without device
     * memory, and then the peers. */
    uint32_t memory_count;
    struct memory_facts memory[FINGERPRINT_MAX_MEMORY];
    struct fingerprint_conditions conditions;
    /* Parts that an earlier measurement found and this one did not (merge.h). */
    struct fingerprint_source kept[PART_COUNT];
    /* The newest measurement as it was made, if this is another document: because parts are kept,
     * or because another release has stored it. Otherwise "". Then measurement_depth is its depth,
     * and `depth` is the deepest of all measurements that parts come from. */
    char measurement_id[FINGERPRINT_ID_BYTES];
    enum depth measurement_depth;
    /* An earlier measurement that this one contradicts, and how; nothing of it is kept. */
    struct fingerprint_source dropped;
    char dropped_reason[160];
};

/* Every number becomes unknown, "not measured". Call it before filling in a fingerprint. */
void fingerprint_init(struct fingerprint *out);

/* Rounds each real number to six digits. A throughput is a quotient of two counts, and its double
 * has seventeen digits; repeats agree to three or four of them. With six noise is not taken for
 * knowledge, and a fingerprint is shorter. Derive all conclusions from the full numbers before. */
void fingerprint_round(struct fingerprint *fp);

/* Adds a sentence to the notes of the conditions; dropped if there is no room. */
void fingerprint_add_note(struct fingerprint *fp, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Invariants that hold for every fingerprint, in every build: counts in range, strings terminated,
 * groups numbered by lowest SM and complete, no number both absent and non-zero, reach >= entry,
 * saturation >= onset, levels in order. Called after analysis, after load and in tests.
 * STATUS_CORRUPT names the field. */
enum status fingerprint_check(const struct fingerprint *fp, struct err *err);

/* The document of `fp` was stored under this id: names it as the measurement, if none is named yet.
 */
void fingerprint_set_measurement(struct fingerprint *fp, const char *id);

/* The depth of the newest measurement; `depth` is the deepest of what is kept as well. */
enum depth fingerprint_newest_depth(const struct fingerprint *fp);

/* Sets `depth` to the deepest of the newest measurement and of those that parts are kept from. */
void fingerprint_set_depth(struct fingerprint *fp, enum depth newest);

/* When a part was measured: taken_at of this measurement, or of the one it was kept from. */
int64_t fingerprint_part_taken_at(const struct fingerprint *fp, enum fingerprint_part part);

/* The id of this value: a hash of everything in it. `out` needs FINGERPRINT_ID_BYTES.
 * STATUS_NO_MEMORY: `out` is "". */
enum status fingerprint_id(const struct fingerprint *fp, char *out, struct err *err);

/* Hash of what describes the chip only: identity, structure of the levels, groups. Two measurements
 * of one quiet chip have the same. Numbers with noise (penalties, throughput, times, confidence)
 * are left out. */
uint64_t fingerprint_structure_hash(const struct fingerprint *fp);

enum { FINGERPRINT_MAP_HASH_BYTES = 20 }; /* "map" and 16 hex digits, and the end */

/* A short name for a group map, so that a fleet can be counted by it. Two maps have the same name
 * if the same SM ids share a group, whatever numbers the groups have (any below REACH_MAX_GROUPS);
 * an SM of FINGERPRINT_NO_GROUP counts as one that is not there. Sizes and levels may differ. "" if
 * no groups are known. Returns `out`, of at least FINGERPRINT_MAP_HASH_BYTES. */
char *fingerprint_map_hash(const struct sm_partition *partition, char *out);

/* JSON as documented in schema/json/fingerprint.schema.json; new reference, NULL without memory. */
json_t *fingerprint_to_json(const struct fingerprint *fp);
/* Only the rows of members.c that are marked FOR_PLANNER, without numbers that were not measured
 * and without the id. Lists are in columns (base/json_columns.h). fingerprint_from_json reads it,
 * and the planner then answers as from the whole. */
json_t *fingerprint_planner_to_json(const struct fingerprint *fp);
/* Its "memory" alone; empty if none was measured. */
json_t *fingerprint_memory_to_json(const struct fingerprint *fp);
/* Its "l2" alone, with null and the reason for what is not known. New reference, NULL without
 * memory.
 */
json_t *fingerprint_l2_to_json(const struct fingerprint *fp);
/* Its "caches" (empty if none was measured) and its "latency" alone, likewise. */
json_t *fingerprint_caches_to_json(const struct fingerprint *fp);
json_t *fingerprint_latency_to_json(const struct fingerprint *fp);
/* Likewise its "shared", "clusters" and "parallelism". */
json_t *fingerprint_shared_to_json(const struct fingerprint *fp);
json_t *fingerprint_clusters_to_json(const struct fingerprint *fp);
json_t *fingerprint_parallelism_to_json(const struct fingerprint *fp);
/* The text that the id is the hash of, from malloc, and the id (FINGERPRINT_ID_BYTES) of a document
 * without its id; NULL without memory. */
char *fingerprint_json_text(const json_t *body, char *out_id);
/* Reads what fingerprint_to_json wrote, checks it. Unknown fields are ignored (a newer daemon may
 * add some); missing ones stay unknown. STATUS_CORRUPT names the field. */
enum status fingerprint_from_json(const json_t *json, struct fingerprint *out, struct err *err);

#endif
