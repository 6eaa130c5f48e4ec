/* offline.h: answers from a fingerprint in a file, or from a line in the environment, in-process,
 * by the code that the daemon uses (daemon/placement). An open one never changes: any thread. */
#ifndef REACH_CLIENT_OFFLINE_H
#define REACH_CLIENT_OFFLINE_H

#include "clients/c/handle.h"

#include <jansson.h>

struct offline;

/* Reads and checks the file. Errors: REACH_NOT_FOUND, REACH_CORRUPT, REACH_NO_MEMORY. The caller
 * owns `*out`. */
enum reach_status offline_new(const char *path, struct offline **out, struct reach_error *error);
/* From a line of placement/handout.h instead; `name` is of the variable, for sentences. Errors:
 * REACH_CORRUPT, REACH_NO_MEMORY. */
enum reach_status offline_new_line(const char *name, const char *line, struct offline **out,
                                   struct reach_error *error);
void offline_free(struct offline *take);

/* Is this the GPU of the file ("0", or its UUID)? REACH_WRONG_GPU, REACH_NOT_FOUND. */
enum reach_status offline_check_gpu(const struct offline *offline, const char *gpu,
                                    struct reach_error *error);

/* Is it of the GPU with this UUID? */
bool offline_is(const struct offline *offline, const char *uuid);

/* Adds its GPU to the list. */
void offline_gpus(const struct offline *offline, struct reach_gpus *out);

/* Answers one kind of request of reach.h into `out`, zeroed before. */
typedef enum reach_status offline_fn(const struct offline *offline, const void *request, void *out,
                                     struct reach_error *error);

offline_fn offline_fingerprint; /* no request; struct reach_fingerprint */
offline_fn offline_scope;       /* struct reach_scope_request, struct reach_scope */
offline_fn offline_placement;   /* and so on */
offline_fn offline_plan;        /* struct reach_job, struct reach_plan */
offline_fn offline_split;
offline_fn offline_explain;

/* Reads the file again: does it still have the fingerprint of this basis? */
enum reach_status offline_confirm(const struct offline *offline, const struct reach_basis *basis,
                                  struct reach_error *error);

/* The part of a fingerprint's document that jobs use; all of it is checked. REACH_CORRUPT. */
enum reach_status offline_describe(const json_t *json, struct reach_fingerprint *out,
                                   struct reach_error *error);

#endif
