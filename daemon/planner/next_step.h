/* next_step.h: the next step if a fingerprint lacks a number. Another measurement helps only if it
 * can find more than the present one. The functions are pure, allocate nothing, and may be called
 * on any thread. */
#ifndef REACH_PLANNER_NEXT_STEP_H
#define REACH_PLANNER_NEXT_STEP_H

#include "fingerprint/fingerprint.h"

/* The next step in one or two sentences, static. `needed` is the least depth that measures the
 * number, `had` is the depth that was measured, and `why` is the reason why the number is
 * absent. */
const char *next_step(const struct fingerprint *fp, enum depth had, enum depth needed,
                      enum reason why);

/* The next step for a number that depth full measures. */
const char *next_step_full(const struct fingerprint *fp, enum reason why);

/* Appends a blank and next_step_full to a sentence, if the number is absent. */
void next_step_append(const struct fingerprint *fp, struct maybe_f64 number, char *text,
                      size_t room);

#endif
