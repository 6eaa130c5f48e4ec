/* part.h: names for the parts of a fingerprint (parts.h). */
#pragma once

#include "fingerprint/memory_facts.h"
#include "fingerprint/tlb.h"

/* The parts of each level of the TLB. */
enum level_part {
    LEVEL_PART_SIZE = 0, /* entries, entry, page, reach, onset, saturation, confidence */
    LEVEL_PART_PENALTY,  /* miss_penalty_cycles */
    LEVEL_PART_SHARING,  /* shared_by, groups */
    LEVEL_PART_SETS,     /* sets, ways, victim entries, replacement */
    LEVEL_PART_FILL,     /* fill, entry_pages, tag_bytes */
    LEVEL_PART_COUNT
};
enum fingerprint_part {
    PART_LEVELS = 0, /* part p of the level with index k is k * LEVEL_PART_COUNT + p */
    PART_BEYOND = FINGERPRINT_MAX_LEVELS * LEVEL_PART_COUNT,
    PART_PAGE_BYTES,
    PART_GROUPS,          /* SMs of each group, disabled SMs, windows */
    PART_GROUP_PENALTIES, /* penalties of groups and of SMs, and their classes */
    PART_GROUP_SPEEDS,    /* throughput of random reads of each group, and their classes */
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
    PART_MEMORY, /* element i of `memory` is part PART_MEMORY + i */
    PART_COUNT = PART_MEMORY + FINGERPRINT_MAX_MEMORY
};
