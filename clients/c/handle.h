/* handle.h: the parts of a handle. The header is private to libreach; programs include reach.h.
 *
 *     question.c  the typed functions: struct -> target
 *     get.c       one request to any source
 *     http.c      from a daemon          answer_cache.c its last answers, by ETag
 *     offline.c   from a file or the environment, by the daemon's own handlers
 *     answer.c    an answer              decode.c   its JSON -> the structs of reach.h
 */
#pragma once

#include "clients/c/answer.h"

#include <stdatomic.h>

struct http;
struct answer_cache;
struct offline;

/* One source: `offline`, or `http` with its `cache`. The handle owns all of them. */
struct reach {
    struct offline *offline;
    struct http *http;
    struct answer_cache *cache;
    atomic_uint timeout_ms;
    atomic_uint allow;
};

/* get.c: does the same as reach_send for a GET, but sets `*out` to NULL if it returns an error. */
enum reach_status handle_get(struct reach *reach, const char *target, struct reach_answer **out,
                             struct reach_error *error);

/* Checks that the call is complete and that `gpu` is a name that needs no escaping. */
enum reach_status handle_check(const struct reach *reach, const char *gpu, bool has_out,
                               struct reach_error *error);
