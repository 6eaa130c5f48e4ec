/* report.h: a fingerprint as a short table for a person. */
#ifndef REACH_BATCH_REPORT_H
#define REACH_BATCH_REPORT_H

#include "fingerprint/fingerprint.h"

#include <stdio.h>

void report_print(FILE *out, const struct fingerprint *fp);

#endif
