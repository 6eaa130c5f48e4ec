/* handlers.h: the functions that answer requests, one for each route. A handler reads the snapshot
 * that was acquired for its request, or calls the backend, and fills the reply; it never waits for
 * a measurement. Any thread, but the cache belongs to the serving thread.
 */
#ifndef REACH_API_HANDLERS_HANDLERS_H
#define REACH_API_HANDLERS_HANDLERS_H

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
    const struct snapshot *snapshot; /* of this request */
    const struct snapshot_gpu *gpu;  /* that the path names, from routes_dispatch; NULL: none */
    const struct api_backend *backend;
    struct cache *cache;      /* NULL: every answer is rendered */
    const struct ui_file *ui; /* the files of /ui/ (ui_file.h); NULL: this program has none */
    const char *daemon_version;
    const char *token; /* required for POST and DELETE; "": none */
    struct stats *stats;
    struct db_thread *db_thread; /* answers what must be read from the database */
    uint64_t number;             /* one for each call, from which request ids are made */
    bool for_probes;             /* the request came on the socket for health probes */
    bool may_read;               /* the database: this is the db_thread, which has neither cache nor
                                    stats */
    enum planner_function function; /* of the route, from routes_dispatch */
    struct planner_call *call;      /* what handlers_planner answered, in full; NULL: not needed */
};

/* Fills the reply to a request. */
typedef void handlers_fn(struct handlers_context *c, const struct request *request,
                         struct reply *reply);
/* Renders the document of a route, which depends on the snapshot alone. The caller's; NULL without
 * memory. */
typedef struct document *handlers_render_fn(const struct handlers_context *c);

/* Answers the request: 404, 405, 401, unknown query parameters and GPUs by itself, everything else
 * by the function of the route. Fills the captures of the request and of the context. (routes.c) */
void routes_dispatch(struct handlers_context *c, struct request *request, struct reply *reply);
/* True if the method and path belong to a route that reads a body. */
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
handlers_fn handlers_fit;
handlers_fn handlers_environment;
/* handlers_compare.c */
handlers_fn handlers_compare;

/* The backend could not read something; `list` (static) is the hint for what does not exist. */
void handlers_read_failed(const struct request *request, struct err *err, const char *list,
                          struct reply *reply);

/* Shared by them, in handlers_gpu.c. */

/* Finds the GPU that the path names and makes it c->gpu. False: the reply is a 404. */
bool handlers_find_gpu(struct handlers_context *c, const struct request *request,
                       struct reply *reply);
/* False if c->gpu has no fingerprint: the reply says why, and how to get one. */
bool handlers_check_measured(const struct handlers_context *c, const struct request *request,
                             unsigned http_status, struct reply *reply);
/* Replies with the document of a route, from this slot of the cache. If the slot is empty, renders
 * the document and puts it there. If c->gpu is set, the slot is the one of that GPU. */
void handlers_reply_cached(struct handlers_context *c, uint32_t slot, handlers_render_fn *render,
                           struct reply *reply);
/* Replies that only a running daemon can answer this. */
void handlers_need_daemon(const struct request *request, struct reply *reply);

#endif
