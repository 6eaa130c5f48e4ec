/* sectored.h: finds the number of allocation pages of one entry, and whether a miss fills all of
 * it. The functions are pure.
 *
 * Walks at three strides show both (Karnagel 2017, figure 2, read load by load):
 *
 *   at      E, the shortest stride at which every load of an overflowing walk misses
 *   below   one allocation page, E / r: if a miss fills the whole entry, one of r pages misses and
 *           the others hit
 *   above   2 E: if an entry is filled in parts of E, half of the parts fit, and the parts of one
 *           entry leave together. Half of the parts also fit if sets are chosen by the low bits of
 *           the page number, but then neighbors are in different sets
 */
#pragma once

#include "analysis/structure/traces.h"
#include "analysis/sharing/window_level.h"
#include "fingerprint/fingerprint.h"

enum { SECTORED_MAX_ASKS = 4 };

struct sectored_estimate {
    enum fill fill;
    struct maybe_u32 entry_pages;  /* allocation pages that one entry covers */
    struct maybe_u64 tag_bytes;    /* length of an entry that is filled in parts */
    struct evidence fill_evidence; /* evidence of the known results */
    struct evidence pages_evidence;
    uint32_t ask_count; /* number of walks to make first */
    struct trace_ask asks[SECTORED_MAX_ASKS];
};

/* Estimates level k of `s`, by its walks and traces. The result is final if no walk is
 * requested. */
void sectored_estimate(const struct observation_set *set, const struct structure *s, uint32_t k,
                       struct sectored_estimate *out);
