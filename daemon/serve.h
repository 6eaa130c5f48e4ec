/* serve.h: runs the daemon: store, pipeline and API around one event loop. */
#pragma once

#include "config/config.h"

/* Serves until SIGTERM or SIGINT. SIGHUP reads file, environment and the command line `argv` again,
 * and updates the options in `config` that may change while it serves. `version` is a static
 * string. */
enum status serve_run(struct config *config, int argc, char **argv, const char *version,
                      struct err *err);

/* --check-config: makes and undoes every step of a start up to the database, which is not opened.
 * The function warns and fails like serve_run. An address or a state file that another process uses
 * is no failure, because a running daemon uses both. */
enum status serve_check(struct config *config, struct err *err);

/* Sets the log options from now on. The function may be called at any time. */
void serve_set_log(const struct config *config);
