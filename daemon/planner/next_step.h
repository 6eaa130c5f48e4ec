/* next_step.h: selects the next step for the user if a fingerprint lacks a number. Another
 * measurement is suggested only if it can find more. The functions are pure, allocate nothing, and
 * may be called on any thread. */
#pragma once

#include "fingerprint/fingerprint.h"

/* Returns the next step as a static text of one or two sentences. `had` is the depth that was
 * measured, and `needed` is the least depth that measures the number. `why` is the reason why the
 * number is absent. */
const char *next_step(const struct fingerprint *fp, enum depth had, enum depth needed,
                      enum reason why);

/* Returns the next step for a number that depth full measures. */
const char *next_step_full(const struct fingerprint *fp, enum reason why);

/* Appends a blank and the text of next_step_full to `text` if the number is absent. */
void next_step_append(const struct fingerprint *fp, struct maybe_f64 number, char *text,
                      size_t room);
