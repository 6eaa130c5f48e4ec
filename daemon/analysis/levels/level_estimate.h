/* level_estimate.h: the state of one TLB level during its measurement. The functions are pure.
 *
 * levels.c fills in the results of the sweep and of the entry tests, and refine.c fills in onset
 * and saturation.
 */
#pragma once

#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

enum {
    LEVELS_MAX = FINGERPRINT_MAX_LEVELS,
    LEVELS_SWEEP_POINTS = 8,    /* fewest points of a sweep; other walks have fewer */
    LEVELS_ENTRY_SAMPLES = 512, /* timed loads per point of an entry test */
    LEVELS_MIN_STRIDE = 4096    /* the smallest page that any GPU translates, in bytes */
};

/* The pages between which a level overflows, counted at one stride. */
struct level_bracket {
    uint64_t stride_bytes;
    uint64_t last_fit_pages;   /* most probed pages that fit */
    uint64_t first_miss_pages; /* fewest probed pages with misses */
    uint64_t full_pages;       /* fewest probed pages with the highest share of misses */
};

/* A count of pages refers to the stride of its own group of members. */
struct level_estimate {
    size_t seen_by;             /* index of the sweep in the set; it never changes */
    struct level_bracket sweep; /* bracket in the sweep */
    double share;               /* share of loads that miss beyond saturation, in the sweep */
    double penalty_cycles;      /* cost of a miss, from the sweep and later from the entry test */

    /* Results of the entry tests. */
    bool entry_known;
    uint64_t entry_bytes;
    struct level_bracket at_entry; /* the bracket, counted at a stride of one entry */
    bool test_clean;               /* the reference of the last entry test fitted */
    /* share of missing loads in the last entry test, corrected for noise */
    double test_misses;
    double slower_hits_cycles; /* excess of hits in the last entry test over the first */
    double separation; /* lower share, of hits or misses, on the right side of the threshold */
    bool test_wanted;  /* the next entry test tests `wanted` */
    struct level_bracket wanted;

    /* Results of the refinement, at a stride of entry_bytes. 0 means unknown. */
    uint64_t lo_pages;     /* most pages that fit */
    uint64_t hi_pages;     /* fewest pages with misses */
    uint64_t sat_lo_pages; /* most pages of which some load hits */
    uint64_t sat_hi_pages; /* fewest pages of which every load misses */
    /* The number of times that sat_lo_pages and sat_hi_pages were both seen. sat_lo_pages counts if
     * it is above lo_pages. */
    uint32_t sat_votes;
    bool sat_refuted;            /* a footprint had hits in one walk and none in another */
    double onset_penalty_cycles; /* cost of the first misses; 0 if they are too few or too noisy */
    /* Number of observations that show onset_penalty_cycles, or penalty_cycles if it is 0; at least
     * up to the number that is required. */
    uint32_t penalty_votes;
    /* lo_pages and hi_pages are neighbors without contradiction, so lo_pages is the number of
     * entries. If false, the two only serve to choose other probes. */
    bool counted;
    bool non_lru; /* pages hit in one lap and miss in the next: not LRU, or disturbed */
    bool masked;  /* hits grew slower for no known reason: another level hides the sharing */
    bool merged;  /* a nearer level overflows within this step; both were measured together */
    /* Evidence of the fields above for the fingerprint (docs/methods.md). */
    struct evidence entry_evidence;
    struct evidence reach_evidence;
    struct evidence saturation_evidence;
    struct evidence onset_penalty_evidence;
    uint64_t undecided_pages; /* pages of a footprint to walk again, or 0 */
};

/* The number of pages of a footprint that fits for certain and is far beyond the nearer levels. */
static inline uint64_t level_reference_pages(uint64_t last_fit_pages)
{
    const uint64_t eighth = last_fit_pages / 8 > 1 ? last_fit_pages / 8 : 1;
    return last_fit_pages > eighth ? last_fit_pages - eighth : 1;
}

/* The number of pages that overflow every set for certain: a quarter more than `full_pages`. */
static inline uint64_t level_pages_beyond(uint64_t full_pages)
{
    return full_pages + full_pages / 4 + 1;
}
