/* explain.c: computes how much of the lost time of a job translation causes. The lost time is the
 * difference between an access of the job and an access within the reach. The formula and the
 * thresholds are in docs/planner.md ("Explain"). */
#include "planner/explain.h"

#include "planner/access_cost.h"
#include "base/format_size.h"
#include "planner/next_step.h"
#include "planner/set_cost.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double MOSTLY = 0.85;
static const double SLIGHTLY = 0.4;
/* A job is near the plateau from this share of the measured speed of a set of its length. */
static const double NEAR_PLATEAU = 0.9;
/* A cache answers many reads if a set is faster than memory by this factor. */
static const double FROM_CACHE = 1.2;
/* A job is not naive if it is faster than expected by this factor. */
static const double ABOVE_EXPECTED = 1.1;

struct explaining {
    const struct fingerprint *fp;
    const struct explain_request *request;
    struct reach_limit limit;
    struct maybe_f64 cached_gbps; /* speed of a set within the reach that caches keep in part */
    struct explain_answer *out;
};

static struct maybe_f64 naive_gbps(const struct explaining *e, struct access_cost *cost,
                                   double scattered)
{
    access_cost_scatter(cost, e->fp, scattered);
    return access_cost_gbps(access_cost_naive_ns(cost, e->request->bytes),
                            e->out->transaction_bytes);
}

/* Returns the speed of a set that caches may keep. The speed is unknown if the accesses are not
 * reads, if the set is beyond the reach, or if such sets were not measured. */
static struct maybe_f64 cached_gbps(const struct explaining *e)
{
    const uint64_t bytes = e->request->bytes;

    if (e->request->access != ACCESS_READ || (e->limit.observed && bytes > e->limit.usable_bytes))
        return UNKNOWN_F64(REASON_NOT_APPLICABLE);
    return access_cost_gbps(set_cost_ns(e->fp, SET_SAME, e->out->transaction_bytes, bytes),
                            e->out->transaction_bytes);
}

static void expect(struct explaining *e)
{
    struct explain_answer *out = e->out;
    struct access_cost cost;

    access_cost_read(&e->fp->throughput, &e->limit, e->request->access, out->transaction_bytes,
                     &cost);
    access_cost_add_lines(&cost, &e->fp->throughput, e->request->access, out->element_bytes);
    out->basis = basis_of_origin(e->fp, cost.basis);
    out->in_reach_gbps = access_cost_gbps(cost.in_reach_ns, out->transaction_bytes);
    out->naive_contiguous_gbps = naive_gbps(e, &cost, 0);
    out->naive_scattered_gbps = naive_gbps(e, &cost, 1);
    out->expected_gbps = naive_gbps(e, &cost, e->request->scattered);
    e->cached_gbps = cached_gbps(e);
    if (IS_KNOWN(e->cached_gbps))
        out->expected_gbps = e->cached_gbps;
}

static void classify(const struct explaining *e)
{
    struct explain_answer *out = e->out;
    const double observed = e->request->observed_gbps;
    const double in_reach = out->in_reach_gbps.v;
    const double expected = out->expected_gbps.v;
    double share;

    out->bottleneck = BOTTLENECK_CANNOT_SAY;
    out->loss_gbps = UNKNOWN_F64(REASON_NOT_MEASURED);
    out->translation_share = UNKNOWN_F64(REASON_NOT_MEASURED);
    if (!IS_KNOWN(out->in_reach_gbps))
        return;
    out->loss_gbps = KNOWN_F64(fmax(in_reach - observed, 0));
    if (!IS_KNOWN(out->expected_gbps))
        return;
    if (observed >= in_reach * (1 - STRATEGY_WORTH)) {
        out->translation_share = UNKNOWN_F64(REASON_NOT_APPLICABLE);
        out->bottleneck = BOTTLENECK_NOT;
        return;
    }
    share = (1 / expected - 1 / in_reach) / (1 / observed - 1 / in_reach);
    out->translation_share = KNOWN_F64(fmin(fmax(share, 0), 1));
    if (observed > expected * ABOVE_EXPECTED)
        out->bottleneck = BOTTLENECK_PARTLY;
    else if (share >= MOSTLY)
        out->bottleneck = BOTTLENECK_TRANSLATION;
    else
        out->bottleneck = share >= SLIGHTLY ? BOTTLENECK_PARTLY : BOTTLENECK_NOT;
}

/* ---- in words ---- */

static void write_cannot_say(const struct explaining *e)
{
    struct explain_answer *out = e->out;
    const bool kind = !IS_KNOWN(out->in_reach_gbps);
    const struct maybe_f64 *missing = kind ? &out->in_reach_gbps : &out->expected_gbps;
    char asked[FORMAT_SIZE_BYTES];

    snprintf(out->reason, sizeof(out->reason),
             "Unknown: fingerprint %s lacks what %ss of %u bytes reach %s%s (%s).",
             out->fingerprint_id, access_name(e->request->access), out->transaction_bytes,
             kind ? "within the reach" : "over ", kind ? "" : format_size(e->request->bytes, asked),
             reason_slug(missing->reason));
    snprintf(out->checks[0], sizeof(out->checks[0]), "%s", next_step_full(e->fp, missing->reason));
}

/* Adds the speed in scattered memory if the job is slower than contiguous memory allows. */
static void write_scattered(const struct explaining *e, char *out, size_t room)
{
    const struct maybe_f64 scattered = e->out->naive_scattered_gbps;

    if (!(e->request->scattered > 0) && IS_KNOWN(scattered) &&
        scattered.v < e->out->expected_gbps.v &&
        e->request->observed_gbps * ABOVE_EXPECTED < e->out->expected_gbps.v)
        snprintf(out, room, "; physically scattered memory: %.4g expected (contiguous=0)",
                 scattered.v);
}

/* Writes the sentence for a set that is within the reach of a group and that caches keep in
 * part. */
static void write_cached(const struct explaining *e, char *out, size_t room)
{
    const bool from_cache = e->cached_gbps.v > FROM_CACHE * e->out->in_reach_gbps.v;
    const bool near = e->request->observed_gbps >= NEAR_PLATEAU * e->cached_gbps.v;

    if (near)
        snprintf(out, room, "near the %s plateau of such a set: not the TLB",
                 from_cache ? "L2" : "memory");
    else
        snprintf(out, room,
                 "caches keep a part of such a set, and it was measured at %.4g: other work of the "
                 "job is the limit, not the TLB",
                 e->cached_gbps.v);
}

static void write_verdict(const struct explaining *e)
{
    static const char *const verdicts[] = {
        [BOTTLENECK_CANNOT_SAY] = "Unknown",
        [BOTTLENECK_TRANSLATION] = "Translation is the bottleneck",
        [BOTTLENECK_PARTLY] = "Translation is a part of the bottleneck",
        [BOTTLENECK_NOT] = "Translation is not the bottleneck"};
    struct explain_answer *out = e->out;
    const double observed = e->request->observed_gbps;
    char asked[FORMAT_SIZE_BYTES];
    char more[220] = "";

    format_size(e->request->bytes, asked);
    if (IS_KNOWN(e->cached_gbps))
        write_cached(e, more, sizeof(more));
    else if (!IS_KNOWN(out->translation_share))
        snprintf(more, sizeof(more), "nothing is lost");
    else if (observed > out->expected_gbps.v * ABOVE_EXPECTED)
        snprintf(more, sizeof(more),
                 "the job is faster than random accesses anywhere can be, so its accesses are less "
                 "random, or a part of the job is already placed");
    else
        snprintf(more, sizeof(more),
                 "translation accounts for %.0f%% of the extra time of an access",
                 out->translation_share.v * 100);
    write_scattered(e, more + strlen(more), sizeof(more) - strlen(more));
    snprintf(out->reason, sizeof(out->reason),
             "%s: %.4g GB/s observed, %.4g expected over %s with any SM anywhere, %.4g inside the "
             "reach; %s (fingerprint %s).",
             verdicts[out->bottleneck], observed, out->expected_gbps.v, asked, out->in_reach_gbps.v,
             more, out->fingerprint_id);
}

/* Writes steps that would prove the finding: the same job without translation misses, and a control
 * that differs only in properties that should not matter. */
static void write_checks(const struct explaining *e)
{
    struct explain_answer *out = e->out;
    const bool is_bottleneck = out->bottleneck != BOTTLENECK_NOT;
    char half[FORMAT_SIZE_BYTES] = "half of the reach";

    if (e->limit.observed)
        format_size(e->limit.usable_bytes / 2, half);
    if (is_bottleneck) {
        snprintf(
            out->checks[0], sizeof(out->checks[0]),
            "Run the same job over %s, half of the reach: the job should reach about %.4g GB/s.",
            half, out->in_reach_gbps.v);
        snprintf(out->checks[1], sizeof(out->checks[1]),
                 "Run the job with windows by group, as the plan for these bytes has them: the "
                 "throughput should be about the same.");
        snprintf(out->checks[2], sizeof(out->checks[2]),
                 "Control: the same number of windows, assigned to SMs without regard to groups. "
                 "If these windows help too, the TLB was not the cause.");
        if (out->bottleneck == BOTTLENECK_PARTLY)
            snprintf(out->checks[3], sizeof(out->checks[3]),
                     "The loss that remains over half of the reach has another cause: find this "
                     "cause first.");
        return;
    }
    snprintf(out->checks[0], sizeof(out->checks[0]),
             "To verify, run the same job over %s: the job should be no faster.", half);
    if (!IS_KNOWN(out->translation_share))
        return;
    snprintf(out->checks[1], sizeof(out->checks[1]),
             "Check the other work of the job: its input and the link of the input, work per "
             "access, too few warps, many atomics on one address.");
    snprintf(out->checks[2], sizeof(out->checks[2]),
             "Check how much memory moves per access (a profiler's sectors per request): "
             "uncoalesced accesses move more than %u bytes.",
             out->transaction_bytes);
    snprintf(out->checks[3], sizeof(out->checks[3]),
             "Check for other work on the GPU, and for clocks below those of the fingerprint.");
}

enum status explain_loss(const struct fingerprint *fp, const struct explain_request *request,
                         struct explain_answer *out, struct err *err)
{
    struct explaining e = {.fp = fp, .request = request, .out = out};
    enum status s = reach_limit_read(fp, request->bytes, request->fingerprint_id, &e.limit, err);

    memset(out, 0, sizeof(*out));
    if (s == STATUS_OK)
        s = strategy_sizes(request->element_bytes, request->transaction_bytes, &out->element_bytes,
                           &out->transaction_bytes, err);
    if (s != STATUS_OK)
        return s;
    if (!(request->observed_gbps > 0 && request->observed_gbps <= STRATEGY_MAX_RATE))
        return err_set_field(
            err, STATUS_INVALID_ARGUMENT, "gbps",
            "gbps must be above 0 and at most %.0f: the throughput that the job observes",
            STRATEGY_MAX_RATE);
    if (!(request->scattered >= 0 && request->scattered <= 1))
        return err_set_field(err, STATUS_INVALID_ARGUMENT, "contiguous",
                             "contiguous must be a number from 0 to 1");
    memcpy(out->fingerprint_id, e.limit.fingerprint_id, sizeof(out->fingerprint_id));
    expect(&e);
    classify(&e);
    if (out->bottleneck == BOTTLENECK_CANNOT_SAY) {
        write_cannot_say(&e);
        return STATUS_OK;
    }
    write_verdict(&e);
    write_checks(&e);
    return STATUS_OK;
}
