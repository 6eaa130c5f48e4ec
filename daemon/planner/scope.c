/* scope.c: finds the bytes that one pass may touch at random.
 *
 * Karnagel, Ben-Nun, Werner, Habich, Lehner: Big Data Causing Big (TLB) Problems, DaMoN 2017,
 * section 5. Instead of one pass over all bytes, a job makes several passes. Each pass scans all
 * positions but touches only the positions within its scope, so that translation always hits.
 * Several passes are faster if the scans of skipped positions cost less than the misses.
 *
 * All SMs work in the same scope, so the scope is the reach of one group. One entry is subtracted
 * for a base that is not aligned. With 32 entries of 2 MiB the scope is 62 MiB, and 200 MiB take 4
 * passes. If a wider level is measured to be nearly as fast, the scope is the reach of that level
 * (reach_limit.c).
 */
#include "planner/placement.h"

#include "planner/reach_limit.h"
#include "base/format_size.h"
#include "planner/next_step.h"

#include <stdio.h>
#include <string.h>

static uint64_t bytes_of(const struct scope_request *request)
{
    return layout_bytes(&request->layout);
}

/* Returns the predicted throughput of reads. The throughput of atomics and writes is unknown,
 * because the curve contains only reads. */
static struct maybe_f64 predicted(const struct fingerprint *fp, const struct scope_request *request,
                                  uint64_t bytes)
{
    if (request->access != ACCESS_READ)
        return UNKNOWN_F64(REASON_NOT_MEASURED);
    return predict_gbps(&fp->throughput, PREDICT_NAIVE, bytes);
}

static struct maybe_f64 in_scope_gbps(const struct fingerprint *fp,
                                      const struct scope_request *request, uint64_t scope_bytes)
{
    struct maybe_f64 v = predicted(fp, request, scope_bytes);

    if (!IS_KNOWN(v) && request->access == ACCESS_READ && IS_KNOWN(fp->throughput.plateau_gbps))
        return fp->throughput.plateau_gbps;
    return v;
}

/* Returns the description of the limit of a pass: "that an SM group reaches without a miss", or the
 * limit of a wider level. */
static const char *bound_text(const struct reach_limit *limit, uint64_t scope_bytes)
{
    return scope_bytes == limit->usable_bytes
               ? "that an SM group reaches without a miss"
               : "up to which random reads keep at least half of their speed";
}

static void answer_unlimited(const struct fingerprint *fp, const struct scope_request *request,
                             struct scope_answer *out)
{
    char asked[FORMAT_SIZE_BYTES];
    char probed[FORMAT_SIZE_BYTES];

    out->advice = ADVICE_NO_LIMIT_SEEN;
    out->predicted_gbps = out->naive_gbps;
    format_size_pair(bytes_of(request), fp->conditions.range_bytes, asked, probed);
    snprintf(out->reason, sizeof(out->reason),
             "No translation limit that costs speed was observable up to the %s probed, so one "
             "pass over %s is as "
             "good as several (fingerprint %s).",
             probed, asked, out->fingerprint_id);
}

/* Returns the length of scopes that are as equal as whole entries allow, without an additional
 * pass. */
static uint64_t equal_step(uint64_t bytes, uint64_t scope_bytes, uint64_t entry_bytes)
{
    const uint64_t passes = (bytes - 1) / scope_bytes + 1;
    const uint64_t equal = ((bytes - 1) / passes / entry_bytes + 1) * entry_bytes;

    return equal < scope_bytes && (bytes - 1) / equal + 1 == passes ? equal : scope_bytes;
}

static void answer_passes(const struct fingerprint *fp, const struct scope_request *request,
                          const struct reach_limit *limit, uint64_t scope_bytes,
                          struct scope_answer *out)
{
    char asked[FORMAT_SIZE_BYTES];
    char scope[FORMAT_SIZE_BYTES];

    format_size_pair(bytes_of(request), scope_bytes, asked, scope);
    if (bytes_of(request) <= scope_bytes) {
        out->advice = ADVICE_NOTHING_TO_DO;
        out->naive_gbps = out->predicted_gbps = in_scope_gbps(fp, request, bytes_of(request));
        snprintf(out->reason, sizeof(out->reason),
                 "%s fit the %s %s, one entry of margin kept: one pass is enough (fingerprint %s).",
                 asked, scope, bound_text(limit, scope_bytes), out->fingerprint_id);
        return;
    }
    out->advice = ADVICE_SCOPES;
    out->scope_bytes = scope_bytes;
    out->passes = (bytes_of(request) - 1) / scope_bytes + 1;
    out->step_bytes = equal_step(bytes_of(request), scope_bytes, limit->entry_bytes);
    out->predicted_gbps = in_scope_gbps(fp, request, scope_bytes);
    snprintf(out->reason, sizeof(out->reason),
             "%s are more than the %s %s, one entry of margin kept: %llu passes, each within one "
             "scope of at most %s (fingerprint %s).",
             asked, scope, bound_text(limit, scope_bytes), (unsigned long long)out->passes, scope,
             out->fingerprint_id);
}

/* Returns the length of the longest entry of any level. Entries differ from level to level, and the
 * scope may be the scope of an outer level. */
static uint64_t longest_entry(const struct fingerprint *fp, const struct reach_limit *limit)
{
    uint64_t longest = limit->entry_bytes;

    for (uint32_t i = 0; i < fp->level_count && i < FINGERPRINT_MAX_LEVELS; i++)
        if (IS_KNOWN(fp->levels[i].entry_bytes) && fp->levels[i].entry_bytes.v > longest)
            longest = fp->levels[i].entry_bytes.v;
    return longest;
}

static enum status read_scope(const struct fingerprint *fp, const struct scope_request *request,
                              const struct reach_limit *limit, const struct layout *layout,
                              uint64_t *out_bytes, struct err *err)
{
    /* The curve, on which a wider scope is based, contains only reads. */
    const uint64_t most =
        request->access == ACCESS_READ ? reach_limit_scope_bytes(fp, limit) : limit->usable_bytes;
    const uint64_t margin = layout_alignment_bytes(layout, longest_entry(fp, limit));
    char asked[FORMAT_SIZE_BYTES];
    char there[FORMAT_SIZE_BYTES];

    *out_bytes = most - margin;
    if (!limit->observed || margin < most)
        return STATUS_OK;
    format_size_pair(margin, most, asked, there);
    return err_set_field(err, STATUS_INVALID_ARGUMENT, "granularity",
                         "granularity: the bounds of these allocations need a margin of %s, and a "
                         "pass may touch %s: ask for fewer allocations, or a finer granularity",
                         asked, there);
}

/* Fills in the defaults of the allocations of the request, and checks their sizes. */
static enum status check_layout(const struct scope_request *request, struct layout *out,
                                struct err *err)
{
    *out = request->layout;
    for (uint32_t i = 0; i < out->count; i++) {
        if (out->count > 1 && (out->of[i].bytes == 0 || out->of[i].bytes > PLACEMENT_MAX_BYTES))
            return err_set_field(err, STATUS_INVALID_ARGUMENT, "bytes",
                                 "bytes must be from 1 to 1 PiB");
        if (out->of[i].row_bytes > PLACEMENT_MAX_BYTES)
            return err_set_field(err, STATUS_INVALID_ARGUMENT, "granularity",
                                 "granularity is more than 1 PiB: check the number");
        if (out->of[i].row_bytes == 0)
            out->of[i].row_bytes = out->count > 1 ? SCOPE_ROW_BYTES : 1;
        out->of[i].touches = 1;
    }
    return STATUS_OK;
}

enum status placement_scope(const struct fingerprint *fp, const struct scope_request *request,
                            struct scope_answer *out, struct err *err)
{
    const uint64_t bytes = bytes_of(request);
    struct reach_limit limit;
    struct layout layout;
    uint64_t scope_bytes = 0;
    enum status s = check_layout(request, &layout, err);

    if (s == STATUS_OK)
        s = reach_limit_read(fp, bytes, request->fingerprint_id, &limit, err);
    if (s == STATUS_OK)
        s = read_scope(fp, request, &limit, &layout, &scope_bytes, err);
    if (s != STATUS_OK)
        return s;
    *out = (struct scope_answer){.scope_bytes = bytes,
                                 .passes = 1,
                                 .layout = layout,
                                 .step_bytes = bytes,
                                 .naive_gbps = predicted(fp, request, bytes)};
    memcpy(out->fingerprint_id, limit.fingerprint_id, sizeof(out->fingerprint_id));
    if (limit.observed)
        answer_passes(fp, request, &limit, scope_bytes, out);
    else
        answer_unlimited(fp, request, out);
    next_step_append(fp, out->predicted_gbps, out->reason, sizeof(out->reason));
    return STATUS_OK;
}
