/* link.h: compares the PCIe link of a GPU in use with the link at best, and with the link of an
 * earlier measurement. Numbers that are not known are not compared. The functions are pure. */
#pragma once

#include "fingerprint/fingerprint.h"

enum { LINK_TEXT_BYTES = 128 };

/* Returns whether a number is lower than a better one. Both must be known. */
static inline bool link_is_lower(struct maybe_u32 number, struct maybe_u32 better)
{
    return IS_KNOWN(number) && IS_KNOWN(better) && number.v < better.v;
}

/* Return whether the generation in use, or the number of lanes in use, is lower than the supported
 * one. */
static inline bool link_has_low_generation(const struct fingerprint_conditions *c)
{
    return link_is_lower(c->pcie_generation_used, c->pcie_generation);
}

static inline bool link_has_few_lanes(const struct fingerprint_conditions *c)
{
    return link_is_lower(c->pcie_lanes, c->pcie_lanes_supported);
}

/* Returns whether the link has a lower generation or fewer lanes than the GPU and its slot support.
 * Writes a sentence to out[LINK_TEXT_BYTES], or "" if the link is not slower. */
bool link_is_slow(const struct fingerprint_conditions *c, char *out);

/* Returns whether the link has a lower generation or fewer lanes than before. Writes a sentence
 * like link_is_slow. */
bool link_has_slowed(const struct fingerprint_conditions *before,
                     const struct fingerprint_conditions *now, char *out);
