/* handlers.h: one function a route. A handler reads the snapshot that was acquired for its request,
 * or asks the backend, and fills the reply; it never waits for a measurement.
 */
#ifndef REACH_API_HANDLERS_HANDLERS_H
#define REACH_API_HANDLERS_HANDLERS_H

#include "api/handlers/backend.h"
#include "api/handlers/cache.h"
#include "api/handlers/reply.h"
#include "api/decode/request.h"
#include "api/handlers/stats.h"
#include "snapshot/snapshot.h"

/* Without a daemon (libreach answers from a file) there are neither backend nor cache nor stats. */
struct handlers_context {
    const struct snapshot *snapshot; /* of this request */
    const struct api_backend *backend;
    struct cache *cache; /* NULL: every answer is rendered */
    const char *daemon_version;
    const char *token; /* what changes something must bring it; "": nothing need */
    struct stats *stats;
    struct db_thread *reader; /* takes what must read the database */
    uint64_t number;          /* one for each call, to make request ids of */
    bool for_probes;          /* asked on the socket for health probes */
    bool may_read; /* the database: this is the reader (db_thread.h), which has neither cache nor
                      stats */
};

/* True where this is not the place to read the database: then `handler` is called again where it
 * is, and the caller returns. */
static inline bool handlers_must_wait(const struct handlers_context *c, handlers_fn *handler,
                                      struct reply *reply)
{
    if (!c->may_read)
        reply->deferred = handler;
    return !c->may_read;
}

/* handlers_node.c */
handlers_fn handlers_index;
handlers_fn handlers_healthz;
handlers_fn handlers_readyz;
handlers_fn handlers_openapi;
handlers_fn handlers_node;
/* handlers_metrics.c */
handlers_fn handlers_metrics;
/* handlers_gpu.c */
handlers_fn handlers_gpus;
handlers_fn handlers_gpu;
handlers_fn handlers_all_fingerprints;
/* handlers_fingerprint.c */
handlers_fn handlers_fingerprint;
handlers_fn handlers_history;
handlers_fn handlers_measure;
handlers_fn handlers_measurement;
handlers_fn handlers_cancel;
/* handlers_observation.c */
handlers_fn handlers_observations;
handlers_fn handlers_observation;
/* handlers_placement.c */
handlers_fn handlers_scope;
handlers_fn handlers_placement;
/* handlers_environment.c */
handlers_fn handlers_environment;
/* handlers_plan.c */
handlers_fn handlers_plan;
handlers_fn handlers_split;
handlers_fn handlers_explain;

/* Shared by them, in handlers_gpu.c. */

/* The GPU that the path names; on NULL the reply is a 404. */
const struct snapshot_gpu *handlers_find_gpu(struct handlers_context *c,
                                             const struct request *request, struct reply *reply);
/* Its place in the snapshot, which is the index in the API. */
uint32_t handlers_index_of(const struct handlers_context *c, const struct snapshot_gpu *gpu);
/* Says that a running daemon alone can answer this, and the request came to a file. */
void handlers_needs_daemon(const struct request *request, struct reply *reply);
/* What the backend could not read; `list` (static) says where what exists is listed. */
void handlers_read_failed(const struct request *request, struct err *err, const char *list,
                          struct reply *reply);
/* Says that this GPU has no fingerprint yet, why, and how to get one. */
void handlers_no_fingerprint(const struct request *request, const struct snapshot_gpu *gpu,
                             unsigned http_status, struct reply *reply);
/* In handlers_placement.c, for what rests on a fingerprint. The GPU with its fingerprint, or NULL
 * and a problem. */
const struct snapshot_gpu *handlers_measured_gpu(struct handlers_context *c,
                                                 const struct request *request,
                                                 struct reply *reply);
/* Makes the text, from malloc, a document and that the reply. NULL: a problem. */
void handlers_reply_answer(const struct request *request, char *take, size_t bytes,
                           struct reply *reply);
/* What placement refuses: lies in the query, or in a fingerprint that knows too little. */
void handlers_reply_error(const struct request *request, const struct err *err,
                          struct reply *reply);
/* Keeps the document in a slot of the cache and makes it the reply. NULL: a problem. */
void handlers_reply_kept(struct handlers_context *c, const struct request *request, uint32_t slot,
                         struct document *take, struct reply *reply);

#endif
