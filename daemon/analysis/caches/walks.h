/* walks.h: what the analyses of CACHE observations share: finding and asking for probes, telling
 * hits from misses, and which elements of a cycle miss. Pure. */
#ifndef REACH_ANALYSIS_CACHES_WALKS_H
#define REACH_ANALYSIS_CACHES_WALKS_H

#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

enum {
    WALKS_MAX_ASKS = 20,
    WALKS_MAX_ELEMENTS = 16384,
    WALKS_ELEMENT_BYTES = 32 /* the shortest sector there is on any chip that was described */
};

/* Probes that are missing, and the SMs that can work. */
struct cache_walks {
    const struct observation_set *set;
    uint32_t sm_count;
    uint16_t sm_ids[REACH_MAX_SMS];
    uint32_t ask_count;
    struct probe_spec asks[WALKS_MAX_ASKS];
    bool refused;        /* one cannot be run here: the range is too short */
    double clock_cycles; /* of reading the clock, in every timed load; 0 until walks_clock */
};

/* The answer to `spec`; NULL: it is among the asks now, or refused. The SMs of `spec` are filled
 * in: every point has an SM of its own as far as there are any. */
const struct observation *walks_find(struct cache_walks *w, struct probe_spec *spec);

/* Adds `repeats` points of n elements, as far as there is room. */
void walks_add_points(struct probe_spec *spec, uint64_t n, uint32_t repeats);

/* Loads past L1, scattered, without points. */
struct probe_spec walks_l2_spec(uint64_t stride_bytes, uint32_t samples);

/* Finds clock_cycles; false: the probe is among the asks. */
bool walks_clock(struct cache_walks *w);

/* The timed loads of point `p`, without the first lap if there are two: what the kernel itself
 * touched between the untimed laps and the timed ones is evicted in it. */
const uint32_t *walks_row(const struct observation *o, uint32_t p, uint32_t *out_count);

/* The next lower number of elements that a scattered walk covers evenly. With others, misses that
 * lie together, as the oldest lines do, are overlooked. */
uint64_t walks_evenly_covered(uint64_t elements);

/* When is a load a miss? In cycles of the loads of one path. */
struct hit_or_miss {
    double hit;       /* median of the loads that hit */
    double miss;      /* median of those that miss */
    double threshold; /* more is a miss */
    double cut;       /* a longer load was delayed and is no evidence */
    double margin;    /* 0..1, as in struct evidence */
};

/* From loads that hit, and loads most of which miss. False if the two cannot be distinguished. */
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
/* Adds the walks of another observation. */
void walks_add_votes(const struct observation *o, uint64_t n, const struct hit_or_miss *how,
                     struct walk_votes *out);

/* Does this element miss again and again? */
bool walks_misses(const struct walk_votes *v, uint32_t element);
/* Elements that do. */
uint32_t walks_missing(const struct walk_votes *v);

/* Does a cycle overflow the cache, next to one that fits for certain? */
enum overflow { OVERFLOW_NO = 0, OVERFLOW_UNSURE, OVERFLOW_YES };
enum overflow walks_overflow(const struct walk_votes *v, const struct walk_votes *fits);

#endif
