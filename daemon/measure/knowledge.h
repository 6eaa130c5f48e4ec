/* knowledge.h: what a measurement adds to what is known of a GPU.
 *
 * A measurement that agrees with what is known is merged with it (fingerprint/merge.h). One that
 * contradicts it is not believed alone: beside a load a level or a group can look like another. It
 * is made again, and only if the second one contradicts what is known in the same way does it take
 * the place of all of it. Pure but for the log.
 */
#ifndef REACH_MEASURE_KNOWLEDGE_H
#define REACH_MEASURE_KNOWLEDGE_H

#include "fingerprint/fingerprint.h"

struct knowledge {
    const struct fingerprint *known; /* borrowed; NULL: nothing */
    bool doubted;               /* a check has found it out of date: one contradiction is enough */
    bool suspected;             /* a measurement has contradicted it: */
    struct fingerprint suspect; /* this one */
};

/* What is known with this measurement, in `*out`.
 * STATUS_INCONCLUSIVE: the measurement says nothing (fingerprint_is_conclusive).
 * STATUS_DISTURBED: it contradicts what is known, and nothing has confirmed it yet; measure again.
 * STATUS_NO_MEMORY. */
enum status knowledge_join(struct knowledge *k, const struct fingerprint *measured,
                           struct fingerprint *out, struct err *err);

#endif
