/* rounding.h: the last step of every conclusion: numbers as precise as they are. */
#ifndef REACH_ANALYSIS_ROUNDING_H
#define REACH_ANALYSIS_ROUNDING_H

#include "fingerprint/fingerprint.h"

/* Cuts what was measured, throughputs, ratios, penalties and confidences, to six significant
 * digits. Nothing is concluded from them after this. */
void rounding_apply(struct fingerprint *fp);

#endif
