/* evidence.c: see evidence.h. Margins are truncated to thousandths, so that they do not depend on
 * the last digit of a logarithm. */
#include "fingerprint/evidence.h"

#include "types/name_of.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define MARGIN_PARTS 1000.0

NAME_FUNCTIONS(
    evidence_method, enum evidence_method, [EVIDENCE_NONE] = "none",
    [EVIDENCE_ENTRY_SEARCH] = "entry-search", [EVIDENCE_ENTRY_TEST] = "entry-test",
    [EVIDENCE_REFINE] = "refine", [EVIDENCE_ROUNDS] = "rounds", [EVIDENCE_PAIRS] = "pairs",
    [EVIDENCE_ROUNDS_AND_PAIRS] = "rounds-and-pairs", [EVIDENCE_TRACES] = "traces",
    [EVIDENCE_STRIDES] = "strides", [EVIDENCE_FLOOR_PLAN] = "floor-plan",
    [EVIDENCE_RANDOM_READS] = "random-reads", [EVIDENCE_CLASSES] = "classes",
    [EVIDENCE_GROUP_PAIRS] = "group-pairs", [EVIDENCE_MEAN_CURVES] = "mean-curves",
    [EVIDENCE_MEAN_PAIRS] = "mean-pairs", [EVIDENCE_RANDOM_ACCESSES] = "random-accesses",
    [EVIDENCE_RUN_LENGTHS] = "run-lengths", [EVIDENCE_WALKS] = "walks", [EVIDENCE_SIDES] = "sides",
    [EVIDENCE_BANKS] = "banks", [EVIDENCE_CLUSTERS] = "clusters",
    [EVIDENCE_IN_FLIGHT] = "in-flight", [EVIDENCE_SM_COUNTS] = "sm-counts",
    [EVIDENCE_WORKING_SETS] = "working-sets")

const char *const evidence_level_names[LEVEL_EVIDENCE_COUNT] = {
    [LEVEL_EVIDENCE_ENTRY_BYTES] = "entry_bytes",
    [LEVEL_EVIDENCE_REACH_BYTES] = "reach_bytes",
    [LEVEL_EVIDENCE_SATURATION_BYTES] = "saturation_bytes",
    [LEVEL_EVIDENCE_MISS_PENALTY_CYCLES] = "miss_penalty_cycles",
    [LEVEL_EVIDENCE_SHARED_BY] = "shared_by",
    [LEVEL_EVIDENCE_SETS] = "sets",
    [LEVEL_EVIDENCE_REPLACEMENT] = "replacement",
    [LEVEL_EVIDENCE_FILL] = "fill",
    [LEVEL_EVIDENCE_ENTRY_PAGES] = "entry_pages",
};
const char *const evidence_topology_names[TOPOLOGY_EVIDENCE_COUNT] = {
    [TOPOLOGY_EVIDENCE_GROUPS] = "groups",
    [TOPOLOGY_EVIDENCE_DISABLED] = "disabled",
    [TOPOLOGY_EVIDENCE_PENALTY_CLASSES] = "penalty_classes",
    [TOPOLOGY_EVIDENCE_SPEED_CLASSES] = "speed_classes",
    [TOPOLOGY_EVIDENCE_SPEED_FOLLOWS_SMS] = "speed_follows_sms",
    [TOPOLOGY_EVIDENCE_PAIRS] = "pairs",
};
const char *const evidence_group_names[GROUP_EVIDENCE_COUNT] = {
    [GROUP_EVIDENCE_MISS_PENALTY_CYCLES] = "miss_penalty_cycles",
    [GROUP_EVIDENCE_RANDOM_READ_GBPS] = "random_read_gbps",
    [GROUP_EVIDENCE_ALONE_GBPS] = "alone_gbps",
    [GROUP_EVIDENCE_BEYOND_GBPS] = "beyond_gbps",
};
const char *const evidence_throughput_names[THROUGHPUT_EVIDENCE_COUNT] = {
    [THROUGHPUT_EVIDENCE_PLATEAU_GBPS] = "plateau_gbps",
    [THROUGHPUT_EVIDENCE_WHOLE_MEMORY_GBPS] = "whole_memory_gbps",
};
const char *const evidence_curve_names[CURVE_EVIDENCE_COUNT] = {
    [CURVE_EVIDENCE_NAIVE_GBPS] = "naive_gbps",
    [CURVE_EVIDENCE_BY_GROUP_GBPS] = "by_group_gbps",
    [CURVE_EVIDENCE_BY_SM_GBPS] = "by_sm_gbps",
};
const char *const evidence_rate_names[RATE_EVIDENCE_COUNT] = {
    [RATE_EVIDENCE_PLATEAU_GBPS] = "plateau_gbps",
};

const char *const evidence_contiguity_names[CONTIGUITY_EVIDENCE_COUNT] = {
    [CONTIGUITY_EVIDENCE_FRAME_BYTES] = "frame_bytes",
    [CONTIGUITY_EVIDENCE_CONTIGUOUS_MISS_NS] = "contiguous_miss_ns",
    [CONTIGUITY_EVIDENCE_SCATTERED_MISS_NS] = "scattered_miss_ns",
};

const char *const evidence_l2_names[L2_EVIDENCE_COUNT] = {
    [L2_EVIDENCE_SIDES] = "sides",
    [L2_EVIDENCE_GRANULE_BYTES] = "granule_bytes",
    [L2_EVIDENCE_ATOMIC_NEAR_CYCLES] = "atomic_near_cycles",
    [L2_EVIDENCE_ATOMIC_FAR_CYCLES] = "atomic_far_cycles",
};
const char *const evidence_working_set_names[WORKING_SET_EVIDENCE_COUNT] = {
    [WORKING_SET_EVIDENCE_SAME_GBPS] = "same_gbps",
    [WORKING_SET_EVIDENCE_OWN_GBPS] = "own_gbps",
    [WORKING_SET_EVIDENCE_NEAR_GBPS] = "near_gbps",
};
const char *const evidence_cache_names[CACHE_EVIDENCE_COUNT] = {
    [CACHE_EVIDENCE_SIZE_BYTES] = "size_bytes",
    [CACHE_EVIDENCE_FITS_BYTES] = "fits_bytes",
    [CACHE_EVIDENCE_LINE_BYTES] = "line_bytes",
    [CACHE_EVIDENCE_SECTOR_BYTES] = "sector_bytes",
    [CACHE_EVIDENCE_FILL_BYTES] = "fill_bytes",
    [CACHE_EVIDENCE_SETS] = "sets",
    [CACHE_EVIDENCE_REPLACEMENT] = "replacement",
    [CACHE_EVIDENCE_LATENCY_CYCLES] = "latency_cycles",
    [CACHE_EVIDENCE_SAME_AS_L1] = "same_as_l1",
};
const char *const evidence_latency_names[LATENCY_EVIDENCE_COUNT] = {
    [LATENCY_EVIDENCE_P1] = "p1_cycles",     [LATENCY_EVIDENCE_P2] = "p2_cycles",
    [LATENCY_EVIDENCE_P3] = "p3_cycles",     [LATENCY_EVIDENCE_P4] = "p4_cycles",
    [LATENCY_EVIDENCE_P5] = "p5_cycles",     [LATENCY_EVIDENCE_P6] = "p6_cycles",
    [LATENCY_EVIDENCE_NEAR] = "near_cycles", [LATENCY_EVIDENCE_TAIL] = "tail_cycles",
};
const char *const evidence_shared_width_names[SHARED_WIDTH_EVIDENCE_COUNT] = {
    [SHARED_WIDTH_EVIDENCE_LATENCY_CYCLES] = "latency_cycles",
    [SHARED_WIDTH_EVIDENCE_CONFLICT_CYCLES] = "conflict_cycles",
    [SHARED_WIDTH_EVIDENCE_BYTES_PER_CYCLE] = "bytes_per_cycle",
    [SHARED_WIDTH_EVIDENCE_LOADS_ENOUGH] = "loads_enough",
};
const char *const evidence_shared_names[SHARED_EVIDENCE_COUNT] = {
    [SHARED_EVIDENCE_BANKS] = "banks",
};
const char *const evidence_cluster_size_names[CLUSTER_SIZE_EVIDENCE_COUNT] = {
    [CLUSTER_SIZE_EVIDENCE_CLUSTERS] = "clusters",
    [CLUSTER_SIZE_EVIDENCE_LATENCY_CYCLES] = "latency_cycles",
    [CLUSTER_SIZE_EVIDENCE_BYTES_PER_CYCLE] = "bytes_per_cycle",
};
const char *const evidence_clusters_names[CLUSTERS_EVIDENCE_COUNT] = {
    [CLUSTERS_EVIDENCE_LARGEST] = "largest",
    [CLUSTERS_EVIDENCE_OWN_CYCLES] = "own_cycles",
    [CLUSTERS_EVIDENCE_GPCS] = "gpcs",
};
const char *const evidence_parallelism_names[PARALLELISM_EVIDENCE_COUNT] = {
    [PARALLELISM_EVIDENCE_PLATEAU_GBPS] = "plateau_gbps",
    [PARALLELISM_EVIDENCE_LATENCY_NS] = "latency_ns",
    [PARALLELISM_EVIDENCE_LOADS_ENOUGH] = "loads_enough",
    [PARALLELISM_EVIDENCE_SMS_ENOUGH] = "sms_enough",
};
const char *const evidence_memory_names[MEMORY_EVIDENCE_COUNT] = {
    [MEMORY_EVIDENCE_PLATEAU_GBPS] = "plateau_gbps",
    [MEMORY_EVIDENCE_REACH_BYTES] = "reach_bytes",
    [MEMORY_EVIDENCE_WINDOWS_REACH_BYTES] = "windows_reach_bytes",
    [MEMORY_EVIDENCE_GROUP_REACH_BYTES] = "group_reach_bytes",
    [MEMORY_EVIDENCE_ENTRY_BYTES] = "entry_bytes",
    [MEMORY_EVIDENCE_BEYOND_GBPS] = "beyond_gbps",
    [MEMORY_EVIDENCE_LATENCY_CYCLES] = "latency_cycles",
    [MEMORY_EVIDENCE_BEYOND_LATENCY_CYCLES] = "beyond_latency_cycles",
    [MEMORY_EVIDENCE_SMS_TO_FILL] = "sms_to_fill",
    [MEMORY_EVIDENCE_WRITE_GBPS] = "write_gbps",
    [MEMORY_EVIDENCE_ATOMIC_GBPS] = "atomic_gbps",
};

struct evidence evidence_make(enum evidence_method method, uint64_t repeats, double margin)
{
    struct evidence e = {.method = method, .repeats = 1};

    if (repeats > 1)
        e.repeats = repeats < UINT32_MAX ? (uint32_t)repeats : UINT32_MAX;
    if (margin > 0)
        e.margin = margin < 1 ? floor(margin * MARGIN_PARTS) / MARGIN_PARTS : 1;
    return e;
}

struct evidence evidence_weaker(struct evidence a, struct evidence b)
{
    a.repeats = b.repeats < a.repeats ? b.repeats : a.repeats;
    a.margin = b.margin < a.margin ? b.margin : a.margin;
    return a;
}

const char *evidence_fault(struct evidence e, bool known)
{
    const char *fault = NULL;

    if ((unsigned)e.method >= EVIDENCE_METHOD_COUNT)
        fault = "has evidence of a method that does not exist";
    else if (e.method != EVIDENCE_NONE && !known)
        fault = "is absent and has evidence";
    else if ((e.method == EVIDENCE_NONE) != (e.repeats == 0))
        fault = "has evidence without repeats, or repeats without a method";
    else if (!(e.margin >= 0 && e.margin <= 1) || (e.method == EVIDENCE_NONE && e.margin > 0))
        fault = "has evidence with a margin that is not in 0..1";
    return fault;
}
