/* imported.c: see imported.h. */
#include "analysis/imported/imported.h"

#include "analysis/imported/curve_levels.h"
#include "analysis/sharing/floorplan.h"
#include "analysis/imported/mean_sharing.h"
#include "analysis/sharing/sharing.h"
#include "base/format_size.h"

#include <math.h>

/* Number of strides that must agree on a level, and on its onset. */
enum { STRIDES_OF_A_LEVEL = 3, STRIDES_OF_AN_ONSET = 2 };

bool imported_is_in(const struct observation_set *set)
{
    return observation_next(set, NULL, PROBE_MEANS) ||
           observation_next(set, NULL, PROBE_MEAN_PAIRS);
}

static void fill_level(const struct curve_level *from, struct tlb_level *out)
{
    const enum reason little = REASON_TOO_LITTLE_DATA;
    const struct mean_step *const s = &from->step;
    const uint64_t entry = from->stride_bytes;

    out->page_bytes = UNKNOWN_U64(REASON_NOT_REPORTED);
    out->entry_bytes = KNOWN_U64(entry);
    out->entries = from->entries;
    out->reach_bytes = UNKNOWN_U64(from->entries.reason);
    out->onset_bytes = UNKNOWN_U64(from->entries.reason);
    if (IS_KNOWN(from->entries)) {
        out->reach_bytes = KNOWN_U64(from->entries.v * entry);
        out->onset_bytes = KNOWN_U64(s->first_miss_pages * entry);
    }
    out->saturation_bytes = UNKNOWN_U64(little);
    out->miss_penalty_cycles = UNKNOWN_F64(REASON_DISAGREEMENT);
    if (from->settled) {
        out->miss_penalty_cycles = KNOWN_F64(from->penalty_cycles);
        if (from->saturation_known)
            out->saturation_bytes = KNOWN_U64(s->full_pages * entry);
    }
    out->confidence = KNOWN_F64(fmax(0, 1 - from->tolerance_cycles / from->penalty_cycles));
}

static struct evidence sharing_evidence_of(const struct mean_sharing *sharing)
{
    return evidence_make(EVIDENCE_MEAN_PAIRS, sharing->matrices, sharing->confidence.v);
}

/* Fills in the evidence of the known numbers. */
static void fill_evidence(const struct curve_level *level, const struct mean_sharing *sharing,
                          struct tlb_level *out)
{
    const double margin = 1 - level->tolerance_cycles / level->penalty_cycles;
    const struct evidence one = evidence_make(EVIDENCE_MEAN_CURVES, 1, margin);
    struct level_evidence *const e = &out->evidence;

    e->entry_bytes = evidence_make(EVIDENCE_MEAN_CURVES, STRIDES_OF_A_LEVEL, margin);
    if (IS_KNOWN(out->reach_bytes))
        e->reach_bytes = evidence_make(EVIDENCE_MEAN_CURVES, STRIDES_OF_AN_ONSET, margin);
    if (IS_KNOWN(out->saturation_bytes))
        e->saturation_bytes = one;
    if (IS_KNOWN(out->miss_penalty_cycles))
        e->miss_penalty_cycles = one;
    if (out->shared_by != SHARED_UNKNOWN)
        e->shared_by = sharing_evidence_of(sharing);
}

static void fill_levels(const struct curve_levels *levels, const struct mean_sharing *sharing,
                        struct fingerprint *fp)
{
    uint64_t last_reach = 0; /* a farther level cannot have a shorter reach */

    fp->level_count = levels->count;
    for (uint32_t k = 0; k < levels->count; k++) {
        struct tlb_level *const level = &fp->levels[k];
        level->level = k + 1;
        fill_level(&levels->levels[k], level);
        if (IS_KNOWN(level->reach_bytes) && level->reach_bytes.v < last_reach) {
            level->entries = UNKNOWN_U32(REASON_DISAGREEMENT);
            level->reach_bytes = UNKNOWN_U64(REASON_DISAGREEMENT);
        }
        last_reach = level->reach_bytes.v > last_reach ? level->reach_bytes.v : last_reach;
        level->shared_by = sharing[k].shared_by;
        if (level->shared_by == SHARED_GROUP)
            level->sharing = sharing[k].found;
        fill_evidence(&levels->levels[k], &sharing[k], level);
        if (sharing[k].reason == REASON_DISAGREEMENT)
            fingerprint_add_note(fp, "the sharing matrix of level %u contradicts itself", k + 1);
    }
}

/* Returns the index of the outermost level of groups, or else of single SMs. Returns -1 if there is
 * none. */
static int window_level(const struct fingerprint *fp)
{
    int found = -1;
    for (int k = 0; k < (int)fp->level_count; k++) {
        const enum shared_by by = fp->levels[k].shared_by;
        if (by == SHARED_GROUP ||
            (by == SHARED_SM && (found < 0 || fp->levels[found].shared_by == SHARED_SM)))
            found = k;
    }
    return found;
}

static void fill_topology(const struct mean_sharing *sharing, struct fingerprint *fp)
{
    const int k = window_level(fp);
    const enum reason little = REASON_TOO_LITTLE_DATA;

    fp->windows.reach_bytes = UNKNOWN_U64(little);
    fp->windows.entry_bytes = UNKNOWN_U64(little);
    fp->windows.recommended_bytes = UNKNOWN_U64(little);
    if (k < 0)
        return;
    const struct tlb_level *const level = &fp->levels[k];
    fp->topology.level = KNOWN_U32((uint32_t)k + 1);
    fp->topology.partition = sharing[k].found;
    fp->topology.confidence = sharing[k].confidence;
    sharing_fill_groups(sharing[k].loss_cycles, sharing_evidence_of(&sharing[k]), &fp->topology);
    floorplan_derive(fp->gpu.sm_count, &fp->topology);
    fp->windows.reach_bytes = level->reach_bytes;
    fp->windows.entry_bytes = level->entry_bytes;
    if (IS_KNOWN(level->reach_bytes) && level->reach_bytes.v > level->entry_bytes.v)
        fp->windows.recommended_bytes = KNOWN_U64(level->reach_bytes.v - level->entry_bytes.v);
    else if (!IS_KNOWN(level->reach_bytes))
        fp->windows.recommended_bytes = level->reach_bytes;
}

static void note_odd_steps(const struct curve_levels *levels, struct fingerprint *fp)
{
    for (uint32_t i = 0; i < levels->odd_count && i < CURVE_LEVELS_MAX_ODD; i++) {
        const struct odd_step *const odd = &levels->odd[i];
        char stride[FORMAT_SIZE_BYTES];
        char from[FORMAT_SIZE_BYTES];
        char to[FORMAT_SIZE_BYTES];
        format_size(odd->stride_bytes, stride);
        format_size(odd->step.first_miss_pages * odd->stride_bytes, from);
        format_size(odd->step.full_pages * odd->stride_bytes, to);
        fingerprint_add_note(
            fp,
            "stride %s: from %s to %s the mean rises by %.0f cycles; it fits no level's pattern "
            "at three strides, so what it is stays open",
            stride, from, to, odd->step.to_cycles - odd->step.from_cycles);
    }
}

static void note_curves(const struct mean_curves *curves, const struct curve_levels *levels,
                        struct fingerprint *fp)
{
    char first[FORMAT_SIZE_BYTES];
    char last[FORMAT_SIZE_BYTES];
    double worst = 0;

    if (curves->count == 0) {
        fingerprint_add_note(fp, "no curve was imported: nothing is known about the levels");
        return;
    }
    for (uint32_t c = 0; c < curves->count; c++)
        worst = fmax(worst, curves->curves[c].tolerance_cycles);
    format_size(curves->curves[0].stride_bytes, first);
    format_size(curves->curves[curves->count - 1].stride_bytes, last);
    fingerprint_add_note(
        fp,
        "imported means at %u strides from %s to %s: a step of less than %.0f cycles, or "
        "outside the footprints probed, is not seen",
        curves->count, first, last, ceil(2 * worst));
    if (levels->count == 0)
        fingerprint_add_note(fp, "no step shows the pattern of a TLB level at three strides");
}

enum status imported_derive(const struct observation_set *set, struct fingerprint *out,
                            struct err *err)
{
    struct mean_sharing sharing[FINGERPRINT_MAX_LEVELS];
    struct mean_curves curves;
    struct curve_levels levels;

    const enum status s = mean_curves_read(set, &curves, err);
    if (s != STATUS_OK)
        return s;
    curve_levels_estimate(&curves, &levels);
    mean_sharing_estimate(set, &levels, sharing);
    out->conditions.sm_clock_khz = UNKNOWN_U32(REASON_NOT_REPORTED);
    out->conditions.other_processes = UNKNOWN_U32(REASON_NOT_REPORTED);
    note_curves(&curves, &levels, out);
    fill_levels(&levels, sharing, out);
    fill_topology(sharing, out);
    note_odd_steps(&levels, out);
    mean_curves_free(&curves);
    return STATUS_OK;
}
