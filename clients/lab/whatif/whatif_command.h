/* whatif_command.h: reach-lab what-if. */
#pragma once

#include "base/status.h"
#include "fingerprint/fingerprint.h"

/* Takes the arguments that follow the command. Returns an exit status (exit_status.h). */
int whatif_command(int argc, char **argv);

/* Reads the file of a fingerprint. Returns STATUS_CORRUPT if it is no fingerprint. */
enum status whatif_load_fingerprint(const char *path, struct fingerprint *out, struct err *err);
