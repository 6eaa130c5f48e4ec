/* serve.h: the daemon proper: store, pipeline and API around one event loop. */
#ifndef REACH_SERVE_H
#define REACH_SERVE_H

#include "config/config.h"

/* Serves until SIGTERM or SIGINT. SIGHUP reads file, environment and the command line `argv` again
 * and renews in `config` what may change while it serves. `version` is a static string. */
enum status serve_run(struct config *config, int argc, char **argv, const char *version,
                      struct err *err);

/* --check-config: does what a start does up to the database, which is not opened, and undoes it.
 * Warns, and fails, as serve_run would. An address or a state file that another process has is no
 * failure, because a running daemon has them. */
enum status serve_check(struct config *config, struct err *err);

/* How lines are logged from now on. Any time. */
void serve_set_log(const struct config *config);

#endif
