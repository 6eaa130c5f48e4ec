/* scope.c: how many bytes may one pass touch at random?
 *
 * Karnagel, Ben-Nun, Werner, Habich, Lehner: Big Data Causing Big (TLB) Problems, DaMoN 2017,
 * section 5. Instead of one pass over everything, a job makes several: each scans all its
 * positions but touches only those within the scope of this pass, so that translation always hits.
 * It pays if the passes over skipped positions cost less than the misses did.
 *
 * All SMs work in the same scope, so the scope is what one group can reach, less one entry for a
 * base that is not aligned: with 32 entries of 2 MiB, 62 MiB; 200 MiB then take 4 passes. Where a
 * wider level is measured to be nearly as good, it is that one's (reach_limit.c).
 */
#include "planner/placement.h"

#include "planner/reach_limit.h"
#include "planner/format_size.h"

#include <stdio.h>
#include <string.h>

/* The curve is of reads: the throughput of atomics or writes does not follow from it. */
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

/* "the 63.97 GiB that an SM group reaches without a miss", or what else bounds a pass. */
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
    format_size_pair(request->bytes, fp->conditions.range_bytes, asked, probed);
    snprintf(out->reason, sizeof(out->reason),
             "No translation limit was observable up to the %s probed, so one pass over %s is as "
             "good as several (fingerprint %s).",
             probed, asked, out->fingerprint_id);
}

static void answer_passes(const struct fingerprint *fp, const struct scope_request *request,
                          const struct reach_limit *limit, uint64_t scope_bytes,
                          struct scope_answer *out)
{
    char asked[FORMAT_SIZE_BYTES];
    char scope[FORMAT_SIZE_BYTES];

    format_size_pair(request->bytes, scope_bytes, asked, scope);
    if (request->bytes <= scope_bytes) {
        out->advice = ADVICE_NOTHING_TO_DO;
        out->naive_gbps = out->predicted_gbps = in_scope_gbps(fp, request, request->bytes);
        snprintf(out->reason, sizeof(out->reason),
                 "%s fit the %s %s, one entry of margin kept: one pass is enough (fingerprint %s).",
                 asked, scope, bound_text(limit, scope_bytes), out->fingerprint_id);
        return;
    }
    out->advice = ADVICE_SCOPES;
    out->scope_bytes = scope_bytes;
    out->passes = (request->bytes - 1) / scope_bytes + 1;
    out->predicted_gbps = in_scope_gbps(fp, request, scope_bytes);
    snprintf(out->reason, sizeof(out->reason),
             "%s are more than the %s %s, one entry of margin kept: %llu passes, each within one "
             "scope of at most %s (fingerprint %s).",
             asked, scope, bound_text(limit, scope_bytes), (unsigned long long)out->passes, scope,
             out->fingerprint_id);
}

enum status placement_scope(const struct fingerprint *fp, const struct scope_request *request,
                            struct scope_answer *out, struct err *err)
{
    struct reach_limit limit;
    uint64_t scope_bytes;
    enum status s = reach_limit_read(fp, request->bytes, request->fingerprint_id, &limit, err);

    if (s != STATUS_OK)
        return s;
    *out = (struct scope_answer){.scope_bytes = request->bytes,
                                 .passes = 1,
                                 .naive_gbps = predicted(fp, request, request->bytes)};
    memcpy(out->fingerprint_id, limit.fingerprint_id, sizeof(out->fingerprint_id));
    /* The curve that a wider scope rests on is one of reads. */
    scope_bytes =
        request->access == ACCESS_READ ? reach_limit_scope_bytes(fp, &limit) : limit.usable_bytes;
    if (limit.observed)
        answer_passes(fp, request, &limit, scope_bytes, out);
    else
        answer_unlimited(fp, request, out);
    return STATUS_OK;
}
