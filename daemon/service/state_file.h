/* state_file.h: opens the state file of the configuration. */
#pragma once

#include "config/config.h"
#include "store/store.h"

/* Checks conditions that waiting does not change: the permissions, the kind of file, and whether a
 * newer release wrote it. Changes nothing. Returns STATUS_READ_ONLY, STATUS_INVALID_ARGUMENT or
 * STATUS_NOT_SUPPORTED if a condition is not met. */
enum status state_file_check(const struct config *config, struct err *err);

/* Opens config->state after that check. Creates its directory if the path is the default or with
 * --demo. Opens a store in memory if opening fails and the option allows that. If the daemon
 * serves, a state file that cannot be written yet is no failure (store_open_degraded). The caller
 * owns `*out` (store_close). */
enum status state_file_open(const struct config *config, struct store **out, struct err *err);
