/* handlers.h: the functions that answer requests, one for each route. A handler reads the snapshot
 * of its request, or calls the backend, and fills the reply. It never waits for a measurement. Any
 * thread may call a handler, but only the serving thread uses the cache.
 */
#pragma once

#include "api/decode/planner_call.h"
#include "api/decode/request.h"
#include "api/handlers/backend.h"
#include "api/handlers/cache.h"
#include "api/handlers/reply.h"
#include "api/handlers/stats.h"
#include "api/handlers/ui_file.h"
#include "snapshot/snapshot.h"

/* Without a daemon (libreach answers from a file) there is no backend, cache, stats or db_thread.
 */
struct handlers_context {
    const struct snapshot *snapshot; /* snapshot of this request */
    const struct snapshot_gpu
        *gpu; /* GPU in the path, from routes_dispatch; NULL if there is none */
    const struct api_backend *backend;
    struct cache *cache;      /* cache of documents; NULL means that every answer is rendered */
    const struct ui_file *ui; /* the files of /ui/ (ui_file.h); NULL if this program has none */
    const char *daemon_version;
    const char *token; /* required for POST and DELETE; "" if there is none */
    struct stats *stats;
    struct db_thread *db_thread;    /* answers requests that must read the database */
    uint64_t number;                /* unique for each call; request ids are made from it */
    bool for_probes;                /* the request came on the socket for health probes */
    bool may_read;                  /* runs in the db_thread, which has neither cache nor stats */
    enum planner_function function; /* function of the route, from routes_dispatch */
    struct planner_call *call;      /* receives the full answer of handlers_planner; may be NULL */
};

/* Fills the reply to a request. */
typedef void handlers_fn(struct handlers_context *c, const struct request *request,
                         struct reply *reply);
/* Renders the document of a route that depends on the snapshot alone. The caller owns it. Returns
 * NULL if memory runs out. */
typedef struct document *handlers_render_fn(const struct handlers_context *c);

/* Answers the request. This function itself answers unknown paths, methods, query parameters and
 * GPUs, and requests without a valid token. The function of the route answers all other requests.
 * Fills the captures of the request and of the context. (routes.c) */
void routes_dispatch(struct handlers_context *c, struct request *request, struct reply *reply);
/* Returns whether the method and path belong to a route that reads a body. */
bool routes_takes_body(const struct request *request);

/* handlers_node.c */
handlers_render_fn handlers_healthz;
handlers_render_fn handlers_openapi;
handlers_render_fn handlers_node;
handlers_fn handlers_readyz;
handlers_fn handlers_health;
/* handlers_ui.c */
handlers_fn handlers_ui;
handlers_fn handlers_ui_redirect;
/* handlers_metrics.c */
handlers_fn handlers_metrics;
/* handlers_gpu.c */
handlers_render_fn handlers_gpus;
handlers_render_fn handlers_gpu;
handlers_render_fn handlers_all_fingerprints;
handlers_fn handlers_fingerprint;
handlers_fn handlers_forget;
/* handlers_measurement.c */
handlers_fn handlers_measure;
handlers_fn handlers_measurement;
handlers_fn handlers_cancel;
/* handlers_history.c */
handlers_fn handlers_history;
handlers_fn handlers_observations;
handlers_fn handlers_observation;
/* handlers_planner.c */
handlers_fn handlers_planner;
handlers_fn handlers_memory;
handlers_fn handlers_caches;
handlers_fn handlers_environment;
/* handlers_compare.c */
handlers_fn handlers_compare;

/* Replies that the backend could not read something. `list` (static) is the hint for an object that
 * does not exist. */
void handlers_read_failed(const struct request *request, struct err *err, const char *list,
                          struct reply *reply);

/* The next functions are shared by the handlers. They are in handlers_gpu.c. */

/* Finds the GPU that the path names and makes it c->gpu. If there is none, the reply is a 404 and
 * the result is false. */
bool handlers_find_gpu(struct handlers_context *c, const struct request *request,
                       struct reply *reply);
/* Returns false if c->gpu has no fingerprint. The reply then contains the reason, and how to get a
 * fingerprint. */
bool handlers_check_measured(const struct handlers_context *c, const struct request *request,
                             unsigned http_status, struct reply *reply);
/* Replies with the document of a route, from this slot of the cache. If the slot is empty, renders
 * the document and puts it into the slot. If c->gpu is set, the slot belongs to that GPU. */
void handlers_reply_cached(struct handlers_context *c, uint32_t slot, handlers_render_fn *render,
                           struct reply *reply);
/* Replies that only a running daemon can answer this request. */
void handlers_need_daemon(const struct request *request, struct reply *reply);
