/* job_env.h: the environment variables of a job for one GPU. They contain a text with everything
 * that the planner reads of a fingerprint, and numbers for scripts without a planner. The daemon
 * writes the variables, and libreach reads the text. The functions are pure and may be called on
 * any thread.
 *
 * A table of windows is right for one allocation size only. With the text libreach plans for any
 * size, with the code of the daemon and the same answers.
 *
 *     {"version":1,"id":"fp..","gpu":{..},"origin":"measured",..,"check":"0123456789abcdef"}
 *
 * The text is one JSON object of printable ASCII characters without blanks between them. Its
 * members are those of the fingerprint document, restricted to the rows that
 * daemon/fingerprint/members.c marks FOR_PLANNER, and its lists are in columns
 * (docs/formats.md). A reader skips members that it does not have. `check` is the FNV-1a hash
 * of everything before
 * `,"check"`: it detects a truncated or edited text, and is no protection from forgery.
 */
#ifndef REACH_PLANNER_JOB_ENV_H
#define REACH_PLANNER_JOB_ENV_H

#include "base/status.h"
#include "fingerprint/fingerprint.h"

#include <stddef.h>

/* The most bytes of the text, including NUL. Linux allows 128 KiB for one variable
 * (MAX_ARG_STRLEN), and the Slurm plugin takes 120 KiB for all variables of a GPU. */
enum { JOB_ENV_TEXT_BYTES = 112 << 10 };

/* Returns the text, from malloc. Returns NULL and an error if memory runs out or the text is too
 * long. `id` is the fingerprint's id. Bytes of texts that are not printable ASCII become '?'. */
char *job_env_text(const struct fingerprint *fp, const char *id, struct err *err);

/* Returns every variable of this GPU as "NAME=value\n", from malloc:
 *
 *     REACH_FINGERPRINT_ID   the id
 *     REACH_GPU_UUID         the GPU
 *     REACH_SCOPE_BYTES      the bytes that one pass of reads should touch at random
 *     REACH_WINDOWS          windows of the whole memory: the bytes of each, side by side, as 1,2,3
 *     REACH_WINDOW_OF_SM     the window of each SM id, likewise; -1 means no window
 *     REACH_JOB              the text
 *
 * The two window variables are omitted if there are no windows. Only the id, the GPU and the text
 * remain if the memory of the GPU is not known.
 *
 * Returns NULL and an error if memory runs out or placement_scope fails. */
char *job_env_variables(const struct fingerprint *fp, const char *id, struct err *err);

/* Reads a text. `*out` gets a fingerprint that holds every invariant. The planner gives the same
 * answers for it as for the original, and members that the planner does not read are unknown.
 * `out_id` needs FINGERPRINT_ID_BYTES. Returns STATUS_CORRUPT if the text was truncated or changed,
 * or a field is wrong, and STATUS_NOT_SUPPORTED for another version. */
enum status job_env_read(const char *text, struct fingerprint *out, char *out_id, struct err *err);

#endif
