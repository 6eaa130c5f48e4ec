/* handle.h: the parts of a handle. Private to libreach; programs include reach.h.
 *
 *     question.c  the typed functions: struct -> target
 *     get.c       one request to any source
 *     http.c      from a daemon          answer_cache.c its last answers, by ETag
 *     offline.c   from a file or the environment, by the daemon's own handlers
 *     answer.c    an answer              decode.c   its JSON -> the structs of reach.h
 */
#ifndef REACH_CLIENTS_C_HANDLE_H
#define REACH_CLIENTS_C_HANDLE_H

#include "clients/c/answer.h"

#include <stdatomic.h>

struct http;
struct answer_cache;
struct offline;

/* One source: `offline`, or `http` with its `cache`. All owned. */
struct reach {
    struct offline *offline;
    struct http *http;
    struct answer_cache *cache;
    atomic_uint timeout_ms;
    atomic_uint allow;
};

/* get.c. Like reach_send, but also refuses every answer that reach_allow does not allow by
 * leaving `*out` NULL. */
enum reach_status handle_get(struct reach *reach, const char *target, struct reach_answer **out,
                             struct reach_error *error);

/* Checks that the call is complete and that `gpu` is a name that needs no escaping. */
enum reach_status handle_check(const struct reach *reach, const char *gpu, bool has_out,
                               struct reach_error *error);

#endif
