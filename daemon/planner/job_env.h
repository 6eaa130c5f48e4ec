/* job_env.h: the environment variables of a job for one GPU: all of a fingerprint that the planner
 * reads, as one line of text, and what a script can use without a planner. The daemon writes them,
 * libreach reads the line. Pure; any thread.
 *
 * A table of windows is right for one allocation size only; from the line libreach plans for any
 * size, with the code of the daemon and the same answers.
 *
 *     v1 gpu=GPU-.. name=.. driver=.. mig=0 origin=measured sms=132 memory=.. id=fp..
 *     depth=full taken=SECONDS verdict=clean range=.. reach=.. entry=.. recommended=..
 *     levels=REACH:ENTRY:gpu,.. plateau=.. whole=.. groups=0x2,1x2,-x4,.. group_gbps=..,..
 *     curve=BYTES:NAIVE:BY_GROUP,.. rates=read:32:PLATEAU,BYTES:NAIVE:BY_GROUP,../write:..
 *     contiguity=FRAME:CONTIGUOUS_NS:SCATTERED_NS host=BYTES
 *     kinds=host-pinned:PEER:PROBED:PLATEAU:REACH:BY_GROUP:SMS:WRITE:ATOMIC:WINDOWS,
 *     BYTES:NAIVE:BY_GROUP,../managed-host:..
 *     sides=GRANULE:NEAR_CYCLES:FAR_CYCLES,0x2,1x2,.. sets=128:BYTES:SAME:OWN:NEAR,..
 *     peers=BYTES,..
 *     check=0123456789abcdef
 *
 * One blank between words, each word once and in this order; the last six before `check` only if
 * they were measured, and `kinds` (with `peers`, the memory of each) and `sets` only if they fit. A
 * number that is not known is
 * "?reason", one that is not observable "!reason" (base/maybe.h). `groups` is the group of SM 0, of
 * SM 1 and so on, "x2" for two that are equal, "-" for none. `check` is the FNV-1a hash of
 * everything before its blank, which detects a truncated or edited line. A newer release adds words
 * before `check`, and older ones skip them; a change to the meaning of a word makes it v2. Numbers
 * are written so that reading gives the same ones.
 */
#ifndef REACH_PLANNER_JOB_ENV_H
#define REACH_PLANNER_JOB_ENV_H

#include "fingerprint/fingerprint.h"

#include <stddef.h>

enum {
    JOB_ENV_LINE_BYTES = 32 << 10, /* of the line, with its end; the largest possible one fits */
    JOB_ENV_BYTES = 64 << 10       /* of all variables of one GPU */
};

/* The line. `id` is the fingerprint's. `out` needs JOB_ENV_LINE_BYTES. */
enum status job_env_line(const struct fingerprint *fp, const char *id, char *out, struct err *err);

/* Every variable of this GPU as "NAME=value\n":
 *
 *     REACH_FINGERPRINT_ID   the id
 *     REACH_GPU_UUID         the GPU
 *     REACH_SCOPE_BYTES      what one pass over the whole memory should touch at random, for reads
 *     REACH_WINDOWS          windows of the whole memory: the bytes of each, side by side, as 1,2,3
 *     REACH_WINDOW_OF_SM     the window of each SM id, likewise; -1: none
 *     REACH_JOB              the line
 *
 * The two window variables are omitted if there are no windows, and all but the id and the line if
 * the memory of the GPU is not known. `out` needs JOB_ENV_BYTES.
 * Errors: those of placement_scope (the fingerprint knows too little). */
enum status job_env_variables(const struct fingerprint *fp, const char *id, char *out,
                              struct err *err);

/* Reads a line: `*out` is a fingerprint that holds every invariant and from which the planner
 * answers as from the one that was written; what the planner does not read is unknown in it.
 * `out_id` needs FINGERPRINT_ID_BYTES. STATUS_CORRUPT names the word; STATUS_NOT_SUPPORTED: another
 * version. */
enum status job_env_read(const char *line, struct fingerprint *out, char *out_id, struct err *err);

#endif
