/* evidence.h: what a number of a fingerprint rests on: the method that found it, the number of
 * repeats, and the distance from another result. docs/methods.md defines for each method what
 * counts as a repeat and what the margin measures.
 *
 * A number that is not known has no evidence, and neither has one that the driver reported or that
 * follows from others by arithmetic.
 */
#ifndef REACH_FINGERPRINT_EVIDENCE_H
#define REACH_FINGERPRINT_EVIDENCE_H

#include <stdbool.h>
#include <stdint.h>

enum evidence_method {
    EVIDENCE_NONE = 0,         /* no evidence */
    EVIDENCE_ENTRY_SEARCH,     /* strides halved until not all loads miss */
    EVIDENCE_ENTRY_TEST,       /* latency beyond saturation less latency that fits */
    EVIDENCE_REFINE,           /* footprints classified page by page */
    EVIDENCE_ROUNDS,           /* one SM evicts, all others check */
    EVIDENCE_PAIRS,            /* one SM evicts, one checks */
    EVIDENCE_ROUNDS_AND_PAIRS, /* both, and they agree */
    EVIDENCE_TRACES,           /* every load of a cycle with its page */
    EVIDENCE_STRIDES,          /* walks below and above an entry's length */
    EVIDENCE_FLOOR_PLAN,       /* the smallest regular die that explains the groups */
    EVIDENCE_RANDOM_READS,     /* throughput of random reads */
    EVIDENCE_CLASSES,          /* gaps between the groups' numbers */
    EVIDENCE_GROUP_PAIRS,      /* two groups reading at the same time, against each alone */
    EVIDENCE_MEAN_CURVES,      /* published means over footprints, at three strides */
    EVIDENCE_MEAN_PAIRS,       /* a published matrix of means */
    EVIDENCE_RANDOM_ACCESSES,  /* throughput of random accesses of another kind */
    EVIDENCE_RUN_LENGTHS,      /* random reads over physical runs of several lengths */
    EVIDENCE_WALKS,            /* loads one after the other, each timed */
    EVIDENCE_SIDES,            /* atomics of many SMs on the same lines, each timed */
    EVIDENCE_BANKS,     /* loads of a warp from shared memory, by the distance of its lanes */
    EVIDENCE_CLUSTERS,  /* clusters of blocks that say on which SM they are */
    EVIDENCE_IN_FLIGHT, /* random reads by warps and by loads in flight */
    EVIDENCE_SM_COUNTS, /* random reads by the number of SMs */
    EVIDENCE_METHOD_COUNT
};

/* "entry-search", "refine", ..; "none". */
const char *evidence_method_name(enum evidence_method m);
/* False if no method has this name; `*out` is then unchanged. */
bool evidence_method_from_name(const char *name, enum evidence_method *out);

struct evidence {
    enum evidence_method method;
    uint32_t repeats; /* 1 or more; 0 with EVIDENCE_NONE */
    double margin;    /* 0..1: 0 at the threshold, 1 as far from it as possible */
};

/* With the margin clamped to 0..1 and truncated to thousandths (NaN becomes 0), and at least one
 * repeat. */
struct evidence evidence_make(enum evidence_method method, uint64_t repeats, double margin);
/* For a number that needs both: the smaller margin, the fewer repeats, the method of `a`. */
struct evidence evidence_weaker(struct evidence a, struct evidence b);
/* For repeated measurements of one number: how well they agree, 1 less their range over their
 * median; 0 with one repeat, because the range is unknown. */
struct evidence evidence_of_repeats(enum evidence_method method, const double *values,
                                    uint32_t count);

/* What is wrong with it, as in "has no repeats"; NULL if nothing. `known`: the number is known. */
const char *evidence_fault(struct evidence e, bool known);

/* The numbers of one object that have evidence: indexes into its array, and their names in JSON. */
enum {
    LEVEL_EVIDENCE_ENTRY_BYTES = 0,
    LEVEL_EVIDENCE_REACH_BYTES, /* and entries, and onset_bytes: they are known together */
    LEVEL_EVIDENCE_SATURATION_BYTES,
    LEVEL_EVIDENCE_MISS_PENALTY_CYCLES,
    LEVEL_EVIDENCE_SHARED_BY, /* and groups */
    LEVEL_EVIDENCE_SETS,      /* and ways, set_sizes, victim_entries */
    LEVEL_EVIDENCE_REPLACEMENT,
    LEVEL_EVIDENCE_FILL,
    LEVEL_EVIDENCE_ENTRY_PAGES, /* and tag_bytes */
    LEVEL_EVIDENCE_COUNT
};
enum {
    TOPOLOGY_EVIDENCE_GROUPS = 0,
    TOPOLOGY_EVIDENCE_DISABLED,        /* and nominal_group_sms, full_sm_count */
    TOPOLOGY_EVIDENCE_PENALTY_CLASSES, /* and penalty_class of each group */
    TOPOLOGY_EVIDENCE_SPEED_CLASSES,   /* and speed_class of each group */
    TOPOLOGY_EVIDENCE_SPEED_FOLLOWS_SMS,
    TOPOLOGY_EVIDENCE_PAIRS,
    TOPOLOGY_EVIDENCE_COUNT
};
enum {
    GROUP_EVIDENCE_MISS_PENALTY_CYCLES = 0, /* and those of its SMs */
    GROUP_EVIDENCE_RANDOM_READ_GBPS,
    GROUP_EVIDENCE_ALONE_GBPS,
    GROUP_EVIDENCE_BEYOND_GBPS,
    GROUP_EVIDENCE_COUNT
};
enum {
    THROUGHPUT_EVIDENCE_PLATEAU_GBPS = 0,
    THROUGHPUT_EVIDENCE_WHOLE_MEMORY_GBPS,
    THROUGHPUT_EVIDENCE_COUNT
};
enum {
    CURVE_EVIDENCE_NAIVE_GBPS = 0,
    CURVE_EVIDENCE_BY_GROUP_GBPS,
    RATE_POINT_EVIDENCE_COUNT, /* the points of other kinds of access have no control */
    CURVE_EVIDENCE_BY_SM_GBPS = RATE_POINT_EVIDENCE_COUNT,
    CURVE_EVIDENCE_COUNT
};
enum { RATE_EVIDENCE_PLATEAU_GBPS = 0, RATE_EVIDENCE_COUNT };
enum {
    CONTIGUITY_EVIDENCE_FRAME_BYTES = 0,
    CONTIGUITY_EVIDENCE_CONTIGUOUS_MISS_NS,
    CONTIGUITY_EVIDENCE_SCATTERED_MISS_NS,
    CONTIGUITY_EVIDENCE_COUNT
};
enum {
    L2_EVIDENCE_SIDES = 0, /* and sms */
    L2_EVIDENCE_GRANULE_BYTES,
    L2_EVIDENCE_ATOMIC_NEAR_CYCLES,
    L2_EVIDENCE_ATOMIC_FAR_CYCLES,
    L2_EVIDENCE_COUNT
};
enum {
    CACHE_EVIDENCE_SIZE_BYTES = 0,
    CACHE_EVIDENCE_FITS_BYTES,
    CACHE_EVIDENCE_LINE_BYTES,
    CACHE_EVIDENCE_SECTOR_BYTES,
    CACHE_EVIDENCE_FILL_BYTES,
    CACHE_EVIDENCE_SETS, /* and ways */
    CACHE_EVIDENCE_REPLACEMENT,
    CACHE_EVIDENCE_LATENCY_CYCLES, /* and miss_latency_cycles */
    CACHE_EVIDENCE_SAME_AS_L1,
    CACHE_EVIDENCE_COUNT
};
enum {
    LATENCY_EVIDENCE_P1 = 0,
    LATENCY_EVIDENCE_P2,
    LATENCY_EVIDENCE_P3,
    LATENCY_EVIDENCE_P4,
    LATENCY_EVIDENCE_P5,
    LATENCY_EVIDENCE_P6,
    LATENCY_EVIDENCE_NEAR, /* and far_cycles */
    LATENCY_EVIDENCE_TAIL, /* and tail_share */
    LATENCY_EVIDENCE_COUNT
};
enum {
    SHARED_WIDTH_EVIDENCE_LATENCY_CYCLES = 0,
    SHARED_WIDTH_EVIDENCE_CONFLICT_CYCLES,
    SHARED_WIDTH_EVIDENCE_BYTES_PER_CYCLE,
    SHARED_WIDTH_EVIDENCE_LOADS_ENOUGH,
    SHARED_WIDTH_EVIDENCE_COUNT
};
enum { SHARED_EVIDENCE_BANKS = 0, /* and bank_bytes, passes */ SHARED_EVIDENCE_COUNT };
enum {
    CLUSTER_SIZE_EVIDENCE_CLUSTERS = 0, /* and usable_sms */
    CLUSTER_SIZE_EVIDENCE_LATENCY_CYCLES,
    CLUSTER_SIZE_EVIDENCE_BYTES_PER_CYCLE,
    CLUSTER_SIZE_EVIDENCE_COUNT
};
enum {
    CLUSTERS_EVIDENCE_LARGEST = 0,
    CLUSTERS_EVIDENCE_OWN_CYCLES,
    CLUSTERS_EVIDENCE_GPCS, /* and sms */
    CLUSTERS_EVIDENCE_COUNT
};
enum {
    PARALLELISM_EVIDENCE_PLATEAU_GBPS = 0,
    PARALLELISM_EVIDENCE_LATENCY_NS,
    PARALLELISM_EVIDENCE_LOADS_ENOUGH, /* and loads_short */
    PARALLELISM_EVIDENCE_SMS_ENOUGH,   /* and sms_short */
    PARALLELISM_EVIDENCE_COUNT
};
enum {
    MEMORY_EVIDENCE_PLATEAU_GBPS = 0,
    MEMORY_EVIDENCE_REACH_BYTES,         /* and onset_bytes */
    MEMORY_EVIDENCE_WINDOWS_REACH_BYTES, /* and windows_onset_bytes */
    MEMORY_EVIDENCE_GROUP_REACH_BYTES,   /* and group_onset_bytes */
    MEMORY_EVIDENCE_ENTRY_BYTES,
    MEMORY_EVIDENCE_BEYOND_GBPS,
    MEMORY_EVIDENCE_LATENCY_CYCLES,
    MEMORY_EVIDENCE_BEYOND_LATENCY_CYCLES,
    MEMORY_EVIDENCE_SMS_TO_FILL,
    MEMORY_EVIDENCE_WRITE_GBPS,
    MEMORY_EVIDENCE_ATOMIC_GBPS,
    MEMORY_EVIDENCE_COUNT
};
extern const char *const evidence_level_names[LEVEL_EVIDENCE_COUNT];
extern const char *const evidence_topology_names[TOPOLOGY_EVIDENCE_COUNT];
extern const char *const evidence_group_names[GROUP_EVIDENCE_COUNT];
extern const char *const evidence_throughput_names[THROUGHPUT_EVIDENCE_COUNT];
extern const char *const evidence_curve_names[CURVE_EVIDENCE_COUNT];
extern const char *const evidence_rate_names[RATE_EVIDENCE_COUNT];
extern const char *const evidence_contiguity_names[CONTIGUITY_EVIDENCE_COUNT];
extern const char *const evidence_l2_names[L2_EVIDENCE_COUNT];
extern const char *const evidence_cache_names[CACHE_EVIDENCE_COUNT];
extern const char *const evidence_latency_names[LATENCY_EVIDENCE_COUNT];
extern const char *const evidence_shared_width_names[SHARED_WIDTH_EVIDENCE_COUNT];
extern const char *const evidence_shared_names[SHARED_EVIDENCE_COUNT];
extern const char *const evidence_cluster_size_names[CLUSTER_SIZE_EVIDENCE_COUNT];
extern const char *const evidence_clusters_names[CLUSTERS_EVIDENCE_COUNT];
extern const char *const evidence_parallelism_names[PARALLELISM_EVIDENCE_COUNT];
extern const char *const evidence_memory_names[MEMORY_EVIDENCE_COUNT];

#endif
