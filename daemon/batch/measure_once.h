/* measure_once.h: the modes that do one thing and exit: --measure and --analyze. */
#ifndef REACH_BATCH_MEASURE_ONCE_H
#define REACH_BATCH_MEASURE_ONCE_H

#include "config/config.h"

/* --measure: measures all GPUs at each depth, prints a table for each, exports if asked. Fails
 * if any measurement does, after all are done. */
enum status measure_once_run(const struct config *config, const char *version, int argc,
                             char **argv, struct err *err);

/* --analyze: observations from a file in, the fingerprint as JSON out. */
enum status measure_once_analyze(const struct config *config, struct err *err);

#endif
