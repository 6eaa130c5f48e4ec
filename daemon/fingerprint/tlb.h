/* tlb.h: the levels of the TLB. members.c describes each member. */
#pragma once

#include "fingerprint/topology.h"

enum {
    FINGERPRINT_MAX_LEVELS = 6,
    FINGERPRINT_MAX_SET_RUNS = 8 /* largest number of different set sizes of one level */
};

enum shared_by { SHARED_UNKNOWN = 0, SHARED_SM, SHARED_GROUP, SHARED_GPU };
const char *shared_by_name(enum shared_by s); /* "unknown", "sm", "group", "gpu" */

/* LRU means that a cyclic walk always evicts the oldest entry, so a FIFO level is LRU too. */
enum replacement { REPLACEMENT_UNKNOWN = 0, REPLACEMENT_LRU, REPLACEMENT_NOT_LRU };
const char *replacement_name(enum replacement r); /* "unknown", "lru", "not-lru" */

/* The amount that one miss fills: a whole entry or a part of an entry. */
enum fill { FILL_UNKNOWN = 0, FILL_WHOLE, FILL_PARTS };
const char *fill_name(enum fill f); /* "unknown", "whole", "parts" */

/* The way in which a process allocates memory: with the virtual memory API, as a plain allocation,
 * or as managed memory. */
enum allocation { ALLOCATION_VIRTUAL = 0, ALLOCATION_PLAIN, ALLOCATION_MANAGED, ALLOCATION_COUNT };

/* The sets of one level that have the same number of ways. */
struct set_run {
    uint32_t ways;
    uint32_t sets;
};

struct tlb_level {
    uint32_t level;
    struct maybe_u32 entries;
    struct maybe_u64 entry_bytes;
    struct maybe_u64 page_bytes;
    struct maybe_u64 reach_bytes;
    struct maybe_u64 onset_bytes;
    struct maybe_u64 saturation_bytes;
    struct maybe_u32 sets;
    struct maybe_u32 ways;
    uint32_t run_count; /* 0 if not known */
    struct set_run runs[FINGERPRINT_MAX_SET_RUNS];
    struct maybe_u32 victim_entries;
    enum replacement replacement;
    enum fill fill;
    struct maybe_u32 entry_pages;
    struct maybe_u64 tag_bytes;
    struct maybe_f64 miss_penalty_cycles;
    enum shared_by shared_by;
    struct sm_partition sharing; /* known if shared_by is SHARED_GROUP */
    struct maybe_f64 confidence;
    struct level_evidence {
        struct evidence entry_bytes, reach_bytes, saturation_bytes, miss_penalty_cycles, shared_by,
            sets, replacement, fill, entry_pages;
    } evidence;
};
