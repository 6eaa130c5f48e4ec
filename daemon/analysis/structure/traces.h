/* traces.h: fine-grained walks: which pages of a cycle miss. Pure.
 *
 * A trace is a CHASE observation whose points descend. The last point, the smallest footprint, is
 * its control: it fits the level. A CHASE returns every load's latency in order, so where whole
 * laps of n pages are timed the page of every load is known (the fine-grained P-chase of Mei and
 * Chu 2016, section 4.2). Each load is a vote: a hit, a miss, or nothing where it took far longer
 * than a miss does. What a page's votes are worth follows from the control, where every load hits.
 */
#ifndef REACH_ANALYSIS_STRUCTURE_TRACES_H
#define REACH_ANALYSIS_STRUCTURE_TRACES_H

#include "observe/observe.h"

enum {
    TRACE_MAX_PAGES = 4096, /* of a cycle that is classified page by page */
    TRACE_WORDS = TRACE_MAX_PAGES / 64,
    TRACE_MAX_ATTEMPTS = 6, /* observations of one cycle; then it stays as unsure as it is */
    TRACE_MIN_LAPS = 2
};

/* One cycle to walk: the question. */
struct trace_ask {
    uint64_t stride_bytes;
    uint64_t base_bytes;
    uint64_t pages;         /* > control_pages */
    uint64_t control_pages; /* fit the level */
    uint32_t samples;       /* timed loads */
    uint32_t warm_laps;     /* until the levels on the way do the same in every lap */
};

/* The result of all observations of one cycle. Bit i stands for page i. */
struct trace {
    uint32_t attempts; /* observations; 0: there are none */
    uint32_t laps;     /* timed, of all of them */
    uint32_t pages;
    uint32_t missed_pages; /* pages that miss in every lap, for certain */
    uint32_t unsure_pages;
    uint64_t missed[TRACE_WORDS];
    uint64_t unsure[TRACE_WORDS];
    /* Pairs of votes of one page in two laps in a row, and of these the ones that differ. */
    uint64_t pairs;
    uint64_t flips;
    double miss_share; /* of the votes */
    double margin;     /* of the page that its votes make least sure of those they do: 0..1 */
    /* Of the votes of pages that miss in a fifth of their laps or more: those as quick as the
     * quicker half of the control's hits. A miss that the noise made quick is hardly ever among
     * them, a true hit every other time. */
    double quick_share;
    double false_miss_rate; /* of loads that hit, from the control; the worst observation's */
    double false_hit_rate;
};

/* Is this CHASE a trace? */
bool trace_is(const struct probe_spec *spec);

/* Reads all traces of this cycle (with just this control; `samples` does not matter).
 * `which->pages` must be at most TRACE_MAX_PAGES. */
void trace_read(const struct observation_set *set, const struct trace_ask *which,
                double penalty_cycles, struct trace *out);

/* A trace of this cycle, and its point. NULL if there is none. */
const struct observation *trace_find(const struct observation_set *set,
                                     const struct trace_ask *which, uint32_t *out_point);

/* The middle between hit and miss in this observation, from its control; in cycles. */
double trace_threshold(const struct observation *o, double penalty_cycles);

/* Laps that make a page's votes certain if this share of loads is misjudged. */
uint32_t trace_laps_needed(double error_rate);

/* The probe for asks[first] and those after it that go with it (same stride, base and control);
 * returns how many it holds. Asks must be sorted by trace_sort. */
uint32_t trace_spec(const struct trace_ask *asks, uint32_t count, uint16_t sm,
                    struct probe_spec *out);
/* Groups what goes together, longest cycle first. */
void trace_sort(struct trace_ask *asks, uint32_t count);

static inline bool trace_bit(const uint64_t *bits, uint32_t page)
{
    return bits[page / 64] >> (page % 64) & 1;
}

/* ---- steps: how the set of misses grows with the cycle, page by page (sets.h) ---- */

enum { STEPS_MAX_CYCLES = 320 /* of one level */ };

/* One cycle, and which of its pages miss. */
struct cycle {
    uint64_t pages;
    struct trace trace;
};

struct steps {
    bool broken; /* something that no level can do that evicts the oldest */
    uint32_t count;
    uint32_t size[STEPS_MAX_CYCLES]; /* pages that joined the misses: ways + 1 */
    uint64_t first_at;               /* pages of the cycle at the first */
};

/* How many pages join the misses between two cycles that differ by one page; -1 if that is
 * impossible: pages join without the new one, or one leaves. */
int steps_joined(const struct cycle *before, const struct cycle *after);

/* The steps of `count` cycles that follow each other page by page; the first must not miss. */
void steps_find(const struct cycle *cycles, uint32_t count, struct steps *out);

/* Is the first step unlike all others? */
bool steps_first_is_special(const struct steps *steps);
/* Do all steps but the first add the same number of pages? */
bool steps_others_are_equal(const struct steps *steps);

#endif
