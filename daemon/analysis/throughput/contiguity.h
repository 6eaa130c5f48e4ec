/* contiguity.h: finds the length of memory within which physical contiguity matters, from READ
 * observations with run_bytes. It also finds the cost of a miss in contiguous and in scattered
 * memory. The functions are pure.
 *
 * A TLB entry of an H200 translates 32 MiB with pages at any place. But a miss takes 1.87 times as
 * long if the pages are not one run of physical memory (docs/contiguity.md). So naive reads just
 * beyond the reach are repeated with a part of the region in runs. Runs are one granule long, of
 * the greatest possible length, and of lengths between. The search ends when two lengths that
 * differ by a factor of two have different prices: the longer one is the frame.
 */
#pragma once

#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

/* Prices are nanoseconds of the whole GPU per miss. A price is absent if there is no memory to lay
 * out (no-device-memory, or not-reported by a plain allocation). It is also absent if translation
 * limits reads in no region (no-contrast), or if repeats or methods disagree. */
struct contiguity_estimate {
    bool asks; /* a probe is missing; the result is then not final */
    struct probe_spec ask;
    struct fingerprint_contiguity found;
};

/* `reach_bytes` is the reach of the level that limits naive reads. Needs the naive curve in the
 * set. */
void contiguity_estimate(const struct observation_set *set, struct maybe_u64 reach_bytes,
                         struct contiguity_estimate *out);

/* Fills in out->contiguity, which is not measured if a probe is missing. */
void contiguity_derive(const struct observation_set *set, struct maybe_u64 reach_bytes,
                       struct fingerprint *out);
