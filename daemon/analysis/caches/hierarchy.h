/* hierarchy.h: finds the data caches and the latency of memory, from CACHE observations. The
 * functions are pure.
 *
 * One thread walks a cycle of elements again and again and times every load (Mei and Chu 2016,
 * section 4.2). A private cache is found step by step. Each step requests the probes that it needs,
 * and ends with "unknown" and a reason if the result is ambiguous:
 *
 *   sweep     footprints of 512 bytes to 512 KiB show whether there is a cache, and the cycles of
 *             hits and misses
 *   sector    if words are walked in order and nothing is cached, the distance of the misses is one
 *             sector
 *   size      a bisection finds the longest cycle of sectors, from an aligned start, in which none
 *             misses again and again
 *   line      in a cycle of one sector more, the sectors that miss share a set. If they are
 *             neighbors, either they are one line, or a block of lines chooses the same set. Only
 *             in the first case does a cycle with one sector of each overflow at the same
 *             footprint. Words spaced wider and wider confirm it: beyond a line, the few lines that
 *             are walked fit
 *   sets      cycles of lines get longer by one line each. In a set of w ways w + 1 lines miss. The
 *             sets are known if the last set overflows where all others predict it
 *   policy    in a set with one line too many, LRU always misses; other policies sometimes hit
 *
 * The L2 is too large for these steps. Its sizes come from footprints that all SMs have loaded. Its
 * latencies are measured after a sweep of other memory, which leaves nothing of the footprint in
 * the L2.
 */
#pragma once

#include "analysis/caches/walks.h"

struct hierarchy_estimate {
    struct cache_facts caches[CACHE_KIND_COUNT];
    struct fingerprint_latency latency;
    struct cache_walks walks; /* walks.ask_count > 0 if probes must run first */
};

void hierarchy_estimate(const struct observation_set *set, struct hierarchy_estimate *out);

/* Writes the result into a fingerprint whose levels are known, unless probes were requested. */
void hierarchy_derive(const struct observation_set *set, struct fingerprint *out);

/* private_cache finds the L1, the read-only or the constant cache. `l1` is the known L1, because
 * the read-only path may use the same cache. l2_and_memory finds the L2 and the memory beyond
 * it. */
void private_cache(struct cache_walks *w, enum cache_kind kind, const struct cache_facts *l1,
                   struct cache_facts *out);
void l2_and_memory(struct cache_walks *w, struct cache_facts *l2, struct fingerprint_latency *out);

/* Both functions mark all numbers as unknown. */
void cache_unknown(struct cache_facts *c, enum cache_kind kind, enum reason reason);
void latency_unknown(struct fingerprint_latency *l, enum reason reason);
