/* measure_once.h: the modes that exit after their work: --measure and --analyze. */
#pragma once

#include "config/config.h"

/* --measure: measures all GPUs at each depth, prints a table for each, and exports if requested.
 * Returns an error after all measurements if any of them failed. */
enum status measure_once_run(const struct config *config, const char *version, int argc,
                             char **argv, struct err *err);

/* --analyze: reads observations from a file and writes the fingerprint as JSON. */
enum status measure_once_analyze(const struct config *config, struct err *err);
