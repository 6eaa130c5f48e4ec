/* score.c: see score.h. */
#include "analysis/score.h"

/* Strides that must say the same of a level, and of its onset. */
enum { STRIDES_OF_A_LEVEL = 3, STRIDES_OF_AN_ONSET = 2 };

static void put(struct evidence *to, bool known, struct evidence from)
{
    *to = known ? from : (struct evidence){.method = EVIDENCE_NONE};
}

void score_level(const struct level_estimate *level, const struct sharing_estimate *sharing,
                 struct tlb_level *out)
{
    struct evidence *const e = out->evidence;

    put(&e[LEVEL_EVIDENCE_ENTRY_BYTES], IS_KNOWN(out->entry_bytes), level->entry_evidence);
    put(&e[LEVEL_EVIDENCE_REACH_BYTES], IS_KNOWN(out->reach_bytes), level->reach_evidence);
    put(&e[LEVEL_EVIDENCE_SATURATION_BYTES], IS_KNOWN(out->saturation_bytes),
        level->saturation_evidence);
    put(&e[LEVEL_EVIDENCE_MISS_PENALTY_CYCLES], IS_KNOWN(out->miss_penalty_cycles),
        levels_penalty_evidence(level));
    put(&e[LEVEL_EVIDENCE_SHARED_BY], out->shared_by != SHARED_UNKNOWN, sharing_evidence(sharing));
}

void score_detail(const struct sets_estimate *sets, const struct sectored_estimate *fill,
                  struct tlb_level *out)
{
    struct evidence *const e = out->evidence;

    put(&e[LEVEL_EVIDENCE_SETS], IS_KNOWN(out->sets), sets->evidence);
    put(&e[LEVEL_EVIDENCE_REPLACEMENT], out->replacement != REPLACEMENT_UNKNOWN,
        sets->replacement_evidence);
    put(&e[LEVEL_EVIDENCE_FILL], out->fill != FILL_UNKNOWN, fill->fill_evidence);
    put(&e[LEVEL_EVIDENCE_ENTRY_PAGES], IS_KNOWN(out->entry_pages) || IS_KNOWN(out->tag_bytes),
        fill->pages_evidence);
}

void score_groups(struct evidence sharing, struct topology *out)
{
    put(&out->evidence[TOPOLOGY_EVIDENCE_GROUPS], out->partition.group_count > 0, sharing);
    for (uint32_t g = 0; g < out->partition.group_count; g++)
        put(&out->groups[g].evidence[GROUP_EVIDENCE_MISS_PENALTY_CYCLES],
            IS_KNOWN(out->groups[g].miss_penalty_cycles), sharing);
}

struct evidence score_mean_sharing(const struct mean_sharing *sharing)
{
    return evidence_make(EVIDENCE_MEAN_PAIRS, sharing->matrices, sharing->confidence.v);
}

void score_curve_level(const struct curve_level *level, const struct mean_sharing *sharing,
                       struct tlb_level *out)
{
    const double margin = 1 - level->tolerance_cycles / level->penalty_cycles;
    const struct evidence one = evidence_make(EVIDENCE_MEAN_CURVES, 1, margin);
    struct evidence *const e = out->evidence;

    put(&e[LEVEL_EVIDENCE_ENTRY_BYTES], IS_KNOWN(out->entry_bytes),
        evidence_make(EVIDENCE_MEAN_CURVES, STRIDES_OF_A_LEVEL, margin));
    put(&e[LEVEL_EVIDENCE_REACH_BYTES], IS_KNOWN(out->reach_bytes),
        evidence_make(EVIDENCE_MEAN_CURVES, STRIDES_OF_AN_ONSET, margin));
    put(&e[LEVEL_EVIDENCE_SATURATION_BYTES], IS_KNOWN(out->saturation_bytes), one);
    put(&e[LEVEL_EVIDENCE_MISS_PENALTY_CYCLES], IS_KNOWN(out->miss_penalty_cycles), one);
    put(&e[LEVEL_EVIDENCE_SHARED_BY], out->shared_by != SHARED_UNKNOWN,
        score_mean_sharing(sharing));
}
