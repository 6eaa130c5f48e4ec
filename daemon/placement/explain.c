/* explain.c: how much of what a job loses is translation's?
 *
 * Three times of an access: inside the reach, over these bytes with any SM anywhere, and as the job
 * sees it. What translation accounts for is what the second is longer than the first; the loss is
 * what the third is. In time and not in GB/s, since time is what adds up: a job at a tenth of what
 * naive reaches loses nearly all of its GB/s to something else.
 *
 *     share = (1 / here - 1 / inside) / (1 / seen - 1 / inside)
 *
 * From 0.85 on the verdict is translation (predictions are good to a tenth), below 0.4 it is
 * something else: then the job would be as slow without a single miss, since what is busy longest
 * hides the rest. A job that is faster than naive should be is not as random as it says, or has
 * placed itself already: some of the loss may still be translation.
 */
#include "placement/explain.h"

#include "placement/price.h"
#include "placement/size_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double MOSTLY = 0.85;
static const double SLIGHTLY = 0.4;
static const double ABOVE_HERE = 1.1; /* seen over here: faster than naive can be */

struct explaining {
    const struct fingerprint *fp;
    const struct explain_request *request;
    struct limit limit;
    struct explain_answer *out;
};

static void expect(const struct explaining *e)
{
    struct explain_answer *out = e->out;
    struct price price;
    struct maybe_f64 translation;

    price_read(e->fp, &e->limit, e->request->access, out->transaction_bytes, 0, &price);
    out->basis = price.basis;
    translation = e->limit.seen && e->request->bytes <= e->limit.usable_bytes
                      ? KNOWN_F64(0)
                      : price_translation_ns(&price, e->request->bytes);
    out->inside_gbps = price.inside_ns;
    if (!IS_KNOWN(price.inside_ns)) {
        out->here_gbps = price.inside_ns;
        return;
    }
    out->inside_gbps.v = out->transaction_bytes / price.inside_ns.v;
    out->here_gbps = translation;
    if (IS_KNOWN(translation))
        out->here_gbps.v = out->transaction_bytes / fmax(translation.v, price.inside_ns.v);
}

static void judge(const struct explaining *e)
{
    struct explain_answer *out = e->out;
    const double seen = e->request->seen_gbps;
    const double inside = out->inside_gbps.v;
    const double here = out->here_gbps.v;
    double share;

    out->culprit = CULPRIT_CANNOT_SAY;
    out->loss_gbps = UNKNOWN_F64(REASON_NOT_MEASURED);
    out->translation_share = UNKNOWN_F64(REASON_NOT_MEASURED);
    if (!IS_KNOWN(out->inside_gbps))
        return;
    out->loss_gbps = KNOWN_F64(fmax(inside - seen, 0));
    if (!IS_KNOWN(out->here_gbps))
        return;
    if (seen >= inside * (1 - STRATEGY_WORTH)) {
        out->translation_share = UNKNOWN_F64(REASON_NOT_APPLICABLE);
        out->culprit = CULPRIT_NOT;
        return;
    }
    share = (1 / here - 1 / inside) / (1 / seen - 1 / inside);
    out->translation_share = KNOWN_F64(fmin(fmax(share, 0), 1));
    if (seen > here * ABOVE_HERE)
        out->culprit = CULPRIT_PARTLY;
    else if (share >= MOSTLY)
        out->culprit = CULPRIT_TRANSLATION;
    else
        out->culprit = share >= SLIGHTLY ? CULPRIT_PARTLY : CULPRIT_NOT;
}

/* ---- in words ---- */

static void say_cannot(const struct explaining *e)
{
    struct explain_answer *out = e->out;
    const bool kind = !IS_KNOWN(out->inside_gbps);
    const struct maybe_f64 *missing = kind ? &out->inside_gbps : &out->here_gbps;
    char asked[SIZE_TEXT_BYTES];

    snprintf(out->reason, sizeof(out->reason),
             "Cannot say: fingerprint %s does not know what %ss of %u bytes reach %s%s (%s).",
             out->fingerprint_id, access_name(e->request->access), out->transaction_bytes,
             kind ? "inside the reach" : "over ", kind ? "" : size_text(e->request->bytes, asked),
             reason_slug(missing->reason));
    snprintf(out->checks[0], sizeof(out->checks[0]),
             "Measure this GPU with depth full: POST /v1/gpus/{gpu}/fingerprint with {\"depth\": "
             "\"full\"}, or reachctl fingerprint --depth full.");
}

static void say_verdict(const struct explaining *e)
{
    static const char *const verdicts[] = {[CULPRIT_CANNOT_SAY] = "Cannot say",
                                           [CULPRIT_TRANSLATION] = "It is translation",
                                           [CULPRIT_PARTLY] = "Partly translation",
                                           [CULPRIT_NOT] = "It is not translation"};
    struct explain_answer *out = e->out;
    const double seen = e->request->seen_gbps;
    char asked[SIZE_TEXT_BYTES];
    char more[160] = "";

    size_text(e->request->bytes, asked);
    if (!IS_KNOWN(out->translation_share))
        snprintf(more, sizeof(more), "nothing is lost");
    else if (seen > out->here_gbps.v * ABOVE_HERE)
        snprintf(more, sizeof(more),
                 "the job is faster than random accesses anywhere can be, so it is less random, or "
                 "some of it is placed");
    else
        snprintf(more, sizeof(more),
                 "translation accounts for %.0f%% of the time that an access takes longer",
                 out->translation_share.v * 100);
    snprintf(out->reason, sizeof(out->reason),
             "%s: %.4g GB/s seen, %.4g expected over %s with any SM anywhere, %.4g inside the "
             "reach; %s (fingerprint %s).",
             verdicts[out->culprit], seen, out->here_gbps.v, asked, out->inside_gbps.v, more,
             out->fingerprint_id);
}

/* What would prove it: the same job where no translation misses, and one that differs in nothing
 * but the thing that should not matter. */
static void say_proofs(const struct explaining *e)
{
    struct explain_answer *out = e->out;
    const bool guilty = out->culprit != CULPRIT_NOT;
    char half[SIZE_TEXT_BYTES] = "half of the reach";

    if (e->limit.seen)
        size_text(e->limit.usable_bytes / 2, half);
    if (guilty) {
        snprintf(out->checks[0], sizeof(out->checks[0]),
                 "Run the same job over %s, half of the reach: it should reach some %.4g GB/s.",
                 half, out->inside_gbps.v);
        snprintf(out->checks[1], sizeof(out->checks[1]),
                 "Run it with windows by group, as the plan for these bytes has them: about the "
                 "same there.");
        snprintf(out->checks[2], sizeof(out->checks[2]),
                 "Control: as many windows, but dealt to SMs without regard to groups. That must "
                 "not help; if it does, it was not the TLB.");
        if (out->culprit == CULPRIT_PARTLY)
            snprintf(out->checks[3], sizeof(out->checks[3]),
                     "What is still lost over half of the reach is not translation's: see there "
                     "first.");
        return;
    }
    snprintf(out->checks[0], sizeof(out->checks[0]),
             "To make sure: run the same job over %s. It should be no faster there.", half);
    if (!IS_KNOWN(out->translation_share))
        return;
    snprintf(out->checks[1], sizeof(out->checks[1]),
             "Look at what the job does besides: its input and the link it comes over, work "
             "for each access, too few warps, many atomics at one address.");
    snprintf(out->checks[2], sizeof(out->checks[2]),
             "Look at what memory really moves for an access (a profiler's sectors for each "
             "request): uncoalesced ones move more than %u bytes.",
             out->transaction_bytes);
    snprintf(out->checks[3], sizeof(out->checks[3]),
             "Look for other work on the GPU, and for clocks below those of the fingerprint.");
}

enum status explain_loss(const struct fingerprint *fp, const struct explain_request *request,
                         struct explain_answer *out, struct err *err)
{
    struct explaining e = {.fp = fp, .request = request, .out = out};
    enum status s = limit_read(fp, request->bytes, request->fingerprint_id, &e.limit, err);

    memset(out, 0, sizeof(*out));
    if (s == STATUS_OK)
        s = strategy_sizes(request->element_bytes, request->transaction_bytes, &out->element_bytes,
                           &out->transaction_bytes, err);
    if (s != STATUS_OK)
        return s;
    if (!(request->seen_gbps > 0 && request->seen_gbps <= STRATEGY_MAX_RATE))
        return err_set_field(err, STATUS_INVALID_ARGUMENT, "gbps",
                             "gbps must be a number above 0 and up to %.0f: what the job sees",
                             STRATEGY_MAX_RATE);
    memcpy(out->fingerprint_id, e.limit.fingerprint_id, sizeof(out->fingerprint_id));
    expect(&e);
    judge(&e);
    if (out->culprit == CULPRIT_CANNOT_SAY) {
        say_cannot(&e);
        return STATUS_OK;
    }
    say_verdict(&e);
    say_proofs(&e);
    return STATUS_OK;
}
