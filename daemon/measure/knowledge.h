/* knowledge.h: adds a measurement to the known results of a GPU.
 *
 * A measurement that agrees with the known results is merged with them (fingerprint/merge.h). A
 * measurement that contradicts them is not accepted alone. Beside other work on the GPU, a level or
 * a group can look like another, even twice in the same way. So the measurement is repeated. The
 * second measurement replaces all known results only if both measurements were quiet, agree with
 * each other, and leave no further level open. Beside other work, the second measurement replaces
 * results of depth quick that lack a level, if both measurements found that level completely.
 *
 * A measurement that finds no reach is repeated too, because another measurement may find a reach.
 * If no reach of the GPU is known, two quiet measurements in a row that agree are an answer. The
 * levels of such a GPU cannot be counted, and the other findings are known. The functions are pure
 * except for the log.
 */
#pragma once

#include "base/status.h"
#include "fingerprint/fingerprint.h"

struct knowledge {
    const struct fingerprint *known; /* borrowed; NULL if there is none */
    bool doubted;   /* a check has found `known` out of date, so one contradiction is enough */
    bool suspected; /* `suspect` has contradicted `known` */
    struct fingerprint suspect; /* the measurement that contradicted `known` */
    bool unsettled;             /* the previous measurement was quiet and found no reach */
    struct fingerprint without; /* the previous measurement, if `unsettled` */
};

/* Adds this measurement to the known results and writes them to `*out`. `quiet` means that no probe
 * was disturbed and no other process had the GPU open. Returns STATUS_INCONCLUSIVE if the
 * measurement finds no reach (fingerprint_is_conclusive) and has to be repeated before this result
 * counts. Returns
 * STATUS_DISTURBED if it contradicts the known results and is not confirmed yet; then measure
 * again. Returns STATUS_NO_MEMORY if memory runs out. */
enum status knowledge_join(struct knowledge *k, const struct fingerprint *measured, bool quiet,
                           struct fingerprint *out, struct err *err);
