/* state_file.h: opens the state file as the configuration says. */
#ifndef REACH_SERVICE_STATE_FILE_H
#define REACH_SERVICE_STATE_FILE_H

#include "config/config.h"
#include "store/store.h"

/* Opens config->state, creating its directory if the path is the default or with --demo, and falls
 * back to memory if the option allows it. In a daemon that serves, a state file that cannot be
 * written yet is no failure (store_open_degraded). The caller owns `*out` (store_close). */
enum status state_file_open(const struct config *config, struct store **out, struct err *err);

#endif
