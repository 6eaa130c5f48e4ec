/* topology.h: the SMs that share hardware, and the throughput of each group of SMs. members.c
 * describes the members; comments here describe members without a row. */
#pragma once

#include "base/maybe.h"
#include "fingerprint/evidence.h"
#include "types/identity.h"

enum {
    FINGERPRINT_MAX_DISABLED = 64,   /* largest number of SMs in a candidate */
    FINGERPRINT_MAX_CANDIDATES = 32, /* largest number of candidates that are listed */
    FINGERPRINT_MAX_SLOW_PAIRS = 32,
    FINGERPRINT_SIGNATURE_BYTES = 512,
    FINGERPRINT_NO_GROUP = 0xffff
};

/* The answer to a question, if the measurement examined it. */
enum finding { FINDING_UNKNOWN = 0, FINDING_YES, FINDING_NO };
const char *finding_name(enum finding f); /* "unknown", "yes", "no" */

/* The reason why two groups slow each other down. */
enum slow_cause { SLOW_UNKNOWN = 0, SLOW_BY_TLB, SLOW_BY_BANDWIDTH };
const char *slow_cause_name(enum slow_cause c); /* "unknown", "tlb", "bandwidth" */

/* The groups of SMs that share a resource. Groups are numbered by their lowest SM id. */
struct sm_partition {
    uint32_t group_count; /* 0 if no groups are known */
    /* group of each SM id; FINGERPRINT_NO_GROUP if there is no such SM, or its group is
     * uncertain */
    uint16_t group_of_sm[REACH_MAX_SMS];
};

struct sm_group {
    uint32_t sm_count;
    struct maybe_f64 miss_penalty_cycles;
    struct maybe_f64 random_read_gbps;
    struct maybe_f64 alone_gbps;
    struct maybe_f64 beyond_gbps;
    struct maybe_u32 penalty_class;
    struct maybe_u32 speed_class;
    struct group_evidence {
        struct evidence miss_penalty_cycles, random_read_gbps, alone_gbps, beyond_gbps;
    } evidence;
};

/* Two groups that read less together than alone, by more than the noise. */
struct slow_pair {
    uint16_t groups[2];
    double ratio;
    enum slow_cause cause;
};

/* Pairs of groups. Each group reads a window of its own, and both windows together are beyond one
 * reach. */
struct group_pairs {
    uint32_t measured; /* if 0, no other member is valid */
    struct maybe_f64 worst_ratio;
    uint16_t worst[2];
    enum finding share_tlb;
    uint32_t slow_count;
    uint32_t listed; /* number of elements of `slow` */
    struct slow_pair slow[FINGERPRINT_MAX_SLOW_PAIRS];
};

/* The SMs of the full die that this chip lacks, as far as the groups show them. Each number refers
 * to the smallest regular die that explains the groups. A regular loss, such as one group of every
 * cluster, is not visible. */
struct disabled_sms {
    struct maybe_u32 sm_count;
    struct maybe_u32 unit_sms;
    struct maybe_u32 lost_groups;
    char signature[FINGERPRINT_SIGNATURE_BYTES]; /* "" if not known */
    struct maybe_u32 candidate_count;
    uint32_t listed; /* number of candidates; candidates with later ids come first */
    /* each candidate has sm_count ids in rising order; the remaining slots are 0 */
    uint16_t candidates[FINGERPRINT_MAX_CANDIDATES][FINGERPRINT_MAX_DISABLED];
};

struct topology {
    struct maybe_u32 level;
    struct sm_partition partition; /* groups of SMs that share the level */
    struct sm_group groups[REACH_MAX_GROUPS];
    struct maybe_u32 nominal_group_sms;
    struct maybe_u32 full_sm_count;
    struct disabled_sms disabled;
    struct maybe_f64 confidence;
    struct maybe_f64 sm_miss_penalty_cycles[REACH_MAX_SMS]; /* indexed by SM id */
    struct maybe_u32 penalty_classes;
    struct maybe_u32 speed_classes;
    enum finding speed_follows_sms;
    struct group_pairs pairs;
    struct topology_evidence {
        struct evidence groups, disabled, penalty_classes, speed_classes, speed_follows_sms, pairs;
    } evidence;
};

enum { FINGERPRINT_MAP_HASH_BYTES = 20 }; /* "map", 16 hex digits and NUL */

/* Writes a short name for a group map, by which the chips of a fleet can be counted. Two maps have
 * the same name if the same SM ids share groups. The numbers of groups (below REACH_MAX_GROUPS),
 * sizes and levels may differ. An SM with FINGERPRINT_NO_GROUP counts as absent. The name is "" if
 * no groups are known. Returns `out`, of at least FINGERPRINT_MAP_HASH_BYTES. */
char *fingerprint_map_hash(const struct sm_partition *partition, char *out);
