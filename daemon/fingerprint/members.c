/* members.c: the tables of member.h. The type and the size of most rows follow from the declaration
 * of the member, so a row cannot have another type than the struct. */
#include "fingerprint/members.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* The expression is never evaluated; only its type is used. */
#define FIELD_OF(s, field) (((struct s *)0)->field)

/* clang-format off */
#define TYPE_OF(s, field)                                                                          \
    _Generic(FIELD_OF(s, field),                                                                   \
        uint32_t: MEMBER_U32, uint64_t: MEMBER_U64, double: MEMBER_F64, int64_t: MEMBER_TIME,      \
        struct maybe_u32: MEMBER_U32_MAYBE, struct maybe_u64: MEMBER_U64_MAYBE,                    \
        struct maybe_f64: MEMBER_F64_MAYBE, char *: MEMBER_TEXT)
/* clang-format on */

#define AT(s, field) .offset = offsetof(struct s, field), .size = sizeof FIELD_OF(s, field)

/* Rows for a number or a text, an enumerator, a struct, and an array of structs with its count. */
#define NUMBER(s, field, text)                                                                     \
    .name = #field, .type = TYPE_OF(s, field), AT(s, field), .doc = (text)
#define NAME(s, field, of, text)                                                                   \
    .name = #field, .type = MEMBER_NAME, AT(s, field), .names = &(of), .doc = (text)
#define OBJECT(s, field, of, text)                                                                 \
    .name = #field, .type = MEMBER_OBJECT, AT(s, field), .object = &(of), .doc = (text)
#define LIST(key, s, field, counter, of, text)                                                     \
    .name = #key, .type = MEMBER_LIST, AT(s, field), .object = &(of), .doc = (text),               \
    .count_offset = offsetof(struct s, counter), .max_count = COUNT_OF(FIELD_OF(s, field))

/* Rows with a special type: a member of the struct, one without a name in the document, and one
 * without a place in the struct. */
#define SPECIAL(key, s, field, how, text) .name = #key, .type = (how), AT(s, field), .doc = (text)
#define HIDDEN(s, field, how)             .type = (how), AT(s, field)
#define DERIVED(key, how, text)           .name = #key, .type = (how), .doc = (text)

/* Attributes of a row. */
#define IN(p)             .part = (PART_##p + 1)
#define IN_LEVEL(p)       .part = (LEVEL_PART_##p + 1)
#define IN_MEMORY         .part = 1
#define FOR_PLANNER       .for_planner = true
#define EVIDENCE(s, of)   .evidence = offsetof(struct s, evidence.of), .of_evidence = #of
#define DESIGN            .class = CLASS_DESIGN
#define MEASURED          .class = CLASS_MEASURED
#define DIFFED            .diffed = true
#define OPTIONAL          .optional = true
#define KEY               .key = true
#define POSITIVE          .positive = true
#define LONG              .is_long = true
#define AT_LEAST(s, that) RELATED(s, that, RELATION_AT_LEAST)
#define AT_MOST(s, that)  RELATED(s, that, RELATION_AT_MOST)
#define ABOVE(s, that)    RELATED(s, that, RELATION_ABOVE)
#define RELATED(s, that, how)                                                                      \
    .relation = (how), .other_offset = offsetof(struct s, that), .other = #that

#define DEFINE(s, rows, component, text)                                                           \
    {                                                                                              \
        .members = (rows), .count = COUNT_OF(rows), .size = sizeof(struct s), .name = (component), \
        .doc = (text)                                                                              \
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
    {NUMBER(set_run, ways, "Number of ways of each of these sets."), POSITIVE},
    {NUMBER(set_run, sets, "Number of sets with these ways."), IN_LEVEL(SETS), POSITIVE},
};
static const struct object set_object =
    DEFINE(set_run, set_members, "TlbLevelSetSize",
           "The object describes the sets of a level that have the same number of ways.");

static const struct member level_members[] = {
    {NUMBER(tlb_level, level, "Number of the level. Level 1 is nearest to the SM."), FOR_PLANNER,
     KEY, POSITIVE},
    {NUMBER(tlb_level, entries, "Number of entries, which is reach_bytes divided by entry_bytes."),
     IN_LEVEL(SIZE), DESIGN, DIFFED},
    {NUMBER(tlb_level, entry_bytes, "Number of virtual bytes that one entry translates."),
     FOR_PLANNER, IN_LEVEL(SIZE), EVIDENCE(tlb_level, entry_bytes), DESIGN, DIFFED},
    {NUMBER(tlb_level, page_bytes,
            "Size of the page with which the driver mapped the memory of the probe."),
     IN_LEVEL(SIZE), DESIGN, DIFFED},
    {NUMBER(tlb_level, reach_bytes, "Largest cyclic footprint without a miss."), FOR_PLANNER,
     IN_LEVEL(SIZE), EVIDENCE(tlb_level, reach_bytes), DESIGN, DIFFED,
     AT_LEAST(tlb_level, entry_bytes)},
    {NUMBER(tlb_level, onset_bytes, "Smallest probed footprint with misses."), IN_LEVEL(SIZE),
     MEASURED},
    {NUMBER(tlb_level, saturation_bytes, "Smallest probed footprint that misses in every load."),
     IN_LEVEL(SIZE), EVIDENCE(tlb_level, saturation_bytes), MEASURED,
     AT_LEAST(tlb_level, onset_bytes)},
    {NUMBER(tlb_level, sets, "Number of all sets."), IN_LEVEL(SETS), EVIDENCE(tlb_level, sets),
     DESIGN, DIFFED},
    {NUMBER(tlb_level, ways,
            "Number of ways of every set. The member is not applicable if the sets differ; "
            "set_sizes then has the ways."),
     IN_LEVEL(SETS), DESIGN, DIFFED},
    {LIST(set_sizes, tlb_level, runs, run_count, set_object,
          "The sets by their ways, most ways first. The member is omitted if the ways are not "
          "known."),
     IN_LEVEL(SETS), OPTIONAL, DESIGN},
    {NUMBER(tlb_level, victim_entries,
            "Number of entries behind the sets: the pages that fit beyond full sets in a cyclic "
            "walk."),
     IN_LEVEL(SETS), DESIGN,
     .purpose = "reach-lab models these entries in its machine of the GPU."},
    {NAME(tlb_level, replacement, replacement_words,
          "Result of the test that a cyclic walk always evicts the oldest entry, as LRU and FIFO "
          "do."),
     IN_LEVEL(SETS), EVIDENCE(tlb_level, replacement), DESIGN, DIFFED},
    {NAME(tlb_level, fill, fill_words, "Part of an entry that one miss fills."), IN_LEVEL(FILL),
     EVIDENCE(tlb_level, fill), DESIGN},
    {NUMBER(tlb_level, entry_pages, "Number of allocation pages that one entry covers."),
     IN_LEVEL(FILL), EVIDENCE(tlb_level, entry_pages), DESIGN},
    {NUMBER(tlb_level, tag_bytes,
            "Virtual bytes of one entry that is filled in parts. In this case entry_bytes is the "
            "size of one part."),
     IN_LEVEL(FILL), EVIDENCE(tlb_level, entry_pages), DESIGN},
    {NUMBER(tlb_level, miss_penalty_cycles, "Cycles that a miss adds to a hit in this level."),
     IN_LEVEL(PENALTY), EVIDENCE(tlb_level, miss_penalty_cycles), MEASURED, DIFFED},
    {NAME(tlb_level, shared_by, shared_by_words,
          "Unit of the GPU that shares one instance of the level."),
     FOR_PLANNER, IN_LEVEL(SHARING), EVIDENCE(tlb_level, shared_by), DESIGN, DIFFED},
    {SPECIAL(groups, tlb_level, sharing, MEMBER_PARTITION,
             "SM ids of each group that shares the level. The member is omitted if groups do not "
             "share the level."),
     IN_LEVEL(SHARING), DIFFED, .label = "SM groups"},
    {NUMBER(tlb_level, confidence, "Confidence in the level, from 0 to 1."), IN_LEVEL(SIZE),
     MEASURED, .max = 1},
};
const struct object level_object =
    DEFINE(tlb_level, level_members, "TlbLevel", "The object describes one level of the TLB.");

static const struct member beyond_members[] = {
    {NUMBER(fingerprint_beyond, probed_bytes, "Largest footprint that was walked.")},
    {NUMBER(fingerprint_beyond, reach_bytes,
            "Reach of the next level, beyond the last level that was found."),
     IN(BEYOND), DESIGN},
    {NUMBER(fingerprint_beyond, walk_cycles, "Cycles of a page walk that misses in every level."),
     IN(BEYOND), MEASURED},
};
static const struct object beyond_object =
    DEFINE(fingerprint_beyond, beyond_members, "FingerprintTlbBeyond",
           "The object describes the translation of addresses beyond the last level that was "
           "found. A measurement of depth full probes these properties.");

#define PAGE_BYTES(key, a, text)                                                                   \
    .name = (key), .type = MEMBER_U64_MAYBE, .offset = (a) * sizeof(struct maybe_u64),             \
    .size = sizeof(struct maybe_u64), .doc = (text), IN(PAGE_BYTES), DESIGN

static const struct member page_members[ALLOCATION_COUNT] = {
    {PAGE_BYTES(
        "virtual", ALLOCATION_VIRTUAL,
        "Page size of the virtual memory API, which is the granularity that the driver reports.")},
    {PAGE_BYTES("plain", ALLOCATION_PLAIN, "Page size of a plain allocation.")},
    {PAGE_BYTES("managed", ALLOCATION_MANAGED, "Page size of managed memory.")},
};
static const struct object page_object = {
    .name = "FingerprintTlbPageBytes",
    .doc = "The object has the page sizes with which memory is mapped, by kind of allocation.",
    .members = page_members,
    .count = ALLOCATION_COUNT};

static const struct member tlb_members[] = {
    {LIST(levels, fingerprint, levels, level_count, level_object,
          "Levels of the TLB. The level nearest to the SM is first."),
     FOR_PLANNER, .ordered = true, .element = "level % ", .label = "TLB levels"},
    {OBJECT(fingerprint, beyond, beyond_object, "Properties beyond the last level that was found."),
     IN(BEYOND), .label = "beyond the last level"},
    {OBJECT(fingerprint, page_bytes, page_object, "Page sizes by kind of allocation."),
     IN(PAGE_BYTES), .label = "pages of allocations"},
};
static const struct object tlb_object =
    DEFINE(fingerprint, tlb_members, "FingerprintTlb",
           "The object describes the translation of addresses.");

/* ---- topology ---- */

static const struct member group_members[] = {
    {DERIVED(id, MEMBER_INDEX, "Number of the group, which is its index."), KEY, .label = "group"},
    {SPECIAL(sms, sm_group, sm_count, MEMBER_GROUP_SMS, "SM ids, ascending."), FOR_PLANNER,
     IN(GROUPS), .uncounted = true, .label = "SMs"},
    {NUMBER(sm_group, miss_penalty_cycles,
            "Cycles that a miss adds, as the median of the SMs of the group."),
     IN(GROUP_PENALTIES), EVIDENCE(sm_group, miss_penalty_cycles), MEASURED},
    {NUMBER(
         sm_group, random_read_gbps,
         "Throughput of all SMs of the group within the reach, while the other groups read too."),
     FOR_PLANNER, IN(GROUP_SPEEDS), EVIDENCE(sm_group, random_read_gbps), MEASURED,
     .label = "all at work"},
    {NUMBER(sm_group, alone_gbps, "Throughput of the group while all other SMs are idle."),
     IN(GROUP_SPEEDS), EVIDENCE(sm_group, alone_gbps), MEASURED},
    {NUMBER(sm_group, beyond_gbps, "Throughput of the group alone over up to two reaches."),
     IN(GROUP_SPEEDS), EVIDENCE(sm_group, beyond_gbps), MEASURED, .label = "out of reach"},
    {NUMBER(sm_group, penalty_class,
            "Class of the cost of a miss. Misses cost least in class 0, and only clear gaps "
            "separate classes."),
     IN(GROUP_PENALTIES)},
    {NUMBER(sm_group, speed_class, "Class of the throughput of one SM alone. Class 0 is slowest."),
     IN(GROUP_SPEEDS)},
    {DERIVED(sm_miss_penalty_cycles, MEMBER_GROUP_PENALTIES,
             "Cycles that a miss adds at each SM, in the order of sms. The member is omitted if no "
             "value is known.")},
};
static const struct object group_object =
    DEFINE(sm_group, group_members, "TopologyGroup",
           "The object describes one group of SMs that share a translation level.");

static const struct member disabled_members[] = {
    {NUMBER(disabled_sms, sm_count,
            "Number of missing SMs, which is full_sm_count less the SMs present."),
     IN(GROUPS), MEASURED, .label = "SMs"},
    {NUMBER(disabled_sms, unit_sms,
            "Number of SMs with adjacent ids that are always enabled together (a TPC)."),
     DESIGN, .label = "SMs of a unit"},
    {NUMBER(disabled_sms, lost_groups, "Number of groups of the die without a working SM."),
     MEASURED},
    {DERIVED(by_group, MEMBER_LOST, "The groups that are smaller than on the full die.")},
    {NUMBER(disabled_sms, signature,
            "Pattern of the missing SMs, equal for all chips with the same pattern. The pattern "
            "5x3/10,11 means five groups of three and the first candidate; in 24x6/4:2,13:2, "
            "groups 4 and 13 lack two SMs each."),
     OPTIONAL, DIFFED, .label = "pattern of disabled SMs"},
    {NUMBER(disabled_sms, candidate_count,
            "Number of sets of SMs of the full die that give the same pattern. The number is not "
            "observable if SM ids were assigned after SMs were disabled."),
     MEASURED, .label = "candidates for which SMs"},
    {DERIVED(candidates, MEMBER_CANDIDATES,
             "The first of these sets, as SM ids of the full die, highest first.")},
};
static const struct object disabled_object =
    DEFINE(disabled_sms, disabled_members, "Disabled",
           "The object describes the SMs that this chip lacks, compared with the smallest "
           "regular die that explains the groups of the chip. Missing units that leave no trace "
           "in the groups are not included.");

static const struct member slow_members[] = {
    {SPECIAL(groups, slow_pair, groups, MEMBER_TWO_GROUPS,
             "The two groups. The lower number is first.")},
    {NUMBER(slow_pair, ratio,
            "Throughput of both groups at the same time, as a share of the sum of both alone.")},
    {NAME(slow_pair, cause, cause_words,
          "Cause of the loss. The cause is bandwidth if the pair is as slow with both windows "
          "within one reach.")},
};
static const struct object slow_object =
    DEFINE(slow_pair, slow_members, "GroupPairsSlow",
           "The object describes two groups that slow each other down.");

static const struct member pairs_members[] = {
    {NUMBER(group_pairs, measured, "Number of pairs that were measured.")},
    {NUMBER(group_pairs, worst_ratio,
            "Lowest ratio of all pairs: the throughput of two groups at the same time, divided by "
            "the sum of both alone."),
     MEASURED},
    {SPECIAL(worst, group_pairs, worst, MEMBER_TWO_GROUPS, "The pair with the worst ratio."),
     OPTIONAL},
    {NAME(group_pairs, share_tlb, finding_words, "Result of the test that two groups share a TLB."),
     .label = "share a TLB"},
    {NUMBER(group_pairs, slow_count,
            "Number of pairs that slow each other down by more than the noise."),
     MEASURED, .label = "slow pairs"},
    {LIST(slow, group_pairs, slow, listed, slow_object, "The first of the slow pairs."),
     .label = "slow pairs"},
};
static const struct object pairs_object =
    DEFINE(group_pairs, pairs_members, "GroupPairs",
           "The object describes pairs of groups that read at the same time, each in its own "
           "window. The two windows together exceed one reach.");

static const struct member topology_members[] = {
    {NUMBER(topology, level, "TLB level whose sharing defines the groups."), IN(GROUPS), DESIGN,
     DIFFED, .label = "level of the groups"},
    {LIST(groups, topology, groups, partition.group_count, group_object,
          "Groups of SMs, in the order of their lowest SM. An SM in no group does not exist, or "
          "could not be assigned."),
     FOR_PLANNER, EVIDENCE(topology, groups), .columns = "group_evidence", .element = "group %"},
    {NUMBER(topology, nominal_group_sms,
            "Number of SMs in a group of the full die, which is the size of the largest group."),
     IN(GROUPS), DESIGN, DIFFED, .uncounted = true, .label = "SMs of a group of the full die"},
    {NUMBER(topology, full_sm_count,
            "Number of SMs of the smallest regular die that explains the groups."),
     IN(GROUPS), EVIDENCE(topology, disabled), DESIGN, DIFFED, .label = "SMs of the full die"},
    {OBJECT(topology, disabled, disabled_object, "SMs of the full die that this chip lacks."),
     IN(GROUPS), .label = "disabled SMs"},
    {NUMBER(topology, confidence, "Least agreement of the votes on any SM."), IN(GROUPS), MEASURED,
     .uncounted = true, .max = 1},
    {NUMBER(topology, penalty_classes,
            "Number of classes of groups by the cost of a miss. The number is 1 if there is no "
            "clear gap."),
     IN(GROUP_PENALTIES), EVIDENCE(topology, penalty_classes), .class = CLASS_SPLIT,
     .label = "classes by a miss"},
    {NUMBER(topology, speed_classes, "Number of classes of groups by the throughput of one SM."),
     IN(GROUP_SPEEDS), EVIDENCE(topology, speed_classes), .class = CLASS_SPLIT,
     .label = "classes by speed"},
    {NAME(topology, speed_follows_sms, finding_words,
          "Result of the test that the throughput of a group alone is in proportion to its SMs. "
          "The result is unknown if all groups have one size."),
     IN(GROUP_SPEEDS), EVIDENCE(topology, speed_follows_sms), .label = "speed follows SMs"},
    {OBJECT(topology, pairs, pairs_object, "Pairs of groups that read at the same time."),
     IN(GROUP_PAIRS), EVIDENCE(topology, pairs), .label = "pairs of groups"},
    {HIDDEN(topology, partition, MEMBER_PARTITION), IN(GROUPS), EVIDENCE(topology, groups), DIFFED,
     .label = "SM groups"},
    {HIDDEN(topology, sm_miss_penalty_cycles, MEMBER_SM_PENALTIES), IN(GROUP_PENALTIES), MEASURED},
};
static const struct object topology_object =
    DEFINE(topology, topology_members, "Topology",
           "The object describes the groups of SMs that share translation structures.");

/* ---- throughput ---- */

static const struct member windows_members[] = {
    {NUMBER(fingerprint_windows, reach_bytes, "Bytes that one group reaches without a miss."),
     FOR_PLANNER, IN(GROUPS), DESIGN, AT_LEAST(fingerprint_windows, entry_bytes)},
    {NUMBER(fingerprint_windows, entry_bytes, "Alignment of windows."), FOR_PLANNER, IN(GROUPS),
     DESIGN},
    {NUMBER(fingerprint_windows, recommended_bytes,
            "Longest window for a base that is not aligned, which is the reach less one entry."),
     FOR_PLANNER, IN(GROUPS), DESIGN, DIFFED, AT_MOST(fingerprint_windows, reach_bytes),
     .label = "recommended window"},
};
static const struct object windows_object =
    DEFINE(fingerprint_windows, windows_members, "FingerprintWindows",
           "The object has the numbers from which windows are computed.");

/* A point of the curve, or of the curve of another kind of memory. */
#define CURVE_POINT_ROWS(in, how)                                                                  \
    {NUMBER(curve_point, region_bytes, "Length of the region."), FOR_PLANNER, KEY, POSITIVE},      \
        {NUMBER(curve_point, naive_gbps, "Throughput if every SM reads anywhere in the region."),  \
         FOR_PLANNER,                                                                              \
         in,                                                                                       \
         DIFFED,                                                                                   \
         EVIDENCE(curve_point, naive_gbps),                                                        \
         how},                                                                                     \
        {NUMBER(curve_point, by_group_gbps, "Throughput if each group reads in its own window."),  \
         FOR_PLANNER,                                                                              \
         in,                                                                                       \
         DIFFED,                                                                                   \
         EVIDENCE(curve_point, by_group_gbps),                                                     \
         how},                                                                                     \
        {NUMBER(curve_point, by_sm_gbps,                                                           \
                "Throughput of the control: the same windows, with SMs assigned regardless of "    \
                "their groups."),                                                                  \
         in, EVIDENCE(curve_point, by_sm_gbps), how},                                              \
    {                                                                                              \
        NUMBER(curve_point, windows, "Number of windows of by_group_gbps and by_sm_gbps."),        \
            FOR_PLANNER                                                                            \
    }
static const struct member curve_point_members[] = {CURVE_POINT_ROWS(IN(CURVE), MEASURED)};
static const struct object curve_point_object =
    DEFINE(curve_point, curve_point_members, "ThroughputCurve",
           "The object has the throughput of random reads of one region.");

static const struct member rate_point_members[] = {
    {NUMBER(curve_point, region_bytes, "Length of the region."), FOR_PLANNER, KEY, POSITIVE},
    {NUMBER(curve_point, naive_gbps, "Throughput if every SM reads anywhere in the region."),
     FOR_PLANNER, IN(RATES), DIFFED, EVIDENCE(curve_point, naive_gbps), MEASURED},
    {NUMBER(curve_point, by_group_gbps,
            "Throughput if each group reads in its own window. The number exists only at the "
            "largest region."),
     FOR_PLANNER, IN(RATES), DIFFED, EVIDENCE(curve_point, by_group_gbps), MEASURED},
};
static const struct object rate_point_object =
    DEFINE(curve_point, rate_point_members, "AccessRatePoint",
           "The object has the throughput of random accesses to one region.");

static const struct member rate_members[] = {
    {NAME(access_rate, access, access_words, "Kind of access."), FOR_PLANNER, KEY},
    {NUMBER(access_rate, transaction_bytes,
            "Bytes that one access moves. GB/s are accesses per second times this number."),
     FOR_PLANNER, KEY, POSITIVE},
    {NUMBER(access_rate, plateau_gbps, "Throughput within the reach of a group."), FOR_PLANNER,
     IN(RATES), EVIDENCE(access_rate, plateau_gbps), MEASURED, DIFFED},
    {LIST(points, access_rate, points, point_count, rate_point_object,
          "Regions out of reach, by ascending region_bytes."),
     FOR_PLANNER, .ordered = true, .columns = "point_evidence", .element = "region of % "},
};
static const struct object rate_object =
    DEFINE(access_rate, rate_members, "AccessRate",
           "The object has the throughput of random accesses of one kind by all SMs.");

static const struct member throughput_members[] = {
    {NUMBER(throughput, plateau_gbps, "Throughput of random reads of 128 bytes within the reach."),
     FOR_PLANNER, IN(CURVE), EVIDENCE(throughput, plateau_gbps), MEASURED, DIFFED},
    {NUMBER(throughput, whole_memory_gbps,
            "Throughput of naive access over the largest region that was probed."),
     FOR_PLANNER, IN(CURVE), EVIDENCE(throughput, whole_memory_gbps), MEASURED, DIFFED},
    {LIST(curve, throughput, curve, curve_count, curve_point_object,
          "Random reads of 128 bytes by ascending region_bytes."),
     FOR_PLANNER, IN(CURVE), .ordered = true, .columns = "curve_evidence",
     .element = "region of % "},
    {LIST(rates, throughput, rates, rate_count, rate_object,
          "Random accesses of other kinds than the reads of the curve, by access and "
          "transaction_bytes. The member is omitted if no kind was measured."),
     FOR_PLANNER, IN(RATES), OPTIONAL, .ordered = true, .element = "% of % bytes, ",
     .label = "random accesses of other kinds"},
};
static const struct object throughput_object =
    DEFINE(throughput, throughput_members, "Throughput",
           "The object has the throughput of random 128-byte reads by all SMs. The member rates "
           "has the throughput of random accesses of other kinds.");

/* ---- contiguity ---- */

static const struct member contiguity_members[] = {
    {NUMBER(fingerprint_contiguity, frame_bytes,
            "Aligned length of memory that must be one physical run for the lower cost of a miss."),
     FOR_PLANNER, IN(CONTIGUITY), EVIDENCE(fingerprint_contiguity, frame_bytes), MEASURED, DIFFED,
     POSITIVE},
    {NUMBER(fingerprint_contiguity, contiguous_miss_ns,
            "Time of the whole GPU for one miss in contiguous memory."),
     FOR_PLANNER, IN(CONTIGUITY), EVIDENCE(fingerprint_contiguity, contiguous_miss_ns), MEASURED,
     DIFFED, POSITIVE, .label = "miss of contiguous memory"},
    {NUMBER(fingerprint_contiguity, scattered_miss_ns,
            "Time of the whole GPU for one miss in scattered memory."),
     FOR_PLANNER, IN(CONTIGUITY), EVIDENCE(fingerprint_contiguity, scattered_miss_ns), MEASURED,
     DIFFED, POSITIVE, AT_LEAST(fingerprint_contiguity, contiguous_miss_ns),
     .label = "miss of scattered memory"},
};
static const struct object contiguity_object =
    DEFINE(fingerprint_contiguity, contiguity_members, "Contiguity",
           "The object has the cost of a miss out of reach, in contiguous memory and in "
           "scattered memory. Memory is contiguous if each aligned frame is one run of physical "
           "memory.");

/* ---- L2 ---- */

static const struct member l2_members[] = {
    {NUMBER(fingerprint_l2, sides,
            "Number of sides of the L2. The number is not observable (no-contrast) if an SM reads "
            "all lines equally fast."),
     FOR_PLANNER, IN(L2_SIDES), EVIDENCE(fingerprint_l2, sides), MEASURED, DIFFED, .min = 2,
     .max = 2, .label = "sides of the L2"},
    {NUMBER(fingerprint_l2, granule_bytes, "Aligned length of memory that is all on one side."),
     FOR_PLANNER, IN(L2_SIDES), EVIDENCE(fingerprint_l2, granule_bytes), MEASURED, DIFFED, POSITIVE,
     .label = "granule of an L2 side"},
    {NUMBER(fingerprint_l2, atomic_near_cycles,
            "Cycles of one atomic by one thread on the SM's own side, as the median of all SMs."),
     FOR_PLANNER, IN(L2_SIDES), EVIDENCE(fingerprint_l2, atomic_near_cycles), MEASURED, DIFFED,
     POSITIVE, .label = "near atomic"},
    {NUMBER(fingerprint_l2, atomic_far_cycles,
            "Cycles of one atomic by one thread on the other side, as the median of all SMs."),
     FOR_PLANNER, IN(L2_SIDES), EVIDENCE(fingerprint_l2, atomic_far_cycles), MEASURED, DIFFED,
     POSITIVE, ABOVE(fingerprint_l2, atomic_near_cycles), .label = "far atomic"},
    {SPECIAL(sms, fingerprint_l2, side_of_sm, MEMBER_PARTITION,
             "SM ids of each side. The side with the lowest id is first, and the member is omitted "
             "if sides is null."),
     FOR_PLANNER, IN(L2_SIDES), DIFFED, .label = "SMs of each L2 side"},
    {NUMBER(
         fingerprint_l2, locality_domains,
         "Number of locality domains that the driver reports. The reason is not-supported if the "
         "driver is older than CUDA 13.4, which has introduced them."),
     OPTIONAL, DESIGN, DIFFED, POSITIVE, .label = "locality domains"},
    {NUMBER(fingerprint_l2, locality_domain_sms,
            "Number of SMs of each locality domain, from the driver. Some SMs may belong to no "
            "domain."),
     OPTIONAL, DESIGN, DIFFED, POSITIVE, .label = "SMs of a locality domain"},
    {NAME(fingerprint_l2, sides_match_domains, finding_words,
          "Result of the test that there is one side for each locality domain, with at least its "
          "number of SMs. An L2 whose sides are not observable counts as one side. The member is "
          "omitted if either is unknown."),
     OPTIONAL, .label = "sides match the domains"},
};
static const struct object l2_object =
    DEFINE(fingerprint_l2, l2_members, "L2",
           "The object describes the two sides of the L2. A hash of the physical address of a "
           "line selects the side of the line. An SM of the other side waits longer for the "
           "line.");

/* ---- working sets ---- */

static const struct member working_set_members[] = {
    {NUMBER(working_set, transaction_bytes,
            "Bytes of one read: 128 (one line) or 512 (four adjacent lines)."),
     FOR_PLANNER, KEY, POSITIVE},
    {NUMBER(working_set, set_bytes, "Length of the set that all SMs read together."), FOR_PLANNER,
     KEY, POSITIVE},
    {NUMBER(working_set, same_gbps, "Throughput if every SM reads all of the set."), FOR_PLANNER,
     IN(WORKING_SETS), EVIDENCE(working_set, same_gbps), DIFFED, .label = "same set"},
    {NUMBER(working_set, own_gbps,
            "Throughput if each SM reads its own part, which is set_bytes divided by the number of "
            "SMs."),
     FOR_PLANNER, IN(WORKING_SETS), EVIDENCE(working_set, own_gbps), DIFFED, .label = "own parts"},
    {NUMBER(working_set, near_gbps,
            "Throughput if each SM reads the lines of the set on its side of the L2."),
     FOR_PLANNER, IN(WORKING_SETS), EVIDENCE(working_set, near_gbps), DIFFED,
     .label = "near granules"},
};
static const struct object working_set_object =
    DEFINE(working_set, working_set_members, "WorkingSet",
           "The object has the throughput of random reads of one set by all SMs, through all "
           "caches.");

/* ---- caches ---- */

static const struct member carveout_members[] = {
    {NUMBER(cache_carveout, shared_bytes, "Shared memory that all blocks of the SM request."),
     FOR_PLANNER, KEY},
    {NUMBER(cache_carveout, size_bytes, "Size of L1 beside this shared memory."), FOR_PLANNER,
     IN(CACHES)},
    {NUMBER(cache_carveout, fits_bytes,
            "Longest cycle of loads that L1 keeps without a miss beside this shared memory."),
     FOR_PLANNER, IN(CACHES)},
};
static const struct object carveout_object =
    DEFINE(cache_carveout, carveout_members, "CacheCarveout",
           "The object describes the L1 at one division of the array that the L1 and shared "
           "memory share.");

static const struct member cache_members[] = {
    {NAME(cache_facts, kind, cache_words, "Name of the cache."), FOR_PLANNER, KEY},
    {NUMBER(cache_facts, size_bytes,
            "Size of all sets, in the case of L1 beside 32 KiB of shared memory. The size is "
            "unknown if the sets are not equal or follow no known rule."),
     FOR_PLANNER, IN(CACHES), EVIDENCE(cache_facts, size_bytes), MEASURED, DIFFED},
    {NUMBER(cache_facts, fits_bytes, "Longest cycle from an aligned start without a miss."),
     FOR_PLANNER, IN(CACHES), EVIDENCE(cache_facts, fits_bytes), MEASURED, DIFFED},
    {NUMBER(cache_facts, line_bytes, "Length of a line, which has one tag."), IN(CACHES),
     EVIDENCE(cache_facts, line_bytes), MEASURED, DIFFED, POSITIVE},
    {NUMBER(cache_facts, sector_bytes, "Smallest part of a line that can be present alone."),
     IN(CACHES), EVIDENCE(cache_facts, sector_bytes), MEASURED, DIFFED, POSITIVE,
     AT_MOST(cache_facts, line_bytes)},
    {NUMBER(cache_facts, fill_bytes, "Bytes that one miss loads into the cache."), IN(CACHES),
     EVIDENCE(cache_facts, fill_bytes), MEASURED, DIFFED,
     .purpose =
         "The number explains why a chase by sectors, as in other benchmarks, misses in every "
         "second load only."},
    {NUMBER(cache_facts, sets, "Number of all sets."), IN(CACHES), EVIDENCE(cache_facts, sets),
     MEASURED, DIFFED},
    {NUMBER(cache_facts, ways, "Number of ways of every set, if all sets have the same number."),
     IN(CACHES), MEASURED, DIFFED},
    {NAME(cache_facts, replacement, replacement_words,
          "Result of the test that a cyclic walk always evicts the oldest line."),
     IN(CACHES), EVIDENCE(cache_facts, replacement), DIFFED},
    {NUMBER(cache_facts, trace,
            "Loads of the lines of one set, in order, lap after lap. H is a hit and M is a miss."),
     OPTIONAL},
    {NUMBER(cache_facts, latency_cycles, "Median cycles of a hit."), FOR_PLANNER, IN(CACHES),
     EVIDENCE(cache_facts, latency_cycles), MEASURED, DIFFED},
    {NUMBER(cache_facts, miss_latency_cycles, "Cycles of a load that the next level answers."),
     IN(CACHES), MEASURED, AT_LEAST(cache_facts, latency_cycles)},
    {NAME(cache_facts, same_as_l1, finding_words,
          "Result of the test that loads of this cache hit lines that loads of L1 brought."),
     IN(CACHES), EVIDENCE(cache_facts, same_as_l1), .label = "same as L1",
     .purpose =
         "The analysis takes the numbers of L1 for the read-only path if both are one cache."},
    {LIST(carveouts, cache_facts, carveouts, carveout_count, carveout_object,
          "Size by requested shared memory, ascending. The member is omitted if it was not "
          "measured."),
     FOR_PLANNER, OPTIONAL, .ordered = true, .element = "beside % "},
};
const struct object cache_object =
    DEFINE(cache_facts, cache_members, "Cache",
           "The object describes one data cache, measured with dependent loads of one thread.");

static const struct member latency_members[] = {
    {NUMBER(fingerprint_latency, p1_cycles, "Cycles of a load with its data in L1."), IN(LATENCY),
     EVIDENCE(fingerprint_latency, p1_cycles), MEASURED, DIFFED, .label = "P1"},
    {NUMBER(fingerprint_latency, p2_cycles,
            "Cycles of a load with its data in L2, if the first TLB level misses."),
     IN(LATENCY), EVIDENCE(fingerprint_latency, p2_cycles), MEASURED, DIFFED, .label = "P2"},
    {NUMBER(fingerprint_latency, p3_cycles,
            "Cycles of a load with its data in L2, if two TLB levels miss."),
     IN(LATENCY), EVIDENCE(fingerprint_latency, p3_cycles), MEASURED, DIFFED, .label = "P3"},
    {NUMBER(fingerprint_latency, p4_cycles,
            "Cycles of a load with its data in memory, if its translation is in the TLB."),
     FOR_PLANNER, IN(LATENCY), EVIDENCE(fingerprint_latency, p4_cycles), MEASURED, DIFFED,
     .label = "P4"},
    {NUMBER(fingerprint_latency, p5_cycles,
            "Cycles of a load with its data in memory, if two TLB levels miss."),
     IN(LATENCY), EVIDENCE(fingerprint_latency, p5_cycles), MEASURED, DIFFED, .label = "P5"},
    {NUMBER(fingerprint_latency, p6_cycles,
            "Cycles of P5 if the page belongs to another page table than the previous page."),
     IN(LATENCY), EVIDENCE(fingerprint_latency, p6_cycles), MEASURED, DIFFED, .label = "P6",
     .purpose = "The number reproduces P6 of Mei and Chu 2016, section 5.2."},
    {NUMBER(fingerprint_latency, near_cycles,
            "Cycles of the lower of two modes of P4, or of all of P4 if there is one mode."),
     IN(LATENCY), EVIDENCE(fingerprint_latency, near_cycles), MEASURED, DIFFED,
     .label = "near memory"},
    {NUMBER(fingerprint_latency, far_cycles, "Cycles of the higher of two modes of P4."),
     IN(LATENCY), MEASURED, DIFFED, ABOVE(fingerprint_latency, near_cycles), .label = "far memory"},
    {NUMBER(fingerprint_latency, tail_cycles, "Median cycles of the few loads beyond the modes."),
     FOR_PLANNER, IN(LATENCY), EVIDENCE(fingerprint_latency, tail_cycles), MEASURED,
     .label = "tail"},
    {NUMBER(fingerprint_latency, tail_share, "Share of the loads of P4 that are beyond the modes."),
     IN(LATENCY), MEASURED, .max = 1,
     .purpose = "Other benchmarks report one mean of all loads. The share explains the distance of "
                "the mean from both modes."},
};
const struct object latency_object =
    DEFINE(fingerprint_latency, latency_members, "Latency",
           "The object has the time of one load of one thread, by the location of the data and "
           "of the translation.");

/* ---- shared memory, clusters, parallelism ---- */

static const struct member shared_width_members[] = {
    {NUMBER(shared_width, width_bytes, "Bytes that one lane loads."), KEY, POSITIVE},
    {NUMBER(shared_width, latency_cycles,
            "Cycles of a load by adjacent lanes, in a chain of dependent loads."),
     IN(SHARED), EVIDENCE(shared_width, latency_cycles), MEASURED},
    {NUMBER(shared_width, conflict_cycles, "Cycles that each pass after the first adds."),
     IN(SHARED), EVIDENCE(shared_width, conflict_cycles), MEASURED},
    {NUMBER(shared_width, bytes_per_cycle, "Throughput of one SM with enough loads in flight."),
     IN(SHARED), EVIDENCE(shared_width, bytes_per_cycle), MEASURED},
    {NUMBER(shared_width, loads_enough,
            "Smallest number of loads of warps in flight that reaches 95 % of bytes_per_cycle."),
     IN(SHARED), EVIDENCE(shared_width, loads_enough), MEASURED},
    {NUMBER(shared_width, loads_needed,
            "Number of loads of warps in flight that keep all banks busy, by Little's law. The "
            "number is known if banks is known."),
     IN(SHARED)},
};
static const struct object shared_width_object =
    DEFINE(shared_width, shared_width_members, "SharedMemoryWidth",
           "The object describes loads of all lanes of a warp from shared memory.");

static const struct member shared_stride_members[] = {
    {NUMBER(shared_stride, width_bytes, "Bytes that one lane loads."), KEY, POSITIVE},
    {NUMBER(shared_stride, stride_bytes, "Distance between the lanes."), KEY, POSITIVE},
    {NUMBER(shared_stride, cycles, "Cycles of one load in a chain of dependent loads."),
     IN(SHARED)},
    {NUMBER(shared_stride, passes,
            "Number of passes that the banks explain. The number is known if banks is known."),
     IN(SHARED)},
};
static const struct object shared_stride_object =
    DEFINE(shared_stride, shared_stride_members, "SharedMemoryStride",
           "The object describes loads of one warp whose lanes load at a distance of "
           "stride_bytes.");

static const struct member shared_members[] = {
    {NUMBER(fingerprint_shared, sm_bytes, "Shared memory of an SM that the driver reports."),
     FOR_PLANNER, IN(SHARED), .label = "shared memory of an SM"},
    {NUMBER(fingerprint_shared, block_bytes,
            "Largest shared memory of one block that the driver reports."),
     FOR_PLANNER, IN(SHARED), .label = "most for a block"},
    {NUMBER(fingerprint_shared, banks, "Number of banks."), FOR_PLANNER, IN(SHARED),
     EVIDENCE(fingerprint_shared, banks), MEASURED, DIFFED, POSITIVE,
     .label = "banks of shared memory"},
    {NUMBER(fingerprint_shared, bank_bytes,
            "Length of the word that one bank returns in one pass."),
     FOR_PLANNER, IN(SHARED), EVIDENCE(fingerprint_shared, banks), MEASURED, DIFFED, POSITIVE,
     .label = "bytes of a bank"},
    {LIST(widths, fingerprint_shared, widths, width_count, shared_width_object,
          "Loads of 4, 8 and 16 bytes by each lane."),
     IN(SHARED), .ordered = true, .element = "loads of % ", .label = "loads from shared memory"},
    {LIST(strides, fingerprint_shared, strides, stride_count, shared_stride_object,
          "Loads of one warp, by width_bytes, then by stride_bytes."),
     LONG, IN(SHARED), .ordered = true},
};
static const struct object shared_object = DEFINE(
    fingerprint_shared, shared_members, "SharedMemory",
    "The object describes the shared memory of an SM. Consecutive words of bank_bytes bytes lie "
    "in consecutive banks. "
    "Lanes of a warp that load different words of one bank take one pass each.");

static const struct member cluster_size_members[] = {
    {NUMBER(cluster_size, sms, "Number of blocks of a cluster, one per SM."), FOR_PLANNER, KEY,
     .min = 2, .label = "SMs"},
    {NUMBER(cluster_size, clusters, "Number of clusters that run at the same time."), FOR_PLANNER,
     IN(CLUSTERS), EVIDENCE(cluster_size, clusters), MEASURED},
    {NUMBER(cluster_size, usable_sms, "Number of SMs that these clusters occupy."), FOR_PLANNER,
     IN(CLUSTERS), EVIDENCE(cluster_size, clusters), MEASURED, .label = "SMs used",
     .purpose =
         "The number shows the SMs that a cluster size leaves idle (docs/shared-memory.md)."},
    {NUMBER(cluster_size, latency_cycles,
            "Median cycles of a load from shared memory of another SM of the cluster."),
     IN(CLUSTERS), EVIDENCE(cluster_size, latency_cycles), MEASURED},
    {NUMBER(cluster_size, bytes_per_cycle,
            "Throughput of one SM while each SM reads from the next SM of its cluster."),
     IN(CLUSTERS), EVIDENCE(cluster_size, bytes_per_cycle), MEASURED},
};
static const struct object cluster_size_object =
    DEFINE(cluster_size, cluster_size_members, "ClustersSize",
           "The object describes clusters of one size.");

static const struct member clusters_members[] = {
    {NUMBER(fingerprint_clusters, largest,
            "Number of SMs of the largest cluster that can be launched. The number is not "
            "supported on a GPU without clusters."),
     FOR_PLANNER, IN(CLUSTERS), EVIDENCE(fingerprint_clusters, largest), MEASURED, DIFFED, .min = 2,
     .label = "SMs of the largest cluster"},
    {NUMBER(fingerprint_clusters, own_cycles,
            "Cycles of a load from the SM's own shared memory, with the same instruction."),
     IN(CLUSTERS), EVIDENCE(fingerprint_clusters, own_cycles), MEASURED,
     .label = "own shared memory"},
    {NUMBER(fingerprint_clusters, gpcs, "Number of sets of SMs from which clusters are formed."),
     IN(CLUSTERS), EVIDENCE(fingerprint_clusters, gpcs), MEASURED, DIFFED, .label = "GPCs"},
    {SPECIAL(sms, fingerprint_clusters, gpc_of_sm, MEMBER_PARTITION,
             "SM ids of each GPC. The member is omitted if gpcs is null."),
     IN(CLUSTERS), DIFFED, .label = "SMs of each GPC"},
    {LIST(sizes, fingerprint_clusters, sizes, size_count, cluster_size_object,
          "Clusters by ascending sms."),
     FOR_PLANNER, IN(CLUSTERS), .ordered = true, .element = "clusters of % ",
     .label = "sizes of clusters"},
};
static const struct object clusters_object =
    DEFINE(fingerprint_clusters, clusters_members, "Clusters",
           "The object describes thread block clusters, whose SMs load from each other's shared "
           "memory.");

static const struct member concurrency_members[] = {
    {NUMBER(concurrency_point, warps, "Warps on each SM."), KEY, POSITIVE},
    {NUMBER(concurrency_point, loads, "Loads in flight in each warp."), KEY, POSITIVE},
    {NUMBER(concurrency_point, gbps, "Throughput of all SMs."), IN(PARALLELISM)},
};
static const struct object concurrency_object =
    DEFINE(concurrency_point, concurrency_members, "ParallelismSurface",
           "The object has the throughput of random reads of 128 bytes by all SMs, for one "
           "number of warps and one number of loads.");

static const struct member sms_point_members[] = {
    {NUMBER(sms_point, sms, "Number of SMs that read. The SMs are spread over the groups."), KEY,
     POSITIVE, .label = "SMs"},
    {NUMBER(sms_point, gbps, "Throughput of these SMs."), IN(PARALLELISM)},
};
static const struct object sms_point_object =
    DEFINE(sms_point, sms_point_members, "ParallelismBySm",
           "The object has the throughput of random reads by some SMs with the most loads in "
           "flight.");

static const struct member parallelism_members[] = {
    {NUMBER(fingerprint_parallelism, plateau_gbps, "Highest throughput of the surface."),
     IN(PARALLELISM), EVIDENCE(fingerprint_parallelism, plateau_gbps), MEASURED},
    {NUMBER(
         fingerprint_parallelism, latency_ns,
         "Time of one load: the smallest number of loads in flight, divided by their throughput."),
     FOR_PLANNER, IN(PARALLELISM), EVIDENCE(fingerprint_parallelism, latency_ns), MEASURED},
    {NUMBER(fingerprint_parallelism, loads_enough,
            "Number of loads in flight in an SM from which all points of the surface reach 95 % of "
            "the plateau."),
     FOR_PLANNER, IN(PARALLELISM), EVIDENCE(fingerprint_parallelism, loads_enough), MEASURED,
     POSITIVE},
    {NUMBER(fingerprint_parallelism, loads_short,
            "Largest probed number of loads below loads_enough."),
     FOR_PLANNER, IN(PARALLELISM), EVIDENCE(fingerprint_parallelism, loads_enough)},
    {NUMBER(fingerprint_parallelism, sms_enough,
            "Smallest number of SMs that reaches 95 % of the plateau."),
     FOR_PLANNER, IN(PARALLELISM), EVIDENCE(fingerprint_parallelism, sms_enough), MEASURED,
     POSITIVE, .label = "SMs enough"},
    {NUMBER(fingerprint_parallelism, sms_short, "Largest probed number of SMs below sms_enough."),
     FOR_PLANNER, IN(PARALLELISM), EVIDENCE(fingerprint_parallelism, sms_enough),
     .label = "SMs short"},
    {LIST(surface, fingerprint_parallelism, surface, surface_count, concurrency_object,
          "Throughput by warps, then by loads."),
     LONG, IN(PARALLELISM), .ordered = true},
    {LIST(by_sms, fingerprint_parallelism, by_sms, by_sms_count, sms_point_object,
          "Throughput by ascending sms."),
     LONG, IN(PARALLELISM), .ordered = true, .label = "by SMs"},
};
static const struct object parallelism_object =
    DEFINE(fingerprint_parallelism, parallelism_members, "Parallelism",
           "The object has the number of loads and SMs that keep memory busy with random reads "
           "of 128 bytes. Each SM reads within the reach of its own TLB. A number is enough if "
           "it reaches 95 % of the plateau.");

/* ---- memory ---- */

static const struct member memory_point_members[] = {
    CURVE_POINT_ROWS(IN_MEMORY, .class = CLASS_NONE)};
static const struct object memory_point_object =
    DEFINE(curve_point, memory_point_members, "KindOfMemoryCurve",
           "The object has the throughput of random reads of one region.");

static const struct member row_members[] = {
    {NAME(row_rate, access, access_words, "Kind of access."), FOR_PLANNER, KEY},
    {NUMBER(row_rate, transaction_bytes, "Bytes of a row, which neighboring lanes access."),
     FOR_PLANNER, KEY, POSITIVE},
    {NUMBER(row_rate, plateau_gbps, "Throughput within the reach."), FOR_PLANNER, IN_MEMORY,
     EVIDENCE(row_rate, plateau_gbps), DIFFED},
    {NUMBER(row_rate, probed_gbps, "Throughput over probed_bytes."), FOR_PLANNER, IN_MEMORY,
     EVIDENCE(row_rate, probed_gbps), DIFFED},
};
static const struct object row_object =
    DEFINE(row_rate, row_members, "KindOfMemoryRows",
           "The object has the throughput of random accesses of rows of one length by all SMs.");

static const struct member memory_node_members[] = {
    {NUMBER(memory_node, node, "Number of the node in the kernel."), KEY},
    {NUMBER(
         memory_node, gbps,
         "Throughput of random reads of 128 bytes by all SMs, over one region within the reach."),
     IN_MEMORY, MEASURED,
     .purpose = "The number shows what memory on another node than the nearest costs a job that "
                "places its pages itself."},
};
static const struct object memory_node_object =
    DEFINE(memory_node, memory_node_members, "MemoryNode",
           "The object describes pages on one NUMA node of the host.");

static const struct member memory_members[] = {
    {NAME(memory_facts, kind, memory_words, "Kind of allocation of the memory."), FOR_PLANNER, KEY},
    {NUMBER(memory_facts, peer_uuid,
            "UUID of the GPU that has the memory. The member is null if kind is not peer."),
     FOR_PLANNER, OPTIONAL, KEY},
    {NUMBER(memory_facts, peer_memory_bytes,
            "Size of all memory of that GPU. The member is omitted if kind is not peer."),
     FOR_PLANNER, OPTIONAL, MEASURED},
    {NUMBER(memory_facts, probed_bytes,
            "Largest region that was read. If the kind of memory is not available, this number and "
            "every other number is null."),
     FOR_PLANNER, IN_MEMORY},
    {NUMBER(memory_facts, plateau_gbps, "Throughput of all SMs within the reach."), FOR_PLANNER,
     IN_MEMORY, EVIDENCE(memory_facts, plateau_gbps), MEASURED, DIFFED},
    {NUMBER(
         memory_facts, reach_bytes,
         "Largest probed region that all SMs read at 90 % of the plateau or more. If this region "
         "is the largest probed region, the number is not observable, or unknown if a limit of "
         "host memory allowed no larger region."),
     FOR_PLANNER, IN_MEMORY, EVIDENCE(memory_facts, reach_bytes), MEASURED},
    {NUMBER(memory_facts, onset_bytes, "Smallest probed region above reach_bytes."), IN_MEMORY,
     MEASURED, ABOVE(memory_facts, reach_bytes)},
    {NUMBER(memory_facts, windows_reach_bytes,
            "Largest probed region that a job in windows, one for each group, reads at 90 % of "
            "the plateau or more. The job ends with its slowest window."),
     FOR_PLANNER, IN_MEMORY, EVIDENCE(memory_facts, windows_reach_bytes), MEASURED},
    {NUMBER(memory_facts, windows_onset_bytes, "Smallest probed region above windows_reach_bytes."),
     IN_MEMORY, MEASURED, ABOVE(memory_facts, windows_reach_bytes)},
    {NUMBER(memory_facts, group_reach_bytes,
            "Largest probed region that one group alone reads at 90 % of its own plateau or more."),
     IN_MEMORY, EVIDENCE(memory_facts, group_reach_bytes), MEASURED},
    {NUMBER(memory_facts, group_onset_bytes, "Smallest probed region above group_reach_bytes."),
     IN_MEMORY, MEASURED, ABOVE(memory_facts, group_reach_bytes)},
    {NUMBER(memory_facts, entry_bytes, "Bytes that one entry translates."), IN_MEMORY,
     EVIDENCE(memory_facts, entry_bytes), MEASURED, DIFFED},
    {NUMBER(memory_facts, beyond_gbps,
            "Throughput of naive access over the largest probed region, if this region is out of "
            "reach."),
     IN_MEMORY, EVIDENCE(memory_facts, beyond_gbps), MEASURED},
    {NUMBER(memory_facts, written_factor,
            "Throughput of reads of 256 bytes over probed_bytes whose rows are also written to "
            "memory of the GPU, divided by the throughput without writes. The member is omitted if "
            "writes do not slow the reads."),
     FOR_PLANNER, OPTIONAL, IN_MEMORY, EVIDENCE(memory_facts, written_factor), MEASURED, POSITIVE,
     .max = 1, .label = "share of the speed with output"},
    {NUMBER(memory_facts, latency_cycles, "Cycles of one load within the reach."), FOR_PLANNER,
     IN_MEMORY, EVIDENCE(memory_facts, latency_cycles), MEASURED, DIFFED},
    {NUMBER(memory_facts, beyond_latency_cycles, "Cycles of one load out of reach."), IN_MEMORY,
     EVIDENCE(memory_facts, beyond_latency_cycles), MEASURED},
    {NUMBER(memory_facts, sms_to_fill, "Smallest number of SMs that reaches 95 % of the plateau."),
     FOR_PLANNER, IN_MEMORY, EVIDENCE(memory_facts, sms_to_fill), MEASURED, .label = "SMs to fill"},
    {NUMBER(memory_facts, write_gbps, "Throughput of writes of 32 bytes within the reach."),
     FOR_PLANNER, IN_MEMORY, EVIDENCE(memory_facts, write_gbps), MEASURED, DIFFED,
     .label = "writes"},
    {NUMBER(memory_facts, atomic_gbps, "Throughput of atomics of 32 bytes within the reach."),
     FOR_PLANNER, IN_MEMORY, EVIDENCE(memory_facts, atomic_gbps), MEASURED, DIFFED,
     .label = "atomics"},
    {LIST(curve, memory_facts, curve, curve_count, memory_point_object,
          "Random reads of 128 bytes by ascending region_bytes."),
     LONG, FOR_PLANNER, .ordered = true, .columns = "curve_evidence", .element = "region of % "},
    {LIST(rows, memory_facts, rows, row_count, row_object,
          "Random accesses of rows of other lengths than the curve's, by access and "
          "transaction_bytes. The member is omitted if no row was measured."),
     FOR_PLANNER, OPTIONAL, .ordered = true, .columns = "row_evidence", .element = "% of % bytes, ",
     .label = "random accesses of rows"},
    {LIST(nodes, memory_facts, nodes, node_count, memory_node_object,
          "Reads by NUMA node. The member is omitted unless kind is host-registered and the "
          "host has several nodes with CPUs."),
     OPTIONAL, .ordered = true, .element = "node % ", .label = "NUMA nodes"},
};
const struct object memory_object =
    DEFINE(memory_facts, memory_members, "KindOfMemory",
           "The object describes one kind of memory beside plain device memory. A number is for "
           "random reads of 128 bytes, unless its description names another access.");

/* ---- the whole ---- */

static const struct member conditions_members[] = {
    {NAME(fingerprint_conditions, verdict, verdict_words,
          "Verdict on the influence of other work on the measurement."),
     FOR_PLANNER},
    {NUMBER(fingerprint_conditions, arena,
            "Kind of the memory of the probes: alias, plain or simulated."),
     OPTIONAL},
    {NUMBER(fingerprint_conditions, range_bytes, "Virtual range that the probes could use."),
     FOR_PLANNER},
    {NUMBER(fingerprint_conditions, backing_bytes, "Device memory behind that range.")},
    {NUMBER(fingerprint_conditions, sm_clock_khz, "Clock of the SMs."), FOR_PLANNER},
    {NUMBER(fingerprint_conditions, other_processes, "Number of other processes on the GPU.")},
    {NUMBER(fingerprint_conditions, host_memory_bytes, "Size of all memory of the node."),
     FOR_PLANNER, OPTIONAL},
    {NUMBER(fingerprint_conditions, pcie_generation,
            "Generation of the PCIe link that the GPU and its slot support."),
     OPTIONAL, POSITIVE, .label = "PCIe generation supported"},
    {NUMBER(fingerprint_conditions, pcie_generation_used,
            "Highest generation of the PCIe link during the measurement."),
     OPTIONAL, POSITIVE, .label = "PCIe generation"},
    {NUMBER(fingerprint_conditions, pcie_lanes,
            "Number of lanes of the PCIe link that are in use."),
     OPTIONAL, POSITIVE, .label = "PCIe lanes"},
    {NUMBER(fingerprint_conditions, pcie_lanes_supported,
            "Number of lanes of the PCIe link that the GPU and its slot support."),
     OPTIONAL, POSITIVE, .label = "PCIe lanes supported"},
    {SPECIAL(notes, fingerprint_conditions, notes, MEMBER_NOTES,
             "One sentence for each property that could not be recorded, with the reason."),
     .count_offset = offsetof(struct fingerprint_conditions, note_count),
     .max_count = FINGERPRINT_MAX_NOTES},
};
static const struct object conditions_object =
    DEFINE(fingerprint_conditions, conditions_members, "FingerprintConditions",
           "The object has the conditions of the measurement.");

static const struct member source_members[] = {
    {NUMBER(fingerprint_source, id, "Id of the fingerprint of that measurement alone.")},
    {NAME(fingerprint_source, depth, depth_words, "Depth of that measurement.")},
    {NUMBER(fingerprint_source, taken_at, "Date of that measurement.")},
};
const struct object source_object = DEFINE(fingerprint_source, source_members, "KeptSource",
                                           "The object describes an earlier measurement.");

/* Documents of earlier releases lack these kinds. A fingerprint that is read and written again
 * keeps its id, so a document omits the kinds without a result. */
static bool is_later_kind_without_result(const void *element)
{
    const struct memory_facts *const m = element;

    return m->kind >= MEMORY_HOST_PAGEABLE && m->kind < MEMORY_PEER &&
           m->probed_bytes.known == MAYBE_UNKNOWN && m->probed_bytes.reason == REASON_NOT_MEASURED;
}

static const struct member fingerprint_members[] = {
    {NAME(fingerprint, depth, depth_words,
          "Greatest depth among the newest measurement and the measurements from which parts are "
          "kept."),
     FOR_PLANNER},
    {NUMBER(fingerprint, taken_at, "Date of the measurement."), FOR_PLANNER},
    {NUMBER(fingerprint, duration_ms,
            "Time of the whole measurement, including the creation of the context."),
     MEASURED},
    {NUMBER(fingerprint, probe_ms, "Time of the probes alone."), MEASURED},
    {NUMBER(fingerprint, device_memory_bytes,
            "Largest device memory that the probes held at one time.")},
    {DERIVED(tlb, MEMBER_OBJECT, "Translation of addresses."), FOR_PLANNER, .object = &tlb_object,
     .label = "TLB"},
    {OBJECT(fingerprint, topology, topology_object,
            "Groups of SMs that share translation structures."),
     FOR_PLANNER, .label = "SM groups"},
    {OBJECT(fingerprint, windows, windows_object, "The numbers from which windows are computed."),
     FOR_PLANNER, IN(GROUPS)},
    {OBJECT(fingerprint, throughput, throughput_object,
            "Throughput of random accesses by all SMs."),
     FOR_PLANNER, .label = "random reads of 128 bytes"},
    {OBJECT(fingerprint, contiguity, contiguity_object,
            "Cost of a miss by physical contiguity. The member is omitted if it was not measured."),
     FOR_PLANNER, IN(CONTIGUITY), OPTIONAL, .label = "physical contiguity"},
    {OBJECT(fingerprint, l2, l2_object,
            "Sides of the L2. The member is omitted if it was not measured."),
     FOR_PLANNER, OPTIONAL, .label = "L2"},
    {LIST(working_sets, fingerprint, working_sets, working_set_count, working_set_object,
          "Random reads of sets that caches may keep, by transaction_bytes, then by set_bytes. The "
          "member is omitted if it was not measured."),
     LONG, FOR_PLANNER, IN(WORKING_SETS), OPTIONAL, .ordered = true,
     .columns = "working_set_evidence", .element = "reads of % bytes of %, "},
    {LIST(caches, fingerprint, caches, cache_count, cache_object,
          "L1, the read-only path, the constant cache and L2, in this order. The member is omitted "
          "if it was not measured."),
     FOR_PLANNER, IN(CACHES), OPTIONAL, .ordered = true, .min_count = CACHE_KIND_COUNT,
     .element = "% cache, "},
    {OBJECT(fingerprint, latency, latency_object,
            "Latency of a load. The member is omitted if it was not measured."),
     FOR_PLANNER, IN(LATENCY), OPTIONAL},
    {OBJECT(fingerprint, shared, shared_object,
            "Shared memory. The member is omitted if it was not measured."),
     FOR_PLANNER, IN(SHARED), OPTIONAL, .label = "shared memory"},
    {OBJECT(fingerprint, clusters, clusters_object,
            "Thread block clusters. The member is omitted if it was not measured."),
     FOR_PLANNER, IN(CLUSTERS), OPTIONAL},
    {OBJECT(fingerprint, parallelism, parallelism_object,
            "Number of loads and SMs that keep memory busy. The member is omitted if it was not "
            "measured."),
     FOR_PLANNER, IN(PARALLELISM), OPTIONAL},
    {LIST(
         memory, fingerprint, memory, memory_count, memory_object,
         "Kinds of memory beside plain device memory, in the order of the names of kind, then the "
         "peers. The kinds from host-pageable to host-gathered are omitted if they were not tried. "
         "The member is omitted if no kind was measured."),
     FOR_PLANNER, OPTIONAL, .min_count = FINGERPRINT_LEAST_MEMORY,
     .omits = is_later_kind_without_result, .element = "% memory, ", .label = "other memory"},
    {OBJECT(fingerprint, conditions, conditions_object, "Conditions of the measurement."),
     FOR_PLANNER},
};
const struct object fingerprint_object =
    DEFINE(fingerprint, fingerprint_members, "Fingerprint",
           "The object has the results of the measurements of one GPU.");
