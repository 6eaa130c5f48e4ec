/* oneshot.h: the modes that do one thing and exit: measure (and export), conclude. */
#ifndef REACH_ONESHOT_H
#define REACH_ONESHOT_H

#include "config.h"

/* --measure: measures all GPUs at each depth, prints a table for each, exports where asked. Fails
 * if any measurement does, after all are done. */
enum status oneshot_measure(const struct config *config, const char *version, int argc, char **argv,
                            struct err *err);

/* --conclude: observations from a file in, the fingerprint as JSON out. */
enum status oneshot_conclude(const struct config *config, struct err *err);

#endif
