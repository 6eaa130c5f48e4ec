/* reach_limit.c: reads the facts that every answer needs, or returns a message about missing facts.
 *
 * A window must fit the level that groups share. The scope of a pass may fit a wider level. For
 * example, a group of a K80 reaches 130 MiB, and a level that all SMs share reaches 2 GiB. Only the
 * misses of the wider level are expensive. So few passes of 2 GiB are faster than many passes of
 * 128 MiB (Karnagel 2017, section 5). Translation limits the speed if it takes more time than
 * memory, that is, if reads are slower than half of the plateau. This decision needs a measured
 * curve. Without a curve the reach of the group is used.
 */
#include "planner/reach_limit.h"

#include "fingerprint/fingerprint_json.h"
#include "planner/placement.h"
#include "planner/strategy.h"
#include "base/format_size.h"
#include "planner/next_step.h"

#include <stddef.h>
#include <stdio.h>

static enum status check_bytes(uint64_t bytes, struct err *err)
{
    if (bytes == 0)
        return err_set_field(err, STATUS_INVALID_ARGUMENT, "bytes",
                             "bytes must be at least 1: the number of bytes that the job accesses");
    if (bytes > PLACEMENT_MAX_BYTES)
        return err_set_field(err, STATUS_INVALID_ARGUMENT, "bytes", "bytes must be at most 1 PiB");
    return STATUS_OK;
}

/* Returns the length of the longest range that fits at any alignment, or 0 if no range fits. */
static uint64_t usable_of(const struct fingerprint *fp)
{
    uint64_t reach = fp->windows.reach_bytes.v;
    uint64_t entry = fp->windows.entry_bytes.v;
    uint64_t less_one = reach > entry ? reach - entry : 0;

    if (IS_KNOWN(fp->windows.recommended_bytes) && fp->windows.recommended_bytes.v < less_one)
        return fp->windows.recommended_bytes.v;
    return less_one;
}

enum status reach_limit_begin(const struct fingerprint *fp, uint64_t bytes, const char *id,
                              char *out_id, struct err *err)
{
    enum status s = check_bytes(bytes, err);

    if (s != STATUS_OK)
        return s;
    if (id)
        snprintf(out_id, FINGERPRINT_ID_BYTES, "%s", id);
    else
        s = fingerprint_id(fp, out_id, err);
    if (s == STATUS_OK && fp->conditions.verdict == VERDICT_UNUSABLE)
        return err_set_hint(err, STATUS_NOT_APPLICABLE,
                            "Measure again when no other job runs on the GPU: POST "
                            "/v1/gpus/{gpu}/measurements, or reachctl measure.",
                            "fingerprint %s was disturbed too much to be used", out_id);
    return s;
}

enum status reach_limit_check_device(const struct fingerprint *fp, uint64_t bytes, struct err *err)
{
    char asked[FORMAT_SIZE_BYTES];
    char there[FORMAT_SIZE_BYTES];

    if (fp->gpu.memory_bytes == 0 || bytes <= fp->gpu.memory_bytes)
        return STATUS_OK;
    format_size_pair(bytes, fp->gpu.memory_bytes, asked, there);
    return err_set_field(err, STATUS_TOO_MANY_BYTES, "bytes",
                         "%s are more than the %s of memory that this GPU has", asked, there);
}

/* Returns whether the reach belongs to a TLB of each SM whose misses do not slow down reads of
 * `bytes`. In this case the next level reaches as far as the measured range, for example all memory
 * of a MIG instance. Returns false if there is no curve. */
static bool costs_nothing(const struct fingerprint *fp, uint64_t bytes)
{
    const struct maybe_f64 naive = predict_gbps(&fp->throughput, PREDICT_NAIVE, bytes);
    const struct maybe_f64 plateau = fp->throughput.plateau_gbps;
    bool own = false;

    for (uint32_t i = 0; i < fp->level_count && i < FINGERPRINT_MAX_LEVELS; i++) {
        const struct tlb_level *const l = &fp->levels[i];
        if (IS_KNOWN(l->reach_bytes) && l->reach_bytes.v == fp->windows.reach_bytes.v)
            own = l->shared_by == SHARED_SM;
    }
    return own && IS_KNOWN(naive) && IS_KNOWN(plateau) &&
           naive.v >= (1 - STRATEGY_WORTH) * plateau.v;
}

enum status reach_limit_read(const struct fingerprint *fp, uint64_t bytes, const char *id,
                             struct reach_limit *out, struct err *err)
{
    enum status s;

    *out = (struct reach_limit){.observed = false};
    s = reach_limit_begin(fp, bytes, id, out->fingerprint_id, err);
    if (s == STATUS_OK)
        s = reach_limit_check_device(fp, bytes, err);
    if (s != STATUS_OK)
        return s;
    if (fp->windows.reach_bytes.known == MAYBE_NOT_OBSERVABLE)
        return STATUS_OK;
    if (!IS_KNOWN(fp->windows.reach_bytes))
        return err_set_hint(err, STATUS_NOT_APPLICABLE,
                            next_step_full(fp, fp->windows.reach_bytes.reason),
                            "fingerprint %s has no reach of an SM group (%s)", out->fingerprint_id,
                            reason_slug(fp->windows.reach_bytes.reason));
    if (!IS_KNOWN(fp->windows.entry_bytes) || fp->windows.entry_bytes.v == 0)
        return err_set_hint(err, STATUS_NOT_APPLICABLE,
                            next_step_full(fp, fp->windows.entry_bytes.reason),
                            "fingerprint %s has no length of a TLB entry (%s)", out->fingerprint_id,
                            reason_slug(fp->windows.entry_bytes.reason));
    if (costs_nothing(fp, bytes))
        return STATUS_OK;
    out->observed = true;
    out->reach_bytes = fp->windows.reach_bytes.v;
    out->entry_bytes = fp->windows.entry_bytes.v;
    out->usable_bytes = usable_of(fp);
    if (out->usable_bytes == 0)
        return err_set_hint(err, STATUS_NOT_APPLICABLE, next_step_full(fp, REASON_TOO_LITTLE_DATA),
                            "fingerprint %s has a reach of a single TLB entry, which is too short "
                            "for an unaligned base",
                            out->fingerprint_id);
    return STATUS_OK;
}

uint64_t reach_limit_taken(uint64_t entry_bytes, uint64_t reserve_bytes)
{
    return reserve_bytes > 0 ? ((reserve_bytes - 1) / entry_bytes + 2) * entry_bytes : 0;
}

enum status reach_limit_reserve(struct reach_limit *limit, uint64_t reserve_bytes, struct err *err)
{
    char reserve[FORMAT_SIZE_BYTES];
    char usable[FORMAT_SIZE_BYTES];
    uint64_t taken;

    if (reserve_bytes > PLACEMENT_MAX_BYTES)
        return err_set_field(err, STATUS_INVALID_ARGUMENT, "reserve",
                             "reserve must be at most 1 PiB");
    if (reserve_bytes == 0 || !limit->observed)
        return STATUS_OK;
    taken = reach_limit_taken(limit->entry_bytes, reserve_bytes);
    if (taken >= limit->usable_bytes) {
        format_size_pair(reserve_bytes, limit->usable_bytes, reserve, usable);
        return err_set_hint(err, STATUS_NOT_APPLICABLE, "Reserve less.",
                            "the reserve of %s exhausts the %s that an SM group reaches", reserve,
                            usable);
    }
    limit->usable_bytes -= taken;
    return STATUS_OK;
}

enum status reach_limit_alignment(struct reach_limit *limit, uint64_t alignment_bytes,
                                  struct err *err)
{
    char margin[FORMAT_SIZE_BYTES];
    char usable[FORMAT_SIZE_BYTES];

    if (!limit->observed || alignment_bytes == 0)
        return STATUS_OK;
    if (alignment_bytes >= limit->usable_bytes) {
        format_size_pair(alignment_bytes, limit->usable_bytes, margin, usable);
        return err_set_hint(err, STATUS_NOT_APPLICABLE,
                            "Request a smaller granularity, or fewer allocations.",
                            "the bounds of the allocations need a margin of %s, and an SM group "
                            "reaches %s",
                            margin, usable);
    }
    limit->usable_bytes -= alignment_bytes;
    return STATUS_OK;
}

uint64_t reach_limit_scope_bytes(const struct fingerprint *fp, const struct reach_limit *limit)
{
    const struct maybe_f64 plateau = fp->throughput.plateau_gbps;
    uint64_t best = limit->usable_bytes;

    for (uint32_t i = 0; IS_KNOWN(plateau) && i < fp->level_count; i++) {
        const struct tlb_level *level = &fp->levels[i];
        const uint64_t reach = level->reach_bytes.v;
        const uint64_t entry = level->entry_bytes.v;
        struct maybe_f64 gbps;
        if (!IS_KNOWN(level->reach_bytes) || !IS_KNOWN(level->entry_bytes) || reach <= entry ||
            reach - entry <= best)
            continue;
        gbps = predict_gbps(&fp->throughput, PREDICT_NAIVE, reach - entry);
        if (IS_KNOWN(gbps) && gbps.v * 2 >= plateau.v)
            best = reach - entry;
    }
    return best;
}

/* ---- the curve ---- */

/* The curve is extended beyond its last point by 1/8 of the size of that point. An allocation of
 * all memory is a little larger than the largest region of a probe, and the curve falls slowly in
 * this range. */
enum { BEYOND_DIVISOR = 8 };

static struct maybe_f64 value_of(const struct curve_point *p, enum predict_column column)
{
    return column == PREDICT_NAIVE ? p->naive_gbps : p->by_group_gbps;
}

/* The curve is linear in bytes between two points, and flat below the first point, which is within
 * the reach. Points without a number in this column are skipped. */
struct maybe_f64 predict_gbps(const struct throughput *t, enum predict_column column,
                              uint64_t bytes)
{
    const struct curve_point *below = NULL;
    const struct curve_point *above = NULL;
    enum reason why = REASON_NOT_MEASURED;
    double at_below;
    double at_above;
    double along;

    for (uint32_t i = 0; i < t->curve_count; i++) {
        const struct curve_point *p = &t->curve[i];
        struct maybe_f64 v = value_of(p, column);
        if (!IS_KNOWN(v)) {
            why = v.reason;
            continue;
        }
        if (p->region_bytes <= bytes && (!below || p->region_bytes > below->region_bytes))
            below = p;
        if (p->region_bytes >= bytes && (!above || p->region_bytes < above->region_bytes))
            above = p;
    }
    if (!below && !above)
        return UNKNOWN_F64(why);
    if (!below)
        return value_of(above, column);
    at_below = value_of(below, column).v;
    if (!above) {
        if (bytes - below->region_bytes > below->region_bytes / BEYOND_DIVISOR)
            return UNKNOWN_F64(REASON_BEYOND_MEMORY);
        return KNOWN_F64(at_below);
    }
    if (above->region_bytes == below->region_bytes)
        return KNOWN_F64(at_below);
    at_above = value_of(above, column).v;
    along =
        (double)(bytes - below->region_bytes) / (double)(above->region_bytes - below->region_bytes);
    return KNOWN_F64(at_below + along * (at_above - at_below));
}
