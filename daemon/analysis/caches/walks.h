/* walks.h: functions for the analyses of CACHE observations. They find and request probes,
 * distinguish hits from misses, and find the elements of a cycle that miss. The functions are
 * pure. */
#pragma once

#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

enum {
    WALKS_MAX_ASKS = 20,
    WALKS_MAX_ELEMENTS = 16384,
    WALKS_ELEMENT_BYTES = 32 /* the shortest published sector of any chip */
};

/* Probes that are missing, and the SMs that can work. */
struct cache_walks {
    const struct observation_set *set;
    uint32_t sm_count;
    uint16_t sm_ids[REACH_MAX_SMS];
    uint32_t ask_count;
    struct probe_spec asks[WALKS_MAX_ASKS];
    bool refused;        /* a probe cannot run here, because the range is too short */
    double clock_cycles; /* cost of reading the clock in a timed load; 0 if not known */
};

/* Returns the observation of `spec`, or NULL if the probe was requested now or refused. Fills in
 * the SMs of `spec`. Every point gets an SM of its own while there are enough SMs. */
const struct observation *walks_find(struct cache_walks *w, struct probe_spec *spec);

/* Adds `repeats` points of n elements, or fewer if there is no more room. */
void walks_add_points(struct probe_spec *spec, uint64_t n, uint32_t repeats);

/* Makes a spec of scattered loads past L1, without points. */
struct probe_spec walks_l2_spec(uint64_t stride_bytes, uint32_t samples);

/* Finds clock_cycles. Returns false if the probe was requested. */
bool walks_clock(struct cache_walks *w);

/* Returns the timed loads of point `p`, without the first lap if there are two. In the first lap,
 * the kernel's own accesses between the untimed and the timed laps have evicted lines. */
const uint32_t *walks_row(const struct observation *o, uint32_t p, uint32_t *out_count);

/* Returns the highest number of elements, up to `elements`, that a scattered walk covers evenly.
 * Other numbers hide misses that lie together, like the oldest lines. */
uint64_t walks_evenly_covered(uint64_t elements);

/* The limits between hits and misses, in cycles of the loads of one path. */
struct hit_or_miss {
    double hit;       /* median of the loads that hit */
    double miss;      /* median of the loads that miss */
    double threshold; /* a longer load is a miss */
    double cut;       /* a longer load was delayed and is no evidence */
    double margin;    /* 0..1, as in struct evidence */
};

/* Derives the limits from loads that hit, and loads most of which miss. Returns false if the two
 * cannot be distinguished. */
bool walks_contrast(const uint32_t *hits, uint32_t hit_count, const uint32_t *misses,
                    uint32_t miss_count, struct hit_or_miss *out);

/* The votes of all points of n elements in an observation. */
struct walk_votes {
    uint32_t elements;
    uint32_t loads;
    uint32_t slow;                    /* loads that miss */
    uint16_t all[WALKS_MAX_ELEMENTS]; /* votes of each element */
    uint16_t missed[WALKS_MAX_ELEMENTS];
};
void walks_votes(const struct observation *o, uint64_t n, const struct hit_or_miss *how,
                 struct walk_votes *out);
/* Adds the votes of another observation. */
void walks_add_votes(const struct observation *o, uint64_t n, const struct hit_or_miss *how,
                     struct walk_votes *out);

/* Returns whether this element misses again and again. */
bool walks_misses(const struct walk_votes *v, uint32_t element);
/* Returns the number of elements that miss again and again. */
uint32_t walks_missing(const struct walk_votes *v);

/* Finds whether a cycle overflows the cache, by comparison with a cycle that fits for certain. */
enum overflow { OVERFLOW_NO = 0, OVERFLOW_UNSURE, OVERFLOW_YES };
enum overflow walks_overflow(const struct walk_votes *v, const struct walk_votes *fits);
