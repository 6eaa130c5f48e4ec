/* knowledge.h: what a measurement adds to what is known of a GPU.
 *
 * A measurement that agrees with what is known is merged with it (fingerprint/merge.h). One that
 * contradicts it is not believed alone: beside a load a level or a group can look like another, and
 * twice in the same way. It is made again, and it takes the place of all that was known only if
 * both were quiet, agree with each other, and leave no level open that was not open before.
 *
 * One that finds no reach says nothing if another could, so it is made again too. Of a GPU whose
 * reaches are not known, two in a row that were quiet and agree are an answer: its levels cannot be
 * counted, and what else was found is known. Pure but for the log.
 */
#ifndef REACH_MEASURE_KNOWLEDGE_H
#define REACH_MEASURE_KNOWLEDGE_H

#include "base/status.h"
#include "fingerprint/fingerprint.h"

struct knowledge {
    const struct fingerprint *known; /* borrowed; NULL: nothing */
    bool doubted;               /* a check has found it out of date: one contradiction is enough */
    bool suspected;             /* a measurement has contradicted it: */
    struct fingerprint suspect; /* this one */
    bool unsettled;             /* the measurement before this one was quiet and found no reach: */
    struct fingerprint without; /* this one */
};

/* What is known with this measurement, in `*out`. `quiet`: no probe of it was disturbed, and no
 * other process had the GPU open. STATUS_INCONCLUSIVE: the measurement finds no reach
 * (fingerprint_is_conclusive), and that is not an answer, or not yet. STATUS_DISTURBED: it
 * contradicts what is known, and nothing has confirmed it yet; measure again. STATUS_NO_MEMORY. */
enum status knowledge_join(struct knowledge *k, const struct fingerprint *measured, bool quiet,
                           struct fingerprint *out, struct err *err);

#endif
