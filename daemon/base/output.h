/* output.h: checks at the end of a program whether its standard output was written. */
#pragma once

#include "base/status.h"

/* Flushes the standard output. Returns STATUS_IO if the flush or an earlier write has failed, for
 * example on a full disk. The output is then incomplete. */
enum status output_end(struct err *err);

/* Ends the output of a program without a log. If a write failed, prints the error as "PROGRAM: ..."
 * and returns `failed`; otherwise returns `exit_status`. */
int output_exit(const char *program, int exit_status, int failed);
