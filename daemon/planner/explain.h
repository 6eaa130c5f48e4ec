/* explain.h: checks whether the TLB is the bottleneck. It compares the observed speed of a job with
 * the prediction from the fingerprint. The functions are pure, allocate nothing, and may be called
 * on any thread. */
#ifndef REACH_PLANNER_EXPLAIN_H
#define REACH_PLANNER_EXPLAIN_H

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
    struct maybe_f64 in_reach_gbps; /* expected for such accesses within the reach */
    struct maybe_f64 expected_gbps; /* expected for them over `bytes`, any SM anywhere */
    /* The same expectation if all of the memory were physically contiguous, and if none of it
     * were. */
    struct maybe_f64 naive_contiguous_gbps;
    struct maybe_f64 naive_scattered_gbps;
    struct maybe_f64 loss_gbps; /* in_reach less observed; 0 if the job observes more */
    /* The share of the extra time of an access, relative to one within the reach, that translation
     * causes, 0..1: (1/expected - 1/in_reach) / (1/observed - 1/in_reach). Unknown without a
     * loss. */
    struct maybe_f64 translation_share;
    char reason[460]; /* the comparison in one sentence */
    /* Steps that would prove it, or other things to check: one sentence each; "" after the last. */
    char checks[EXPLAIN_CHECKS][EXPLAIN_CHECK_BYTES];
};

/* Errors are the same as for strategy_plan. A fingerprint without a rate for such accesses is not
 * an error; the result is BOTTLENECK_CANNOT_SAY. */
enum status explain_loss(const struct fingerprint *fp, const struct explain_request *request,
                         struct explain_answer *out, struct err *err);

#endif
