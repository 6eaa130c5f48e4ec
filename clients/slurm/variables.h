/* variables.h: checks the daemon's lines for one GPU (daemon/planner/job_env.h) and numbers them
 * for a job's environment. Needs only libc.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { VARIABLES_NAME_BYTES = 64, VARIABLES_MAX_LINES = 16, VARIABLES_KINDS = 6 };

/* Returns whether the text consists of at most VARIABLES_MAX_LINES printable lines
 * REACH_NAME=value, one of which is REACH_JOB with a value. No other text may enter a job. */
bool variables_check(const char *text);

/* Removes the next line from `*rest`, which has passed the check and is modified. Writes the name
 * with the number of the GPU, "REACH_JOB_0", to name[VARIABLES_NAME_BYTES]. Returns the value, or
 * NULL at the end. */
const char *variables_next(char **rest, unsigned gpu, char *name);

/* Returns the name of variable 0 to VARIABLES_KINDS - 1, without a number. */
const char *variables_name(unsigned kind);

/* Returns whether `env`, which ends with NULL, contains one of these variables. */
bool variables_any(char *const *env);

/* Returns whether `more` bytes fit. If the environment is too large, execve fails, and with it the
 * job. So only half of the limit of the kernel is used. */
bool variables_fit(char *const *env, size_t more);
