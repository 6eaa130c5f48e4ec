/* serve.h: the daemon proper: store, pipeline and API around one event loop. */
#ifndef REACH_SERVE_H
#define REACH_SERVE_H

#include "config/config.h"

/* Serves until SIGTERM or SIGINT. SIGHUP reads file, environment and the command line `argv` again
 * and renews in `config` what may change while it serves. `version` is a static string. */
enum status serve_run(struct config *config, int argc, char **argv, const char *version,
                      struct err *err);

/* How lines are logged from now on. Any time. */
void serve_set_log(const struct config *config);

#endif
