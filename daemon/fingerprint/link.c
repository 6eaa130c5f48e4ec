/* link.c: see link.h. */
#include "fingerprint/link.h"

#include <stdio.h>

/* Writes "generation 5 x16", or only the part that is known of both links. */
static void describe(char *out, size_t size, const struct maybe_u32 *generation,
                     const struct maybe_u32 *lanes, bool both_generations, bool both_lanes)
{
    const int n = both_generations ? snprintf(out, size, "generation %u", generation->v) : 0;

    if (both_lanes)
        (void)snprintf(out + n, size - (size_t)n, "%sx%u", n > 0 ? " " : "", lanes->v);
}

/* Compares two links. `relation` stands between them in the sentence. */
static bool compare(const struct maybe_u32 *generation, const struct maybe_u32 *lanes,
                    const struct maybe_u32 *better_generation, const struct maybe_u32 *better_lanes,
                    const char *relation, char *out)
{
    const bool generations = IS_KNOWN(*generation) && IS_KNOWN(*better_generation);
    const bool widths = IS_KNOWN(*lanes) && IS_KNOWN(*better_lanes);
    char link[LINK_TEXT_BYTES / 3] = "", better[LINK_TEXT_BYTES / 3] = "";

    out[0] = '\0';
    if (!link_is_lower(*generation, *better_generation) && !link_is_lower(*lanes, *better_lanes))
        return false;
    describe(link, sizeof link, generation, lanes, generations, widths);
    describe(better, sizeof better, better_generation, better_lanes, generations, widths);
    (void)snprintf(out, LINK_TEXT_BYTES, "the PCIe link is %s; %s %s", link, relation, better);
    return true;
}

bool link_is_slow(const struct fingerprint_conditions *c, char *out)
{
    return compare(&c->pcie_generation_used, &c->pcie_lanes, &c->pcie_generation,
                   &c->pcie_lanes_supported, "the GPU and its slot support", out);
}

bool link_has_slowed(const struct fingerprint_conditions *before,
                     const struct fingerprint_conditions *now, char *out)
{
    return compare(&now->pcie_generation_used, &now->pcie_lanes, &before->pcie_generation_used,
                   &before->pcie_lanes, "it was", out);
}
