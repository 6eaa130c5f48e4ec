/* level_estimate.h: the state of one TLB level during its measurement. The functions are pure.
 *
 * levels.c fills in the results of the sweep and the entry tests, refine.c onset and saturation.
 */
#ifndef REACH_ANALYSIS_LEVELS_LEVEL_ESTIMATE_H
#define REACH_ANALYSIS_LEVELS_LEVEL_ESTIMATE_H

#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

enum {
    LEVELS_MAX = FINGERPRINT_MAX_LEVELS,
    LEVELS_SWEEP_POINTS = 8,    /* fewest points of a sweep; other walks have fewer */
    LEVELS_ENTRY_SAMPLES = 512, /* timed loads per point of an entry test */
    LEVELS_MIN_STRIDE = 4096    /* no GPU translates smaller pages */
};

/* The pages between which a level overflows, counted at one stride. */
struct level_bracket {
    uint64_t stride_bytes;
    uint64_t last_fit_pages;   /* the most probed pages that fit */
    uint64_t first_miss_pages; /* the fewest with misses */
    uint64_t full_pages;       /* the fewest with the highest share of misses */
};

/* A count of pages refers to the stride of its own group of members. */
struct level_estimate {
    size_t seen_by;             /* index of the sweep in the set; it never changes */
    struct level_bracket sweep; /* bracket in the sweep */
    double share;               /* share of loads that miss beyond saturation, in the sweep */
    double penalty_cycles;      /* the step in the sweep, later in the entry test */

    /* Results of the entry tests. */
    bool entry_known;
    uint64_t entry_bytes;
    struct level_bracket at_entry; /* the bracket, at a stride of one entry */
    bool test_clean;               /* the reference of the last entry test fitted */
    double test_misses;        /* share of missing loads in the last entry test, without noise */
    double slower_hits_cycles; /* cycles of that reference above the reference of the first */
    double separation; /* share of loads on the right side of the threshold, the lower of two */
    bool test_wanted;  /* the next entry test tests `wanted` */
    struct level_bracket wanted;

    /* Results of the refinement, at a stride of entry_bytes. 0 means unknown. */
    uint64_t lo_pages;     /* the most that fit */
    uint64_t hi_pages;     /* the fewest with misses */
    uint64_t sat_lo_pages; /* the most pages of which some load hits */
    uint64_t sat_hi_pages; /* the fewest pages of which every load misses */
    /* The number of times that sat_lo_pages and sat_hi_pages were both seen. sat_lo_pages counts if
     * it is above lo_pages. */
    uint32_t sat_votes;
    bool sat_refuted;            /* one footprint hit at one time and missed wholly at another */
    double onset_penalty_cycles; /* cost of the first misses; 0 if too few or too noisy */
    /* lo_pages and hi_pages are neighbors without contradiction, so they are the number of entries.
     * If false, they serve only to choose other probes. */
    bool counted;
    bool non_lru; /* a page that hits in one lap misses in the next: not LRU, or disturbed */
    bool masked;  /* hits grew slower than nearer levels explain: another level hides the sharing */
    bool merged;  /* a nearer level overflows within this step, so neither is seen alone */
    /* Evidence of the fields above for the fingerprint (docs/methods.md). */
    struct evidence entry_evidence;
    struct evidence reach_evidence;
    struct evidence saturation_evidence;
    struct evidence onset_penalty_evidence;
    uint64_t undecided_pages; /* a footprint to walk again; 0 if there is none */
};

/* A footprint that fits for certain, and is still far beyond the nearer levels. Derived from the
 * last pages that fit. */
static inline uint64_t level_reference_pages(uint64_t last_fit_pages)
{
    const uint64_t eighth = last_fit_pages / 8 > 1 ? last_fit_pages / 8 : 1;
    return last_fit_pages > eighth ? last_fit_pages - eighth : 1;
}

/* The full pages and a quarter more, which overflow every set. */
static inline uint64_t level_pages_beyond(uint64_t full_pages)
{
    return full_pages + full_pages / 4 + 1;
}

#endif
