/* variables.h: checks the daemon's lines for one GPU (daemon/planner/job_env.h) and numbers them
 * for a job's environment. Needs only libc.
 */
#ifndef REACH_CLIENTS_SLURM_VARIABLES_H
#define REACH_CLIENTS_SLURM_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>

enum { VARIABLES_NAME_BYTES = 64, VARIABLES_MAX_LINES = 16, VARIABLES_KINDS = 6 };

/* Whether these are only lines REACH_NAME=value, printable, at most VARIABLES_MAX_LINES, one of
 * them REACH_JOB with any value but "". Nothing else may go into a job. */
bool variables_check(const char *text);

/* Removes the next line from `*rest`, which has passed the check and is modified. Writes the name
 * with the number of the GPU, "REACH_JOB_0", to name[VARIABLES_NAME_BYTES] and returns the value;
 * NULL at the end. */
const char *variables_next(char **rest, unsigned gpu, char *name);

/* The names of all variables, without a number: 0 .. VARIABLES_KINDS - 1. */
const char *variables_name(unsigned kind);

/* Whether any of `env`, which NULL ends, is one of these. */
bool variables_any(char *const *env);

/* Whether `more` bytes fit. An environment that is too large fails execve and so the job: only half
 * of what the kernel allows is used. */
bool variables_fit(char *const *env, size_t more);

#endif
