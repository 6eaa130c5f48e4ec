/* variables.h: the daemon's lines for one GPU (daemon/planner/job_env.h), checked and numbered,
 * on their way into a job's environment. libc alone.
 */
#ifndef REACH_CLIENTS_SLURM_VARIABLES_H
#define REACH_CLIENTS_SLURM_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>

enum { VARIABLES_NAME_BYTES = 64, VARIABLES_MAX_LINES = 16, VARIABLES_KINDS = 5 };

/* Are these lines REACH_NAME=value alone, printable, few, one of them REACH_JOB=v..? Nothing else
 * goes into a job. */
bool variables_check(const char *text);

/* Cuts the next line off `*rest`, which is checked, changing the text. `name`
 * (VARIABLES_NAME_BYTES) gets the number of the GPU behind it: "REACH_JOB_0". NULL at the end, else
 * the value. */
const char *variables_next(char **rest, unsigned gpu, char *name);

/* The name of each variable that there is, without a number, by 0 .. VARIABLES_KINDS - 1. */
const char *variables_name(unsigned kind);

/* Is any of `env` (NULL at its end) one of these? */
bool variables_any(char *const *env);

/* Would `more` bytes leave the job's program room to start? An environment that is too large fails
 * execve, and so the job: only half of what the kernel allows is used. */
bool variables_fit(char *const *env, size_t more);

#endif
