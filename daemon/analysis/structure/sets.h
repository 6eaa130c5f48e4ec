/* sets.h: finds sets, ways and replacement of a TLB level from traces (traces.h). The functions are
 * pure.
 *
 * Consider a cyclic walk of n pages over a level that always evicts the oldest entry. If a set has
 * more pages than ways, all of its pages miss in every lap; every other page always hits. So while
 * n grows page by page, the change in the misses at page n - 1 shows which set the page belongs to:
 *
 *   nothing                its set still has room
 *   page n - 1 joins       its set overflowed before
 *   w + 1 pages join       its set, of w ways, overflows just now
 *
 *   pages | 64   65   66   67   68  ..  72       Mei and Chu 2016, section 4.4: one set of 17 ways
 *   join  |  -    -   18    9    9  ..   9       and six of 8
 *
 * No assumption is made about the set of a page. A level with an arbitrary victim shows other
 * misses in every lap. A cyclic walk cannot distinguish LRU from FIFO.
 *
 * A victim buffer of v entries behind sets of w ways takes the first v overflows. So v + 1 sets
 * begin to miss together, and (v + 1) * (w + 1) pages join at first. One wider set looks the same
 * from one start; from another start it is not the first to overflow. So if the first step is
 * unlike the others, three more starts are walked.
 */
#pragma once

#include "analysis/structure/traces.h"
#include "analysis/sharing/window_level.h"
#include "fingerprint/fingerprint.h"

enum { SETS_MAX_ASKS = 48 };

struct sets_estimate {
    enum replacement replacement;
    struct maybe_u32 sets;
    struct maybe_u32 ways; /* known if all sets have the same number of ways */
    struct maybe_u32 victim_entries;
    uint32_t run_count; /* number of different set sizes; 0 if they are not known */
    struct set_run runs[FINGERPRINT_MAX_SET_RUNS];
    struct evidence evidence; /* evidence of sets, ways and victims */
    struct evidence replacement_evidence;
    uint32_t ask_count; /* number of cycles to walk first; until then nothing is known */
    struct trace_ask asks[SETS_MAX_ASKS];
};

/* Pages of the control of a level's traces, which fit for certain. */
uint64_t sets_control_pages(const struct level_estimate *level);

/* Estimates every level of `s`. `out` has LEVELS_MAX elements. A level waits for the levels nearer
 * to the SM, because their hits would hide its own. */
void sets_estimate_all(const struct observation_set *set, const struct structure *s,
                       struct sets_estimate *out);
