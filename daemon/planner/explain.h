/* explain.h: checks whether the TLB is the bottleneck. It compares the observed speed of a job with
 * the prediction from the fingerprint. The functions are pure, allocate nothing, and may be called
 * on any thread. */
#pragma once

#include "planner/strategy.h"

enum bottleneck {
    BOTTLENECK_CANNOT_SAY = 0,
    BOTTLENECK_TRANSLATION,
    BOTTLENECK_PARTLY,
    BOTTLENECK_NOT
};
/* "cannot-say", "translation", "partly", "not-translation" */
const char *bottleneck_name(enum bottleneck c);

enum { EXPLAIN_CHECKS = 4, EXPLAIN_CHECK_BYTES = 240 };

struct explain_answer {
    char fingerprint_id[FINGERPRINT_ID_BYTES];
    uint32_t element_bytes;
    uint32_t transaction_bytes;
    enum basis basis;
    enum bottleneck bottleneck;
    struct maybe_f64 in_reach_gbps; /* expected speed of such accesses within the reach */
    struct maybe_f64 expected_gbps; /* expected speed over `bytes`, of any SM anywhere */
    /* Expected speed of such accesses if all of the memory were physically contiguous, and if all
     * of it were physically scattered. */
    struct maybe_f64 naive_contiguous_gbps;
    struct maybe_f64 naive_scattered_gbps;
    struct maybe_f64 loss_gbps; /* in_reach_gbps less the observed speed, at least 0 */
    /* The share of the lost time that translation causes, 0..1: (1/expected - 1/in_reach) /
     * (1/observed - 1/in_reach). The share is unknown if no time is lost. */
    struct maybe_f64 translation_share;
    char reason[460]; /* the comparison in one sentence */
    /* Steps that would prove the result, or other things to check. Each is one sentence, and ""
     * follows the last one. */
    char checks[EXPLAIN_CHECKS][EXPLAIN_CHECK_BYTES];
};

/* Explains the speed of a job. Returns the errors of strategy_plan. If the fingerprint has no rate
 * for such accesses, the result is BOTTLENECK_CANNOT_SAY and not an error. */
enum status explain_loss(const struct fingerprint *fp, const struct explain_request *request,
                         struct explain_answer *out, struct err *err);
