/* levels.h: TLB levels from footprint walks. Pure.
 *
 * Three kinds of CHASE observations are understood; what they ask is defined here, so that the
 * campaign that schedules them and the analysis that reads them agree:
 *
 *   sweep   LEVELS_SWEEP_POINTS points or more at one large stride. Each step of the median latency
 *           from one plateau to the next is a level that overflows (Karnagel 2017, section 3.1).
 *   entry   two points {reference, test}: the test is well beyond saturation. The smallest stride
 *           at which all of its loads miss is one entry long; at half of it, half of them do
 *           (Karnagel's X/2, X, 2X rule, figure 2, as a search)
 *   refine  a reference and up to three points between the most pages known to fit and the fewest
 *           known not to, at a stride of one entry: onset and saturation to the page.
 *
 * Every entry and refine observation carries its own reference point, a footprint that fits the
 * level: thresholds are relative to it, because two probes may be backed by different lines of
 * memory, at other distances from the SM.
 */
#ifndef REACH_ANALYSIS_LEVELS_LEVELS_H
#define REACH_ANALYSIS_LEVELS_LEVELS_H

#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

enum {
    LEVELS_MAX = FINGERPRINT_MAX_LEVELS,
    LEVELS_SWEEP_POINTS = 8,
    LEVELS_MIN_STRIDE = 4096,   /* no GPU translates smaller pages */
    LEVELS_SWEEP_SAMPLES = 256, /* timed loads a point */
    LEVELS_ENTRY_SAMPLES = 512
};

/* Where a level overflows, counted in pages of one stride. */
struct level_bracket {
    uint64_t stride_bytes;
    uint64_t last_fit_pages;   /* most that fit, of the points probed */
    uint64_t first_miss_pages; /* fewest with misses */
    uint64_t full_pages;       /* fewest with as many misses as it gets */
};

/* What is known of one level so far. Pages are counted at the stride that stands beside them. */
struct level_estimate {
    size_t seen_by; /* the sweep: its place in the set, which keeps it as the set grows */
    struct level_bracket sweep; /* as the sweep saw it */
    double share;               /* of loads that miss beyond saturation, in the sweep */
    double penalty_cycles;      /* of the step; from the entry test once that is there */

    /* From the entry tests. */
    bool entry_known;
    uint64_t entry_bytes;
    struct level_bracket at_entry; /* the bracket, at a stride of one entry */
    bool test_clean;               /* the last such test's reference fitted */
    double test_misses; /* share of the last such test's loads that missed, noise taken out */
    double slower_hits_cycles; /* of that reference, against the first such test\'s */
    double separation;         /* share of loads on the right side of the threshold, worse of two */
    bool test_wanted;          /* the search goes on with `wanted` */
    struct level_bracket wanted;

    /* From the refinement, at a stride of entry_bytes. 0: nothing known. */
    uint64_t lo_pages;     /* most known to fit */
    uint64_t hi_pages;     /* fewest known with misses */
    uint64_t sat_lo_pages; /* most known where some load still hits */
    uint64_t sat_hi_pages; /* fewest known where every load misses */
    uint32_t
        sat_votes; /* times that both of these were seen; the lower one counts if above lo_pages */
    bool sat_refuted; /* a footprint was seen to hit at one time and to miss wholly at another */
    double
        onset_penalty_cycles; /* of the first pages that miss; 0: too few of them, or too noisy */
    /* lo_pages and hi_pages are neighbors, and nothing contradicts them: the number of entries.
     * If this is false they are good enough to choose other probes by, and no more. */
    bool counted;
    bool non_lru; /* a page that hits in one lap misses in the next: not LRU, or disturbed */
    bool masked;  /* hits grew slower on the way to the entry than nearer levels explain: there is
                       one more, which hides who shares this level */
    bool merged;  /* a nearer level overflows within this step: neither is seen by itself */
    /* For the fingerprint (docs/methods.md); of what is known by the above. */
    struct evidence entry_evidence;
    struct evidence reach_evidence;
    struct evidence saturation_evidence;
    struct evidence onset_penalty_evidence;
    uint64_t undecided_pages; /* between the two: undecided; 0: none, or probed twice */
};

/* All levels that the observations show, nearest first. Writes at most LEVELS_MAX. */
uint32_t levels_estimate(const struct observation_set *set, struct level_estimate *out);

/* What a miss costs: by the first pages that miss or, where they are too few to tell, by the entry
 * test. Unknown where noise hides it, or where two levels overflow together. */
struct maybe_f64 levels_penalty(const struct level_estimate *level);
/* Its evidence, if it is known. */
struct evidence levels_penalty_evidence(const struct level_estimate *level);

/* The stride of the sweeps: the smallest power of two with which at most 8192 pages span the
 * range, and no less than the granule. */
uint64_t levels_sweep_stride(const struct gpu_limits *limits);

/* Of a bracket's clean pages: fits for certain, and is still far beyond the nearer levels. */
static inline uint64_t levels_reference_pages(uint64_t last_fit_pages)
{
    const uint64_t eighth = last_fit_pages / 8 > 1 ? last_fit_pages / 8 : 1;
    return last_fit_pages > eighth ? last_fit_pages - eighth : 1;
}

/* Of a bracket's full pages: a quarter more than it takes to overflow every set. */
static inline uint64_t levels_well_beyond(uint64_t full_pages)
{
    return full_pages + full_pages / 4 + 1;
}

/* The entry test of a bracket (level_estimate.wanted) on SM `sm`. False if it has no meaning
 * (too few pages) or is out of range. */
bool levels_entry_test(const struct level_bracket *bracket, const struct gpu_limits *limits,
                       uint16_t sm, struct probe_spec *out);

/* The next refinement of a level whose entry is known. False if it is as fine as it gets. */
bool levels_refine_test(const struct level_estimate *level, const struct gpu_limits *limits,
                        uint16_t sm, struct probe_spec *out);

/* Do the pages of this point of a CHASE observation fit, whose point 0 does, or do some miss? A
 * level's miss costs `penalty_cycles`. Outliers are distinguished from misses; if that is
 * impossible neither is true. Point 0 itself fits unless it shows misses of its own. */
bool levels_fit(const struct observation *o, uint32_t point, double penalty_cycles);
bool levels_miss(const struct observation *o, uint32_t point, double penalty_cycles);

/* The number of timed laps that decide about this many pages: three on a quiet chip. */
uint64_t levels_laps(const struct level_estimate *level, uint64_t pages);

/* Are kind, stride and points the same? */
bool levels_same_walk(const struct probe_spec *a, const struct probe_spec *b);
/* The first sweep like `spec` that other sweeps bear out, or NULL. Two sweeps that have footprints
 * in common must agree about each of these, by the median of one and the spread of the other; the
 * one that goes on where the other ends is walked over other lines of memory, at other distances,
 * which the smallest of these footprints tells.
 * One that none has footprints in common with stands for itself. `*asked` is how many like it there
 * are. Levels are read from sweeps that are borne out. */
const struct observation *levels_find_sweep(const struct observation_set *set,
                                            const struct probe_spec *spec, uint32_t *asked);

/* The first CHASE observation with this stride and these points, or NULL. */
const struct observation *levels_find_chase(const struct observation_set *set,
                                            const struct probe_spec *spec);

/* ---- onset and saturation of one level, to the page: refine_plan.c chooses which footprints to
 * walk next, refine.c derives what they show ---- */

enum { REFINE_MOST_LAPS = 64 };

#define REFINE_PAGE_ODDS     100.0 /* a page is beyond doubt at this many times the number of pages */
#define REFINE_MOST_CONFUSED 0.45

/* Fills what the refinements of this level say (lo_pages and all that follows). The entry must be
 * known. levels_refine_test (levels.h) says what to ask next. */
void refine_derive(const struct observation_set *set, struct level_estimate *level);

/* The reference of a level's refinements: a footprint that fits, in pages of its entry. */
uint64_t refine_reference(const struct level_estimate *level);
/* Walks the two footprints between which saturation lies once more; false if it is not known. */
bool refine_saturation_test(const struct level_estimate *level, const struct gpu_limits *limits,
                            uint16_t sm, struct probe_spec *out);
/* Are lo_pages and hi_pages there, and neighbors or nearly? */
bool refine_onset_is_fine(const struct level_estimate *level);
/* Is the saturation known to one page in 128? Probes that noise or others made useless leave it
 * wider. */
bool refine_saturation_is_fine(const struct level_estimate *level);

#endif
