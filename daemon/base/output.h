/* output.h: what a program checks at its end: was its standard output written? */
#ifndef REACH_BASE_OUTPUT_H
#define REACH_BASE_OUTPUT_H

#include "base/status.h"

/* Writes what is left of the standard output. STATUS_IO if that or an earlier write has failed,
 * as on a full disk: then a result is incomplete. */
enum status output_end(struct err *err);

/* The same for a program without a log: prints the error as "PROGRAM: ..." and returns `failed`, or
 * else returns `exit_status`. */
int output_exit(const char *program, int exit_status, int failed);

#endif
