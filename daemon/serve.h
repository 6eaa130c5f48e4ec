/* serve.h: the daemon proper: store, pipeline and API around one event loop. */
#ifndef REACH_SERVE_H
#define REACH_SERVE_H

#include "config.h"
#include "store/store.h"

/* Serves until SIGTERM, SIGINT or SIGHUP. `version` is a static string. */
enum status serve_run(const struct config *config, const char *version, struct err *err);

/* Opens the state file as the configuration says, making its directory where it may
 * (--demo, or the default path), and falling back to memory where the option allows. */
enum status serve_open_store(const struct config *config, struct store **out, struct err *err);

#endif
