/* traces.h: fine-grained walks that show which pages of a cycle miss. The functions are pure.
 *
 * A trace is a CHASE observation whose points descend. The last point, the smallest footprint, is
 * its control: it fits the level. A CHASE returns every load's latency in order, so the page of
 * every load is known if whole laps of n pages are timed. This is the fine-grained P-chase of Mei
 * and Chu 2016, section 4.2. Each load is a vote: a hit, a miss, or nothing if it took far longer
 * than a miss. The weight of a page's votes follows from the control, in which every load hits.
 */
#pragma once

#include "observe/observe.h"

enum {
    TRACE_MAX_PAGES = 4096, /* most pages of a cycle that is classified page by page */
    TRACE_WORDS = TRACE_MAX_PAGES / 64,
    TRACE_MAX_ATTEMPTS = 6, /* most observations of one cycle; after that it stays uncertain */
    TRACE_MIN_LAPS = 2
};

/* One cycle to walk. */
struct trace_ask {
    uint64_t stride_bytes;
    uint64_t base_bytes;
    uint64_t pages;         /* > control_pages */
    uint64_t control_pages; /* number of pages that fit the level */
    uint32_t samples;       /* timed loads */
    uint32_t warm_laps;     /* untimed laps until all levels repeat themselves in every lap */
};

/* The result of all observations of one cycle. Bit i stands for page i. */
struct trace {
    uint32_t attempts; /* number of observations; 0 if there are none */
    uint32_t laps;     /* number of timed laps of all observations */
    uint32_t pages;
    uint32_t missed_pages; /* number of pages that certainly miss in every lap */
    uint32_t unsure_pages;
    uint64_t missed[TRACE_WORDS];
    uint64_t unsure[TRACE_WORDS];
    /* Pairs of votes of one page in two laps in a row, and the number of pairs that differ. */
    uint64_t pairs;
    uint64_t flips;
    double miss_share; /* share of misses among the votes */
    double margin;     /* margin of the least certain page among the certain ones: 0..1 */
    /* The share of quick votes among the votes of pages that miss in at least a fifth of their
     * laps. A vote is quick if its load is no slower than the quicker half of the control's hits.
     * Noise rarely makes a miss quick, and half of the true hits are quick. */
    double quick_share;
    /* share of the control's hits that look like misses; the highest of any observation */
    double false_miss_rate;
    double false_hit_rate;
};

/* Returns whether this CHASE is a trace. */
bool trace_is(const struct probe_spec *spec);

/* Reads all traces of this cycle (with exactly this control; `samples` does not matter).
 * `which->pages` must be at most TRACE_MAX_PAGES. */
void trace_read(const struct observation_set *set, const struct trace_ask *which,
                double penalty_cycles, struct trace *out);

/* Finds a trace of this cycle, and its point. Returns NULL if there is none. */
const struct observation *trace_find(const struct observation_set *set,
                                     const struct trace_ask *which, uint32_t *out_point);

/* Returns the middle between hit and miss in this observation, in cycles, from its control. */
double trace_threshold(const struct observation *o, double penalty_cycles);

/* Returns the number of laps that make a page's votes certain if this share of loads is
 * misjudged. */
uint32_t trace_laps_needed(double error_rate);

/* Makes the probe for asks[0] and the following asks with the same stride, base and control.
 * Returns the number of asks in it. Asks must be sorted by trace_sort. */
uint32_t trace_spec(const struct trace_ask *asks, uint32_t count, uint16_t sm,
                    struct probe_spec *out);
/* Groups asks with the same stride, base and control, longest cycle first. */
void trace_sort(struct trace_ask *asks, uint32_t count);

static inline bool trace_bit(const uint64_t *bits, uint32_t page)
{
    return bits[page / 64] >> (page % 64) & 1;
}

/* ---- steps: how the set of misses grows with the cycle, page by page (sets.h) ---- */

enum { STEPS_MAX_CYCLES = 320 /* most cycles of one level */ };

/* One cycle, and the pages of it that miss. */
struct cycle {
    uint64_t pages;
    struct trace trace;
};

struct steps {
    bool broken; /* the misses are impossible in a level that evicts its oldest entry */
    uint32_t count;
    uint32_t size[STEPS_MAX_CYCLES]; /* number of pages that joined the misses: ways + 1 */
    uint64_t first_at;               /* pages of the cycle at the first step */
};

/* Returns the number of pages that join the misses between two cycles that differ by one page.
 * Returns -1 if that is impossible: pages join without the new one, or a page leaves. */
int steps_joined(const struct cycle *before, const struct cycle *after);

/* Finds the steps of `count` cycles that follow each other page by page; the first must not
 * miss. */
void steps_find(const struct cycle *cycles, uint32_t count, struct steps *out);

/* Returns whether the first step is unlike all others. */
bool steps_first_is_special(const struct steps *steps);
/* Returns whether all steps but the first add the same number of pages. */
bool steps_others_are_equal(const struct steps *steps);
