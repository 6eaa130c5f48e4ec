/* members.c: the tables of members.h. The type and the size of most rows follow from the member's
 * declaration, so a row cannot be of another type than the struct. */
#include "fingerprint/members.h"

#include "base/format_number.h"

#include <pthread.h>

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* Only inspected for its type. */
#define FIELD_OF(s, field) (((struct s *)0)->field)

/* clang-format off */
#define TYPE_OF(s, field)                                                                          \
    _Generic(FIELD_OF(s, field),                                                                   \
        uint32_t: MEMBER_U32, uint64_t: MEMBER_U64, double: MEMBER_F64, int64_t: MEMBER_TIME,      \
        struct maybe_u32: MEMBER_U32_MAYBE, struct maybe_u64: MEMBER_U64_MAYBE,                    \
        struct maybe_f64: MEMBER_F64_MAYBE, char *: MEMBER_TEXT)
/* clang-format on */

#define AT(s, field) .offset = offsetof(struct s, field), .size = sizeof FIELD_OF(s, field)

/* Rows: a number or a text; an enumerator; a struct; an array of structs with its count. */
#define NUMBER(s, field)     .name = #field, .type = TYPE_OF(s, field), AT(s, field)
#define NAME(s, field, of)   .name = #field, .type = MEMBER_NAME, AT(s, field), .names = &(of)
#define OBJECT(s, field, of) .name = #field, .type = MEMBER_OBJECT, AT(s, field), .object = &(of)
#define LIST(key, s, field, counter, of)                                                           \
    .name = #key, .type = MEMBER_LIST, AT(s, field), .object = &(of),                              \
    .count_offset = offsetof(struct s, counter), .max_count = COUNT_OF(FIELD_OF(s, field))

/* Rows of a type of their own: one member of the struct, without a name in the document, or without
 * a place in the struct. */
#define SPECIAL(key, s, field, how) .name = #key, .type = (how), AT(s, field)
#define HIDDEN(s, field, how)       .type = (how), AT(s, field)
#define DERIVED(key, how)           .name = #key, .type = (how)

/* Attributes of a row. */
#define IN(p)                .part = (PART_##p + 1)
#define IN_LEVEL(p)          .part = (LEVEL_PART_##p + 1)
#define IN_MEMORY            .part = 1
#define FOR_PLANNER          .for_planner = true
#define EVIDENCE(of, number) .evidence = (of##_EVIDENCE_##number + 1)

#define DEFINE(s, rows)                                                                            \
    {                                                                                              \
        .members = (rows), .count = COUNT_OF(rows), .size = sizeof(struct s)                       \
    }
#define DEFINE_WITH_EVIDENCE(s, rows, names_of_evidence)                                           \
    {                                                                                              \
        .members = (rows), .count = COUNT_OF(rows), .size = sizeof(struct s),                      \
        .evidence_offset = offsetof(struct s, evidence),                                           \
        .evidence_count = COUNT_OF(names_of_evidence), .evidence_names = (names_of_evidence)       \
    }

static const struct json_names shared_by_words = {shared_by_name, SHARED_GPU + 1};
static const struct json_names replacement_words = {replacement_name, REPLACEMENT_NOT_LRU + 1};
static const struct json_names fill_words = {fill_name, FILL_PARTS + 1};
static const struct json_names finding_words = {finding_name, FINDING_NO + 1};
static const struct json_names cause_words = {slow_cause_name, SLOW_BY_BANDWIDTH + 1};
static const struct json_names depth_words = {depth_name, DEPTH_COUNT};
static const struct json_names memory_words = {memory_kind_name, MEMORY_KIND_COUNT};
static const struct json_names cache_words = {cache_kind_name, CACHE_KIND_COUNT};
static const struct json_names access_words = {access_name, ACCESS_COUNT};
static const struct json_names verdict_words = {verdict_name, VERDICT_UNUSABLE + 1};

/* ---- tlb ---- */

static const struct member set_members[] = {
    {NUMBER(set_run, ways)},
    {NUMBER(set_run, sets), IN_LEVEL(SETS)},
};
static const struct object set_object = DEFINE(set_run, set_members);

static const struct member level_members[] = {
    {NUMBER(tlb_level, level), FOR_PLANNER},
    {NUMBER(tlb_level, entries), IN_LEVEL(SIZE), .label = "entries"},
    {NUMBER(tlb_level, entry_bytes), FOR_PLANNER, IN_LEVEL(SIZE), EVIDENCE(LEVEL, ENTRY_BYTES),
     .label = "entry"},
    {NUMBER(tlb_level, page_bytes), IN_LEVEL(SIZE), .label = "page"},
    {NUMBER(tlb_level, reach_bytes), FOR_PLANNER, IN_LEVEL(SIZE), EVIDENCE(LEVEL, REACH_BYTES),
     .label = "reach"},
    {NUMBER(tlb_level, onset_bytes), IN_LEVEL(SIZE)},
    {NUMBER(tlb_level, saturation_bytes), IN_LEVEL(SIZE), EVIDENCE(LEVEL, SATURATION_BYTES)},
    {NUMBER(tlb_level, sets), IN_LEVEL(SETS), EVIDENCE(LEVEL, SETS), .label = "sets"},
    {NUMBER(tlb_level, ways), IN_LEVEL(SETS), .label = "ways"},
    {LIST(set_sizes, tlb_level, runs, run_count, set_object), IN_LEVEL(SETS), .optional = true},
    {NUMBER(tlb_level, victim_entries), IN_LEVEL(SETS)},
    {NAME(tlb_level, replacement, replacement_words), IN_LEVEL(SETS), EVIDENCE(LEVEL, REPLACEMENT),
     .label = "replacement"},
    {NAME(tlb_level, fill, fill_words), IN_LEVEL(FILL), EVIDENCE(LEVEL, FILL)},
    {NUMBER(tlb_level, entry_pages), IN_LEVEL(FILL), EVIDENCE(LEVEL, ENTRY_PAGES)},
    {NUMBER(tlb_level, tag_bytes), IN_LEVEL(FILL), EVIDENCE(LEVEL, ENTRY_PAGES)},
    {NUMBER(tlb_level, miss_penalty_cycles), IN_LEVEL(PENALTY),
     EVIDENCE(LEVEL, MISS_PENALTY_CYCLES), .label = "miss penalty in cycles"},
    {NAME(tlb_level, shared_by, shared_by_words), FOR_PLANNER, IN_LEVEL(SHARING),
     EVIDENCE(LEVEL, SHARED_BY), .label = "shared by"},
    {SPECIAL(groups, tlb_level, sharing, MEMBER_PARTITION), IN_LEVEL(SHARING),
     .label = "SM groups"},
    {NUMBER(tlb_level, confidence), IN_LEVEL(SIZE), .max = 1},
};
const struct object level_object =
    DEFINE_WITH_EVIDENCE(tlb_level, level_members, evidence_level_names);

static const struct member beyond_members[] = {
    {NUMBER(fingerprint_beyond, probed_bytes)},
    {NUMBER(fingerprint_beyond, reach_bytes), IN(BEYOND)},
    {NUMBER(fingerprint_beyond, walk_cycles), IN(BEYOND)},
};
static const struct object beyond_object = DEFINE(fingerprint_beyond, beyond_members);

#define PAGE_BYTES(key, a)                                                                         \
    .name = (key), .type = MEMBER_U64_MAYBE, .offset = (a) * sizeof(struct maybe_u64),             \
    .size = sizeof(struct maybe_u64), IN(PAGE_BYTES)

static const struct member page_members[ALLOCATION_COUNT] = {
    {PAGE_BYTES("virtual", ALLOCATION_VIRTUAL)},
    {PAGE_BYTES("plain", ALLOCATION_PLAIN)},
    {PAGE_BYTES("managed", ALLOCATION_MANAGED)},
};
static const struct object page_object = {.members = page_members, .count = ALLOCATION_COUNT};

static const struct member tlb_members[] = {
    {LIST(levels, fingerprint, levels, level_count, level_object), FOR_PLANNER},
    {OBJECT(fingerprint, beyond, beyond_object), IN(BEYOND)},
    {OBJECT(fingerprint, page_bytes, page_object), IN(PAGE_BYTES)},
};
static const struct object tlb_object = DEFINE(fingerprint, tlb_members);

/* ---- topology ---- */

static const struct member group_members[] = {
    {DERIVED(id, MEMBER_INDEX)},
    {SPECIAL(sms, sm_group, sm_count, MEMBER_GROUP_SMS), FOR_PLANNER, IN(GROUPS),
     .uncounted = true},
    {NUMBER(sm_group, miss_penalty_cycles), IN(GROUP_PENALTIES),
     EVIDENCE(GROUP, MISS_PENALTY_CYCLES)},
    {NUMBER(sm_group, random_read_gbps), FOR_PLANNER, IN(GROUP_SPEEDS),
     EVIDENCE(GROUP, RANDOM_READ_GBPS)},
    {NUMBER(sm_group, alone_gbps), IN(GROUP_SPEEDS), EVIDENCE(GROUP, ALONE_GBPS)},
    {NUMBER(sm_group, beyond_gbps), IN(GROUP_SPEEDS), EVIDENCE(GROUP, BEYOND_GBPS)},
    {NUMBER(sm_group, penalty_class), IN(GROUP_PENALTIES)},
    {NUMBER(sm_group, speed_class), IN(GROUP_SPEEDS)},
    {DERIVED(sm_miss_penalty_cycles, MEMBER_GROUP_PENALTIES)},
};
static const struct object group_object =
    DEFINE_WITH_EVIDENCE(sm_group, group_members, evidence_group_names);

static const struct member disabled_members[] = {
    {NUMBER(disabled_sms, sm_count), IN(GROUPS)},
    {NUMBER(disabled_sms, unit_sms)},
    {NUMBER(disabled_sms, lost_groups)},
    {DERIVED(by_group, MEMBER_LOST)},
    {NUMBER(disabled_sms, signature), .optional = true, .label = "pattern of disabled SMs"},
    {NUMBER(disabled_sms, candidate_count)},
    {DERIVED(candidates, MEMBER_CANDIDATES)},
};
static const struct object disabled_object = DEFINE(disabled_sms, disabled_members);

static const struct member slow_members[] = {
    {SPECIAL(groups, slow_pair, groups, MEMBER_TWO_GROUPS)},
    {NUMBER(slow_pair, ratio)},
    {NAME(slow_pair, cause, cause_words)},
};
static const struct object slow_object = DEFINE(slow_pair, slow_members);

static const struct member pairs_members[] = {
    {NUMBER(group_pairs, measured)},
    {NUMBER(group_pairs, worst_ratio)},
    {SPECIAL(worst, group_pairs, worst, MEMBER_TWO_GROUPS), .optional = true},
    {NAME(group_pairs, share_tlb, finding_words)},
    {NUMBER(group_pairs, slow_count)},
    {LIST(slow, group_pairs, slow, listed, slow_object)},
};
static const struct object pairs_object = DEFINE(group_pairs, pairs_members);

static const struct member topology_members[] = {
    {NUMBER(topology, level), IN(GROUPS), .label = "level of the groups"},
    {LIST(groups, topology, groups, partition.group_count, group_object), FOR_PLANNER,
     EVIDENCE(TOPOLOGY, GROUPS), .columns = "group_evidence"},
    {NUMBER(topology, nominal_group_sms), IN(GROUPS), .uncounted = true,
     .label = "SMs of a group of the full die"},
    {NUMBER(topology, full_sm_count), IN(GROUPS), EVIDENCE(TOPOLOGY, DISABLED),
     .label = "SMs of the full die"},
    {OBJECT(topology, disabled, disabled_object), IN(GROUPS)},
    {NUMBER(topology, confidence), IN(GROUPS), .uncounted = true, .max = 1},
    {NUMBER(topology, penalty_classes), IN(GROUP_PENALTIES), EVIDENCE(TOPOLOGY, PENALTY_CLASSES)},
    {NUMBER(topology, speed_classes), IN(GROUP_SPEEDS), EVIDENCE(TOPOLOGY, SPEED_CLASSES)},
    {NAME(topology, speed_follows_sms, finding_words), IN(GROUP_SPEEDS),
     EVIDENCE(TOPOLOGY, SPEED_FOLLOWS_SMS)},
    {OBJECT(topology, pairs, pairs_object), IN(GROUP_PAIRS), EVIDENCE(TOPOLOGY, PAIRS)},
    {HIDDEN(topology, partition, MEMBER_PARTITION), IN(GROUPS), EVIDENCE(TOPOLOGY, GROUPS),
     .label = "SM groups"},
    {HIDDEN(topology, sm_miss_penalty_cycles, MEMBER_SM_PENALTIES), IN(GROUP_PENALTIES)},
};
const struct object topology_object =
    DEFINE_WITH_EVIDENCE(topology, topology_members, evidence_topology_names);

/* ---- throughput ---- */

static const struct member windows_members[] = {
    {NUMBER(fingerprint_windows, reach_bytes), FOR_PLANNER, IN(GROUPS)},
    {NUMBER(fingerprint_windows, entry_bytes), FOR_PLANNER, IN(GROUPS)},
    {NUMBER(fingerprint_windows, recommended_bytes), FOR_PLANNER, IN(GROUPS),
     .label = "recommended window"},
};
const struct object windows_object = DEFINE(fingerprint_windows, windows_members);

/* A point of the curve, and of that of another kind of memory. */
#define CURVE_POINT_ROWS(in)                                                                       \
    {NUMBER(curve_point, region_bytes), FOR_PLANNER},                                              \
        {NUMBER(curve_point, naive_gbps), FOR_PLANNER, in, EVIDENCE(CURVE, NAIVE_GBPS),            \
         .label = "naive in GB/s"},                                                                \
        {NUMBER(curve_point, by_group_gbps), FOR_PLANNER, in, EVIDENCE(CURVE, BY_GROUP_GBPS),      \
         .label = "by group in GB/s"},                                                             \
        {NUMBER(curve_point, by_sm_gbps), in, EVIDENCE(CURVE, BY_SM_GBPS)},                        \
    {                                                                                              \
        NUMBER(curve_point, windows), FOR_PLANNER                                                  \
    }
static const struct member curve_point_members[] = {CURVE_POINT_ROWS(IN(CURVE))};
const struct object curve_point_object =
    DEFINE_WITH_EVIDENCE(curve_point, curve_point_members, evidence_curve_names);

static const struct member rate_point_members[] = {
    {NUMBER(curve_point, region_bytes), FOR_PLANNER},
    {NUMBER(curve_point, naive_gbps), FOR_PLANNER, IN(RATES), EVIDENCE(CURVE, NAIVE_GBPS),
     .label = "naive in GB/s"},
    {NUMBER(curve_point, by_group_gbps), FOR_PLANNER, IN(RATES), EVIDENCE(CURVE, BY_GROUP_GBPS),
     .label = "by group in GB/s"},
};
const struct object rate_point_object = {.members = rate_point_members,
                                         .count = COUNT_OF(rate_point_members),
                                         .size = sizeof(struct curve_point),
                                         .evidence_offset = offsetof(struct curve_point, evidence),
                                         .evidence_count = RATE_POINT_EVIDENCE_COUNT,
                                         .evidence_names = evidence_curve_names};

static const struct member rate_members[] = {
    {NAME(access_rate, access, access_words), FOR_PLANNER},
    {NUMBER(access_rate, transaction_bytes), FOR_PLANNER},
    {NUMBER(access_rate, plateau_gbps), FOR_PLANNER, IN(RATES), EVIDENCE(RATE, PLATEAU_GBPS),
     .label = "plateau in GB/s"},
    {LIST(points, access_rate, points, point_count, rate_point_object), FOR_PLANNER,
     .columns = "point_evidence"},
};
const struct object rate_object =
    DEFINE_WITH_EVIDENCE(access_rate, rate_members, evidence_rate_names);

static const struct member throughput_members[] = {
    {NUMBER(throughput, plateau_gbps), FOR_PLANNER, IN(CURVE), EVIDENCE(THROUGHPUT, PLATEAU_GBPS),
     .label = "plateau in GB/s"},
    {NUMBER(throughput, whole_memory_gbps), FOR_PLANNER, IN(CURVE),
     EVIDENCE(THROUGHPUT, WHOLE_MEMORY_GBPS), .label = "whole memory in GB/s"},
    {LIST(curve, throughput, curve, curve_count, curve_point_object), FOR_PLANNER, IN(CURVE),
     .columns = "curve_evidence"},
    {LIST(rates, throughput, rates, rate_count, rate_object), FOR_PLANNER, IN(RATES),
     .optional = true},
};
const struct object throughput_object =
    DEFINE_WITH_EVIDENCE(throughput, throughput_members, evidence_throughput_names);

/* ---- contiguity ---- */

static const struct member contiguity_members[] = {
    {NUMBER(fingerprint_contiguity, frame_bytes), FOR_PLANNER, IN(CONTIGUITY),
     EVIDENCE(CONTIGUITY, FRAME_BYTES), .label = "frame"},
    {NUMBER(fingerprint_contiguity, contiguous_miss_ns), FOR_PLANNER, IN(CONTIGUITY),
     EVIDENCE(CONTIGUITY, CONTIGUOUS_MISS_NS), .label = "miss of contiguous memory in ns"},
    {NUMBER(fingerprint_contiguity, scattered_miss_ns), FOR_PLANNER, IN(CONTIGUITY),
     EVIDENCE(CONTIGUITY, SCATTERED_MISS_NS), .label = "miss of scattered memory in ns"},
};
const struct object contiguity_object =
    DEFINE_WITH_EVIDENCE(fingerprint_contiguity, contiguity_members, evidence_contiguity_names);

/* ---- L2 ---- */

static const struct member l2_members[] = {
    {NUMBER(fingerprint_l2, sides), FOR_PLANNER, IN(L2_SIDES), EVIDENCE(L2, SIDES),
     .label = "sides of the L2"},
    {NUMBER(fingerprint_l2, granule_bytes), FOR_PLANNER, IN(L2_SIDES), EVIDENCE(L2, GRANULE_BYTES),
     .label = "granule of an L2 side"},
    {NUMBER(fingerprint_l2, atomic_near_cycles), FOR_PLANNER, IN(L2_SIDES),
     EVIDENCE(L2, ATOMIC_NEAR_CYCLES), .label = "near atomic in cycles"},
    {NUMBER(fingerprint_l2, atomic_far_cycles), FOR_PLANNER, IN(L2_SIDES),
     EVIDENCE(L2, ATOMIC_FAR_CYCLES), .label = "far atomic in cycles"},
    {SPECIAL(sms, fingerprint_l2, side_of_sm, MEMBER_PARTITION), FOR_PLANNER, IN(L2_SIDES),
     .label = "SMs of each L2 side"},
};
const struct object l2_object = DEFINE_WITH_EVIDENCE(fingerprint_l2, l2_members, evidence_l2_names);

/* ---- working sets ---- */

static const struct member working_set_members[] = {
    {NUMBER(working_set, transaction_bytes), FOR_PLANNER},
    {NUMBER(working_set, set_bytes), FOR_PLANNER},
    {NUMBER(working_set, same_gbps), FOR_PLANNER, IN(WORKING_SETS),
     EVIDENCE(WORKING_SET, SAME_GBPS), .label = "same set in GB/s"},
    {NUMBER(working_set, own_gbps), FOR_PLANNER, IN(WORKING_SETS), EVIDENCE(WORKING_SET, OWN_GBPS),
     .label = "own parts in GB/s"},
    {NUMBER(working_set, near_gbps), FOR_PLANNER, IN(WORKING_SETS),
     EVIDENCE(WORKING_SET, NEAR_GBPS), .label = "near granules in GB/s"},
};
const struct object working_set_object =
    DEFINE_WITH_EVIDENCE(working_set, working_set_members, evidence_working_set_names);

/* ---- caches ---- */

static const struct member carveout_members[] = {
    {NUMBER(cache_carveout, shared_bytes), FOR_PLANNER},
    {NUMBER(cache_carveout, size_bytes), FOR_PLANNER, IN(CACHES)},
    {NUMBER(cache_carveout, fits_bytes), FOR_PLANNER, IN(CACHES)},
};
static const struct object carveout_object = DEFINE(cache_carveout, carveout_members);

static const struct member cache_members[] = {
    {NAME(cache_facts, kind, cache_words), FOR_PLANNER},
    {NUMBER(cache_facts, size_bytes), FOR_PLANNER, IN(CACHES), EVIDENCE(CACHE, SIZE_BYTES),
     .label = "size"},
    {NUMBER(cache_facts, fits_bytes), FOR_PLANNER, IN(CACHES), EVIDENCE(CACHE, FITS_BYTES),
     .label = "fits"},
    {NUMBER(cache_facts, line_bytes), IN(CACHES), EVIDENCE(CACHE, LINE_BYTES), .label = "line"},
    {NUMBER(cache_facts, sector_bytes), IN(CACHES), EVIDENCE(CACHE, SECTOR_BYTES),
     .label = "sector"},
    {NUMBER(cache_facts, fill_bytes), IN(CACHES), EVIDENCE(CACHE, FILL_BYTES), .label = "fill"},
    {NUMBER(cache_facts, sets), IN(CACHES), EVIDENCE(CACHE, SETS), .label = "sets"},
    {NUMBER(cache_facts, ways), IN(CACHES), .label = "ways"},
    {NAME(cache_facts, replacement, replacement_words), IN(CACHES), EVIDENCE(CACHE, REPLACEMENT),
     .label = "replacement"},
    {NUMBER(cache_facts, trace), .optional = true},
    {NUMBER(cache_facts, latency_cycles), FOR_PLANNER, IN(CACHES), EVIDENCE(CACHE, LATENCY_CYCLES),
     .label = "latency in cycles"},
    {NUMBER(cache_facts, miss_latency_cycles), IN(CACHES)},
    {NAME(cache_facts, same_as_l1, finding_words), IN(CACHES), EVIDENCE(CACHE, SAME_AS_L1)},
    {LIST(carveouts, cache_facts, carveouts, carveout_count, carveout_object), FOR_PLANNER,
     .optional = true},
};
const struct object cache_object =
    DEFINE_WITH_EVIDENCE(cache_facts, cache_members, evidence_cache_names);

static const struct member latency_members[] = {
    {NUMBER(fingerprint_latency, p1_cycles), IN(LATENCY), EVIDENCE(LATENCY, P1),
     .label = "P1 in cycles"},
    {NUMBER(fingerprint_latency, p2_cycles), IN(LATENCY), EVIDENCE(LATENCY, P2),
     .label = "P2 in cycles"},
    {NUMBER(fingerprint_latency, p3_cycles), IN(LATENCY), EVIDENCE(LATENCY, P3),
     .label = "P3 in cycles"},
    {NUMBER(fingerprint_latency, p4_cycles), FOR_PLANNER, IN(LATENCY), EVIDENCE(LATENCY, P4),
     .label = "P4 in cycles"},
    {NUMBER(fingerprint_latency, p5_cycles), IN(LATENCY), EVIDENCE(LATENCY, P5),
     .label = "P5 in cycles"},
    {NUMBER(fingerprint_latency, p6_cycles), IN(LATENCY), EVIDENCE(LATENCY, P6),
     .label = "P6 in cycles"},
    {NUMBER(fingerprint_latency, near_cycles), IN(LATENCY), EVIDENCE(LATENCY, NEAR),
     .label = "near memory in cycles"},
    {NUMBER(fingerprint_latency, far_cycles), IN(LATENCY), .label = "far memory in cycles"},
    {NUMBER(fingerprint_latency, tail_cycles), IN(LATENCY), EVIDENCE(LATENCY, TAIL)},
    {NUMBER(fingerprint_latency, tail_share), IN(LATENCY), .max = 1},
};
const struct object latency_object =
    DEFINE_WITH_EVIDENCE(fingerprint_latency, latency_members, evidence_latency_names);

/* ---- shared memory, clusters, parallelism ---- */

static const struct member shared_width_members[] = {
    {NUMBER(shared_width, width_bytes)},
    {NUMBER(shared_width, latency_cycles), IN(SHARED), EVIDENCE(SHARED_WIDTH, LATENCY_CYCLES)},
    {NUMBER(shared_width, conflict_cycles), IN(SHARED), EVIDENCE(SHARED_WIDTH, CONFLICT_CYCLES)},
    {NUMBER(shared_width, bytes_per_cycle), IN(SHARED), EVIDENCE(SHARED_WIDTH, BYTES_PER_CYCLE)},
    {NUMBER(shared_width, loads_enough), IN(SHARED), EVIDENCE(SHARED_WIDTH, LOADS_ENOUGH)},
    {NUMBER(shared_width, loads_needed), IN(SHARED)},
};
static const struct object shared_width_object =
    DEFINE_WITH_EVIDENCE(shared_width, shared_width_members, evidence_shared_width_names);

static const struct member shared_stride_members[] = {
    {NUMBER(shared_stride, width_bytes)},
    {NUMBER(shared_stride, stride_bytes)},
    {NUMBER(shared_stride, cycles), IN(SHARED)},
    {NUMBER(shared_stride, passes), IN(SHARED)},
};
static const struct object shared_stride_object = DEFINE(shared_stride, shared_stride_members);

static const struct member shared_members[] = {
    {NUMBER(fingerprint_shared, sm_bytes), FOR_PLANNER, IN(SHARED)},
    {NUMBER(fingerprint_shared, block_bytes), FOR_PLANNER, IN(SHARED)},
    {NUMBER(fingerprint_shared, banks), FOR_PLANNER, IN(SHARED), EVIDENCE(SHARED, BANKS),
     .label = "banks of shared memory"},
    {NUMBER(fingerprint_shared, bank_bytes), FOR_PLANNER, IN(SHARED), EVIDENCE(SHARED, BANKS),
     .label = "bytes of a bank"},
    {LIST(widths, fingerprint_shared, widths, width_count, shared_width_object), IN(SHARED)},
    {LIST(strides, fingerprint_shared, strides, stride_count, shared_stride_object), IN(SHARED)},
};
const struct object shared_object =
    DEFINE_WITH_EVIDENCE(fingerprint_shared, shared_members, evidence_shared_names);

static const struct member cluster_size_members[] = {
    {NUMBER(cluster_size, sms), FOR_PLANNER},
    {NUMBER(cluster_size, clusters), FOR_PLANNER, IN(CLUSTERS), EVIDENCE(CLUSTER_SIZE, CLUSTERS)},
    {NUMBER(cluster_size, usable_sms), FOR_PLANNER, IN(CLUSTERS), EVIDENCE(CLUSTER_SIZE, CLUSTERS)},
    {NUMBER(cluster_size, latency_cycles), IN(CLUSTERS), EVIDENCE(CLUSTER_SIZE, LATENCY_CYCLES)},
    {NUMBER(cluster_size, bytes_per_cycle), IN(CLUSTERS), EVIDENCE(CLUSTER_SIZE, BYTES_PER_CYCLE)},
};
static const struct object cluster_size_object =
    DEFINE_WITH_EVIDENCE(cluster_size, cluster_size_members, evidence_cluster_size_names);

static const struct member clusters_members[] = {
    {NUMBER(fingerprint_clusters, largest), FOR_PLANNER, IN(CLUSTERS), EVIDENCE(CLUSTERS, LARGEST),
     .label = "SMs of the largest cluster"},
    {NUMBER(fingerprint_clusters, own_cycles), IN(CLUSTERS), EVIDENCE(CLUSTERS, OWN_CYCLES)},
    {NUMBER(fingerprint_clusters, gpcs), IN(CLUSTERS), EVIDENCE(CLUSTERS, GPCS), .label = "GPCs"},
    {SPECIAL(sms, fingerprint_clusters, gpc_of_sm, MEMBER_PARTITION), IN(CLUSTERS),
     .label = "SMs of each GPC"},
    {LIST(sizes, fingerprint_clusters, sizes, size_count, cluster_size_object), FOR_PLANNER,
     IN(CLUSTERS)},
};
const struct object clusters_object =
    DEFINE_WITH_EVIDENCE(fingerprint_clusters, clusters_members, evidence_clusters_names);

static const struct member concurrency_members[] = {
    {NUMBER(concurrency_point, warps)},
    {NUMBER(concurrency_point, loads)},
    {NUMBER(concurrency_point, gbps), IN(PARALLELISM)},
};
static const struct object concurrency_object = DEFINE(concurrency_point, concurrency_members);

static const struct member sms_point_members[] = {
    {NUMBER(sms_point, sms)},
    {NUMBER(sms_point, gbps), IN(PARALLELISM)},
};
static const struct object sms_point_object = DEFINE(sms_point, sms_point_members);

static const struct member parallelism_members[] = {
    {NUMBER(fingerprint_parallelism, plateau_gbps), IN(PARALLELISM),
     EVIDENCE(PARALLELISM, PLATEAU_GBPS)},
    {NUMBER(fingerprint_parallelism, latency_ns), IN(PARALLELISM),
     EVIDENCE(PARALLELISM, LATENCY_NS)},
    {NUMBER(fingerprint_parallelism, loads_enough), FOR_PLANNER, IN(PARALLELISM),
     EVIDENCE(PARALLELISM, LOADS_ENOUGH)},
    {NUMBER(fingerprint_parallelism, loads_short), FOR_PLANNER, IN(PARALLELISM),
     EVIDENCE(PARALLELISM, LOADS_ENOUGH)},
    {NUMBER(fingerprint_parallelism, sms_enough), FOR_PLANNER, IN(PARALLELISM),
     EVIDENCE(PARALLELISM, SMS_ENOUGH)},
    {NUMBER(fingerprint_parallelism, sms_short), FOR_PLANNER, IN(PARALLELISM),
     EVIDENCE(PARALLELISM, SMS_ENOUGH)},
    {LIST(surface, fingerprint_parallelism, surface, surface_count, concurrency_object),
     IN(PARALLELISM)},
    {LIST(by_sms, fingerprint_parallelism, by_sms, by_sms_count, sms_point_object),
     IN(PARALLELISM)},
};
const struct object parallelism_object =
    DEFINE_WITH_EVIDENCE(fingerprint_parallelism, parallelism_members, evidence_parallelism_names);

/* ---- memory ---- */

static const struct member memory_point_members[] = {CURVE_POINT_ROWS(IN_MEMORY)};
const struct object memory_point_object =
    DEFINE_WITH_EVIDENCE(curve_point, memory_point_members, evidence_curve_names);

static const struct member memory_members[] = {
    {NAME(memory_facts, kind, memory_words), FOR_PLANNER},
    {NUMBER(memory_facts, peer_uuid), FOR_PLANNER, .optional = true},
    {NUMBER(memory_facts, peer_memory_bytes), FOR_PLANNER, .optional = true},
    {NUMBER(memory_facts, probed_bytes), FOR_PLANNER, IN_MEMORY},
    {NUMBER(memory_facts, plateau_gbps), FOR_PLANNER, IN_MEMORY, EVIDENCE(MEMORY, PLATEAU_GBPS),
     .label = "plateau in GB/s"},
    {NUMBER(memory_facts, reach_bytes), FOR_PLANNER, IN_MEMORY, EVIDENCE(MEMORY, REACH_BYTES)},
    {NUMBER(memory_facts, onset_bytes), IN_MEMORY},
    {NUMBER(memory_facts, windows_reach_bytes), FOR_PLANNER, IN_MEMORY,
     EVIDENCE(MEMORY, WINDOWS_REACH_BYTES)},
    {NUMBER(memory_facts, windows_onset_bytes), IN_MEMORY},
    {NUMBER(memory_facts, group_reach_bytes), IN_MEMORY, EVIDENCE(MEMORY, GROUP_REACH_BYTES)},
    {NUMBER(memory_facts, group_onset_bytes), IN_MEMORY},
    {NUMBER(memory_facts, entry_bytes), IN_MEMORY, EVIDENCE(MEMORY, ENTRY_BYTES), .label = "entry"},
    {NUMBER(memory_facts, beyond_gbps), IN_MEMORY, EVIDENCE(MEMORY, BEYOND_GBPS)},
    {NUMBER(memory_facts, latency_cycles), IN_MEMORY, EVIDENCE(MEMORY, LATENCY_CYCLES),
     .label = "latency in cycles"},
    {NUMBER(memory_facts, beyond_latency_cycles), IN_MEMORY,
     EVIDENCE(MEMORY, BEYOND_LATENCY_CYCLES)},
    {NUMBER(memory_facts, sms_to_fill), FOR_PLANNER, IN_MEMORY, EVIDENCE(MEMORY, SMS_TO_FILL)},
    {NUMBER(memory_facts, write_gbps), FOR_PLANNER, IN_MEMORY, EVIDENCE(MEMORY, WRITE_GBPS),
     .label = "writes in GB/s"},
    {NUMBER(memory_facts, atomic_gbps), FOR_PLANNER, IN_MEMORY, EVIDENCE(MEMORY, ATOMIC_GBPS),
     .label = "atomics in GB/s"},
    {LIST(curve, memory_facts, curve, curve_count, memory_point_object), FOR_PLANNER,
     .columns = "curve_evidence"},
};
const struct object memory_object =
    DEFINE_WITH_EVIDENCE(memory_facts, memory_members, evidence_memory_names);

/* ---- the whole ---- */

static const struct member conditions_members[] = {
    {NAME(fingerprint_conditions, verdict, verdict_words), FOR_PLANNER},
    {NUMBER(fingerprint_conditions, arena), .optional = true},
    {NUMBER(fingerprint_conditions, range_bytes), FOR_PLANNER},
    {NUMBER(fingerprint_conditions, backing_bytes)},
    {NUMBER(fingerprint_conditions, sm_clock_khz)},
    {NUMBER(fingerprint_conditions, other_processes)},
    {NUMBER(fingerprint_conditions, host_memory_bytes), FOR_PLANNER, .optional = true},
    {SPECIAL(notes, fingerprint_conditions, notes, MEMBER_NOTES),
     .count_offset = offsetof(struct fingerprint_conditions, note_count),
     .max_count = FINGERPRINT_MAX_NOTES},
};
static const struct object conditions_object = DEFINE(fingerprint_conditions, conditions_members);

static const struct member source_members[] = {
    {NUMBER(fingerprint_source, id)},
    {NAME(fingerprint_source, depth, depth_words)},
    {NUMBER(fingerprint_source, taken_at)},
};
const struct object source_object = DEFINE(fingerprint_source, source_members);

static const struct member fingerprint_members[] = {
    {NAME(fingerprint, depth, depth_words), FOR_PLANNER},
    {NUMBER(fingerprint, taken_at), FOR_PLANNER},
    {NUMBER(fingerprint, duration_ms)},
    {NUMBER(fingerprint, probe_ms)},
    {NUMBER(fingerprint, device_memory_bytes)},
    {DERIVED(tlb, MEMBER_OBJECT), FOR_PLANNER, .object = &tlb_object},
    {OBJECT(fingerprint, topology, topology_object), FOR_PLANNER},
    {OBJECT(fingerprint, windows, windows_object), FOR_PLANNER, IN(GROUPS)},
    {OBJECT(fingerprint, throughput, throughput_object), FOR_PLANNER},
    {OBJECT(fingerprint, contiguity, contiguity_object), FOR_PLANNER, IN(CONTIGUITY),
     .optional = true},
    {OBJECT(fingerprint, l2, l2_object), FOR_PLANNER, IN(L2_SIDES), .optional = true},
    {LIST(working_sets, fingerprint, working_sets, working_set_count, working_set_object),
     FOR_PLANNER, IN(WORKING_SETS), .columns = "working_set_evidence", .optional = true},
    {LIST(caches, fingerprint, caches, cache_count, cache_object), FOR_PLANNER, IN(CACHES),
     .optional = true},
    {OBJECT(fingerprint, latency, latency_object), FOR_PLANNER, IN(LATENCY), .optional = true},
    {OBJECT(fingerprint, shared, shared_object), FOR_PLANNER, IN(SHARED), .optional = true},
    {OBJECT(fingerprint, clusters, clusters_object), FOR_PLANNER, IN(CLUSTERS), .optional = true},
    {OBJECT(fingerprint, parallelism, parallelism_object), FOR_PLANNER, IN(PARALLELISM),
     .optional = true},
    {LIST(memory, fingerprint, memory, memory_count, memory_object), FOR_PLANNER, .optional = true},
    {OBJECT(fingerprint, conditions, conditions_object), FOR_PLANNER},
};
const struct object fingerprint_object = DEFINE(fingerprint, fingerprint_members);

/* ---- walks ---- */

/* Calls `visit` with each number, text and array of an object, used elements of lists or not. */
static void visit_members(const struct object *o, char *base,
                          void (*visit)(enum member_type type, void *at))
{
    for (const struct member *m = o->members; m < o->members + o->count; m++) {
        char *const at = base + m->offset;

        if (m->type == MEMBER_OBJECT)
            visit_members(m->object, at, visit);
        else if (m->type == MEMBER_LIST)
            for (size_t i = 0; i < m->max_count; i++)
                visit_members(m->object, at + i * m->object->size, visit);
        else if (m->type == MEMBER_SM_PENALTIES)
            for (size_t sm = 0; sm < REACH_MAX_SMS; sm++)
                visit(MEMBER_F64_MAYBE, at + sm * sizeof(struct maybe_f64));
        else
            visit(m->type, at);
    }
}

static void init_member(enum member_type type, void *at)
{
    const struct member_state unknown = {MAYBE_UNKNOWN, REASON_NOT_MEASURED};
    struct sm_partition *const p = at;

    if (type >= MEMBER_U32_MAYBE && type <= MEMBER_F64_MAYBE)
        memcpy(at, &unknown, sizeof unknown);
    for (uint32_t sm = 0; type == MEMBER_PARTITION && sm < REACH_MAX_SMS; sm++)
        p->group_of_sm[sm] = FINGERPRINT_NO_GROUP;
}

/* What every fingerprint begins as. To visit all members takes ten times as long as to copy them.
 */
static struct fingerprint unmeasured;

static void init_unmeasured(void)
{
    visit_members(&fingerprint_object, (char *)&unmeasured, init_member);
}

void fingerprint_init(struct fingerprint *out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, init_unmeasured);
    *out = unmeasured;
}

static void round_member(enum member_type type, void *at)
{
    struct maybe_f64 *const number = at;

    if (type == MEMBER_F64)
        *(double *)at = round_six_digits(*(double *)at);
    else if (type == MEMBER_F64_MAYBE && IS_KNOWN(*number))
        number->v = round_six_digits(number->v);
}

void fingerprint_round(struct fingerprint *fp)
{
    visit_members(&fingerprint_object, (char *)fp, round_member);
}

static bool is_maybe(const struct member *m)
{
    return m->type >= MEMBER_U32_MAYBE && m->type <= MEMBER_F64_MAYBE;
}

static bool is_known_number(const struct member *m, const void *base)
{
    return is_maybe(m) && member_state(m, base).known == MAYBE_KNOWN;
}

/* An object is known if any number of it is. */
static bool is_known(const struct member *m, const void *base)
{
    const void *const v = member_at(m, base);
    bool any = false;

    switch (m->type) {
    case MEMBER_NAME:
        return *(const unsigned *)v != 0;
    case MEMBER_PARTITION:
        return ((const struct sm_partition *)v)->group_count > 0;
    case MEMBER_OBJECT:
        for (uint32_t i = 0; i < m->object->count; i++)
            any |= is_known_number(&m->object->members[i], v);
        return any;
    default:
        return is_known_number(m, base);
    }
}

bool member_is_unmeasured(const struct member *m, const void *base)
{
    bool touched = false;

    for (uint32_t i = 0; i < m->object->count; i++) {
        const struct member *const inner = &m->object->members[i];
        if (!is_maybe(inner))
            continue;
        const struct member_state s = member_state(inner, member_at(m, base));
        touched |= s.known != MAYBE_UNKNOWN ||
                   (s.reason != REASON_NOT_MEASURED && s.reason != REASON_NONE);
    }
    return !touched;
}

uint32_t object_known_evidence(const struct object *o, const void *base)
{
    uint32_t bits = 0;

    for (const struct member *m = o->members; m < o->members + o->count; m++)
        if (m->evidence > 0 && is_known(m, base))
            bits |= 1U << (m->evidence - 1);
    return bits;
}
