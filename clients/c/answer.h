/* answer.h: the daemon's JSON -> the answers of reach.h, and every check that an answer must pass
 * before a job may rely on it: fields of the right type, windows that lie side by side and cover
 * the allocation, no SM in a window that is not there. Pure; any thread. */
#ifndef REACH_CLIENT_ANSWER_H
#define REACH_CLIENT_ANSWER_H

#include "clients/c/handle.h"

#include "base/maybe.h"

#include <jansson.h>

/* Reads one kind of answer into `out`, zeroed before. REACH_PROTOCOL names the field. */
typedef enum reach_status answer_fn(const json_t *json, void *out, struct reach_error *error);

answer_fn answer_gpus;        /* struct reach_gpus */
answer_fn answer_gpu;         /* struct reach_gpu */
answer_fn answer_fingerprint; /* struct reach_fingerprint; but for basis.stale, which the document
                                 does not say */
answer_fn answer_scope;       /* struct reach_scope */
answer_fn answer_placement;   /* struct reach_placement */
answer_fn answer_plan;        /* struct reach_plan */
answer_fn answer_split;       /* struct reach_split */
answer_fn answer_explain;     /* struct reach_explanation */

/* Do the windows cover [0, bytes) side by side, and is the table true to them? Without windows only
 * an empty table is. REACH_PROTOCOL. */
enum reach_status answer_check_windows(const struct reach_windows *windows, uint64_t bytes,
                                       struct reach_error *error);

/* A number of the daemon as one of reach.h. */
struct reach_number answer_number(struct maybe_f64 m);
/* A prediction, to as many digits as the daemon sends. */
struct reach_number answer_figure(struct maybe_f64 m);
struct reach_number answer_size(struct maybe_u64 m);

#endif
