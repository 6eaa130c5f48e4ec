/* job_env.h: the environment variables of a job for one GPU. They contain a text with everything
 * that the planner reads from a fingerprint, and numbers for scripts that have no planner. The
 * daemon writes the variables, and libreach reads the text. The functions are pure and may be
 * called on any thread.
 *
 * A table of windows is right for one size of allocation only. With the text, libreach plans for
 * any size. It uses the code of the daemon and gives the same answers.
 *
 *     {"version":1,"id":"fp..","gpu":{..},"origin":"measured",..,"check":"0123456789abcdef"}
 *
 * The text is one JSON object of printable ASCII characters, without blanks between members. It
 * contains the members of the fingerprint document that daemon/fingerprint/members.c marks
 * FOR_PLANNER, and its lists are in columns (docs/formats.md). A reader skips unknown members.
 * `check` is the FNV-1a hash of everything before `,"check"`. It detects a truncated or edited
 * text, but does not protect from forgery.
 */
#pragma once

#include "base/status.h"
#include "fingerprint/fingerprint.h"

/* The largest size of the text, including NUL. Linux allows 128 KiB for one variable
 * (MAX_ARG_STRLEN), and the Slurm plugin allows 120 KiB for all variables of a GPU. */
enum { JOB_ENV_TEXT_BYTES = 112 << 10 };

/* Returns the text, allocated by malloc. `id` is the id of the fingerprint. Bytes that are not
 * printable ASCII become '?'. Returns NULL and sets the error if memory runs out or the text is too
 * long. */
char *job_env_text(const struct fingerprint *fp, const char *id, struct err *err);

/* Returns every variable of this GPU as "NAME=value\n", allocated by malloc:
 *
 *     REACH_FINGERPRINT_ID   the id of the fingerprint
 *     REACH_GPU_UUID         the UUID of the GPU
 *     REACH_SCOPE_BYTES      the bytes that one pass of reads should touch at random
 *     REACH_WINDOWS          the bytes of each window of the whole memory, as in 1,2,3
 *     REACH_WINDOW_OF_SM     the window of each SM id, as in 0,0,1; -1 means no window
 *     REACH_JOB              the text
 *
 * The two window variables are omitted if there are no windows. Only the id, the GPU and the text
 * remain if the memory of the GPU is not known.
 *
 * Returns NULL and sets the error if memory runs out or placement_scope fails. */
char *job_env_variables(const struct fingerprint *fp, const char *id, struct err *err);

/* Reads a text. `*out` receives a fingerprint that passes fingerprint_check. The planner gives the
 * same answers for this fingerprint and for the original. Members that the planner does not read
 * are unknown. `out_id` needs FINGERPRINT_ID_BYTES. Returns STATUS_CORRUPT if the text was
 * truncated or changed, or a field is wrong, and STATUS_NOT_SUPPORTED for another version. */
enum status job_env_read(const char *text, struct fingerprint *out, char *out_id, struct err *err);
