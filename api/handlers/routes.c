/* routes.c: the route table and the answers that follow from it. A row describes a whole route:
 * method, path, query parameters, function. So these answers cannot contradict each other: 404 (no
 * path matches), 405 with Allow (only the path matches), 400 for an unknown parameter, and the list
 * of GET /. HEAD is GET without a body, which libmicrohttpd leaves out; OPTIONS returns the value
 * of Allow. A path may end with one slash more than its row has.
 *
 * Every method but GET requires the token, if there is one.
 */
#include "api/handlers/handlers.h"

#include "api/decode/decode.h"
#include "api/handlers/auth.h"
#include "base/json_writer.h"

#include <stdio.h>
#include <string.h>

enum method { METHOD_NONE = 0, METHOD_GET = 1, METHOD_POST = 2, METHOD_DELETE = 4 };

enum { PARAMS_BYTES = 512 }; /* room for the list of all parameters of a plan */

struct route {
    const char *method; /* "GET", "POST" or "DELETE" */
    const char *path;
    const char *params; /* separated by ", "; NULL means the parameters of `function` */
    const char *about;
    handlers_fn *handler;           /* fills the reply; NULL if `render` is set */
    handlers_render_fn *render;     /* renders a document, which the cache keeps */
    uint32_t slot;                  /* slot of the document in the cache */
    enum planner_function function; /* function of the planner; PLANNER_NONE if there is none */
    bool needs_daemon;              /* true if a program without a daemon cannot answer */
};

static handlers_render_fn render_index;
static handlers_fn handle_index;

static const struct route routes[] = {
    {"GET", "/", "", "this list", .handler = handle_index},
    {"GET", "/healthz", "", "is the process alive?", .render = handlers_healthz,
     .slot = CACHE_HEALTH, .needs_daemon = true},
    {"GET", "/readyz", "verbose",
     "does any GPU have a fingerprint? verbose: how old, and what of the rest",
     .handler = handlers_readyz, .needs_daemon = true},
    {"GET", "/metrics", "", "Prometheus or OpenMetrics text", .handler = handlers_metrics,
     .needs_daemon = true},
    {"GET", "/openapi.yaml", "", "the contract of all this", .render = handlers_openapi,
     .slot = CACHE_OPENAPI},
    {"GET", "/ui", "", "leads to /ui/", .handler = handlers_ui_redirect, .needs_daemon = true},
    {"GET", "/ui/", "", "all this for people: a page for a browser", .handler = handlers_ui,
     .needs_daemon = true},
    {"GET", "/ui/page.js", "", "the script of that page", .handler = handlers_ui,
     .needs_daemon = true},
    {"GET", "/ui/page.css", "", "the layout of that page", .handler = handlers_ui,
     .needs_daemon = true},
    {"GET", "/v1/node", "", "host, daemon version, driver, GPU sources", .render = handlers_node,
     .slot = CACHE_NODE, .needs_daemon = true},
    {"GET", "/v1/health", "", "are the GPUs usable? can results be stored?",
     .handler = handlers_health, .needs_daemon = true},
    {"GET", "/v1/gpus", "", "the GPUs and the state of each", .render = handlers_gpus,
     .slot = CACHE_GPUS},
    {"GET", "/v1/fingerprints", "",
     "the GPUs, the state of each and its current fingerprint, in one document",
     .render = handlers_all_fingerprints, .slot = CACHE_FINGERPRINTS},
    {"GET", "/v1/gpus/{gpu}", "", "one GPU, by UUID or index", .render = handlers_gpu,
     .slot = CACHE_GPU},
    {"DELETE", "/v1/gpus/{gpu}", "", "forget a GPU that is lost, and all that is stored about it",
     .handler = handlers_forget, .needs_daemon = true},
    {"GET", "/v1/gpus/{gpu}/fingerprint", "at", "the current fingerprint; at=ID an older one",
     .handler = handlers_fingerprint},
    {"POST", "/v1/gpus/{gpu}/measurements", "",
     "measure again; the body may name a depth: quick, full, memory, matrix",
     .handler = handlers_measure, .needs_daemon = true},
    {"GET", "/v1/gpus/{gpu}/history", "limit, cursor", "history, newest first",
     .handler = handlers_history, .needs_daemon = true},
    {"GET", "/v1/measurements/{id}", "", "how far a measurement is",
     .handler = handlers_measurement, .needs_daemon = true},
    {"DELETE", "/v1/measurements/{id}", "", "end a measurement early", .handler = handlers_cancel,
     .needs_daemon = true},
    {"GET", "/v1/gpus/{gpu}/observations", "run, limit, cursor", "raw observations, newest first",
     .handler = handlers_observations, .needs_daemon = true},
    {"GET", "/v1/gpus/{gpu}/observations/{id}", "", "one observation, as JSON or text/csv",
     .handler = handlers_observation, .needs_daemon = true},
    {"GET", "/v1/gpus/{gpu}/scope", NULL, "how many bytes may one pass touch at random?",
     .handler = handlers_planner, .function = PLANNER_SCOPE},
    {"GET", "/v1/gpus/{gpu}/placement", NULL, "which SM should work in which window of memory?",
     .handler = handlers_planner, .function = PLANNER_PLACEMENT},
    {"GET", "/v1/gpus/{gpu}/plan", NULL, "every strategy for a job, best first",
     .handler = handlers_planner, .function = PLANNER_PLAN},
    {"GET", "/v1/gpus/{gpu}/split", NULL, "one GPU for several jobs, by whole groups",
     .handler = handlers_planner, .function = PLANNER_SPLIT},
    {"GET", "/v1/gpus/{gpu}/explain", NULL, "is it the TLB?", .handler = handlers_planner,
     .function = PLANNER_EXPLAIN},
    {"GET", "/v1/gpus/{gpu}/memory", NULL,
     "what is known of each kind of memory; bytes: the choices for them, best first",
     .handler = handlers_memory, .function = PLANNER_MEMORY},
    {"GET", "/v1/gpus/{gpu}/fit", NULL,
     "where does a working set stay, and what does it cost outside?", .handler = handlers_planner,
     .function = PLANNER_FIT},
    {"GET", "/v1/gpus/{gpu}/caches", "", "what is known of the caches: the sides of the L2",
     .handler = handlers_caches},
    {"GET", "/v1/gpus/{gpu}/compare", "",
     "is this GPU normal? each number among those of other chips of its kind",
     .handler = handlers_compare, .needs_daemon = true},
    {"GET", "/v1/gpus/{gpu}/environment", "",
     "what a scheduler puts into a job's environment, as text", .handler = handlers_environment},
};
enum { ROUTE_COUNT = sizeof(routes) / sizeof(*routes) };

/* Returns whether this is the route's segment from `at` to the next slash. (A decoded segment may
 * contain a slash.) The function is called about fifty times for a request that is not in the
 * cache. */
static bool segment_matches(const char *at, const char *segment)
{
    while (*segment != '\0' && *at != '/' && *at == *segment) {
        at++;
        segment++;
    }
    return *segment == '\0' && (*at == '\0' || *at == '/');
}

/* Returns whether the path matches. If it does, stores its captures in `request`. */
static bool path_matches(const struct route *route, struct request *request)
{
    const char *at = route->path;
    const char *gpu = NULL;
    const char *id = NULL;
    uint32_t i = 0;

    while (*at == '/' && at[1] != '\0') {
        const char *segment;
        at++;
        if (i == request->segment_count)
            return false;
        segment = request->segments[i];
        if (segment[0] == '\0')
            return false; /* an empty segment matches no name */
        if (at[0] == '{' && at[1] == 'g')
            gpu = segment;
        else if (at[0] == '{')
            id = segment;
        else if (!segment_matches(at, segment))
            return false;
        while (*at != '/' && *at != '\0')
            at++;
        i++;
    }
    if (*at == '/' && i > 0 && i < request->segment_count) {
        if (request->segments[i][0] != '\0')
            return false;
        i++; /* "/ui/": the text after its last slash */
    }
    if (i != request->segment_count)
        return false;
    request->gpu = gpu;
    request->id = id;
    return true;
}

static bool method_matches(const struct route *route, const char *method)
{
    return strcmp(route->method, method) == 0 ||
           (strcmp(method, "HEAD") == 0 && strcmp(route->method, "GET") == 0);
}

static enum method method_of(const char *name)
{
    return strcmp(name, "GET") == 0      ? METHOD_GET
           : strcmp(name, "POST") == 0   ? METHOD_POST
           : strcmp(name, "DELETE") == 0 ? METHOD_DELETE
                                         : METHOD_NONE;
}

/* Returns the value of Allow for a set of methods, or "" if the set is empty. */
static const char *allow_of(unsigned methods)
{
    static const char *const values[] = {"",
                                         "GET, HEAD, OPTIONS",
                                         "POST, OPTIONS",
                                         "GET, HEAD, POST, OPTIONS",
                                         "DELETE, OPTIONS",
                                         "GET, HEAD, DELETE, OPTIONS",
                                         "POST, DELETE, OPTIONS",
                                         "GET, HEAD, POST, DELETE, OPTIONS"};

    return values[methods % (sizeof(values) / sizeof(*values))];
}

/* Health probes need the routes outside of /v1, except the page, which is for people. */
static bool is_for_probes(const struct route *route)
{
    return strncmp(route->path, "/v1/", 4) != 0 && strncmp(route->path, "/ui", 3) != 0;
}

/* Finds the row of the path and the method. Adds the methods of other rows with this path to
 * `*methods`. */
static const struct route *find_exact(struct request *request, bool for_probes, unsigned *methods)
{
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        if ((for_probes && !is_for_probes(&routes[i])) || !path_matches(&routes[i], request))
            continue;
        if (method_matches(&routes[i], request->method))
            return &routes[i];
        *methods |= method_of(routes[i].method);
    }
    return NULL;
}

/* Removes one slash from the end of the path; returns false if there is none. Links of a page are
 * relative to its path, so a file of the page has no second path. */
static bool drop_slash(struct request *request)
{
    const uint32_t count = request->segment_count;
    const bool ends = count > 1 && strcmp(request->segments[0], "ui") != 0 &&
                      request->segments[count - 1][0] == '\0' &&
                      request->segments[count - 2][0] != '\0';

    request->segment_count -= ends;
    return ends;
}

/* Returns the route, or NULL. `*out_allow` lists the methods of the path, and is "" for an unknown
 * path. */
static const struct route *find(struct request *request, bool for_probes, const char **out_allow)
{
    unsigned methods = METHOD_NONE;
    const struct route *route = find_exact(request, for_probes, &methods);

    if (!route && methods == METHOD_NONE && drop_slash(request))
        route = find_exact(request, for_probes, &methods);
    *out_allow = allow_of(methods);
    return route;
}

static void no_such_path(const struct request *request, bool for_probes, struct reply *reply)
{
    static const struct problem missing = {.status = STATUS_NOT_FOUND,
                                           .next_step = "GET / lists what there is."};

    reply_refusal(reply, request, &missing, "there is no path %.160s%s", request->instance,
                  for_probes ? " on this address, which is for health probes" : "");
}

/* Answers OPTIONS, or a method that the path does not have. */
static void no_such_method(const struct request *request, const char *allow, struct reply *reply)
{
    static const struct problem missing = {.http_status = HTTP_METHOD_NOT_ALLOWED,
                                           .status = STATUS_INVALID_ARGUMENT,
                                           .slug = "method-not-allowed",
                                           .title = "This path does not have this method.",
                                           .next_step =
                                               "Use one of the methods in the Allow field."};

    if (strcmp(request->method, "OPTIONS") == 0)
        reply_empty(reply, HTTP_NO_CONTENT);
    else
        reply_refusal(reply, request, &missing, "%.20s is not one of %s", request->method, allow);
    reply->allow = allow;
}

/* Returns the parameters of a route, separated by ", ": its own text, or `room`. */
static const char *list_params(const struct route *route, char room[PARAMS_BYTES])
{
    const struct param *p;
    int n = 0;

    if (route->params)
        return route->params;
    room[0] = '\0';
    for (uint32_t i = 0; (p = param_at(i)) && n < PARAMS_BYTES; i++) {
        if (p->uses[route->function].form)
            n += snprintf(room + n, PARAMS_BYTES - (size_t)n, "%s%s", n > 0 ? ", " : "", p->name);
    }
    return room;
}

static bool has_param(const struct route *route, const char *name)
{
    const size_t bytes = strlen(name);

    if (!route->params)
        return param_find(route->function, name) != NULL;
    for (const char *at = route->params; *at; at += strspn(at, ", ")) {
        const size_t length = strcspn(at, ",");
        if (length == bytes && memcmp(at, name, bytes) == 0)
            return true;
        at += length;
    }
    return false;
}

/* Returns whether the route has all parameters of the request; if not, the reply is a 400. */
static bool check_params(const struct route *route, const struct request *request,
                         struct reply *reply)
{
    struct problem unknown = {.status = STATUS_INVALID_ARGUMENT,
                              .next_step = "Leave it out; /openapi.yaml has the parameters of each "
                                           "path."};
    char room[PARAMS_BYTES];

    for (uint32_t i = 0; i < request->param_count; i++) {
        unknown.parameter = request->params[i].name;
        if (has_param(route, unknown.parameter))
            continue;
        const char *const params = list_params(route, room);
        reply_refusal(reply, request, &unknown, "%s takes no parameter \"%.40s\"; it takes %s",
                      route->path, unknown.parameter, *params ? params : "none");
        return false;
    }
    return true;
}

/* Returns whether the request may change something; otherwise the reply is a 401. */
static bool check_token(const struct handlers_context *c, const struct request *request,
                        struct reply *reply)
{
    static const struct problem unauthorized = {
        .http_status = HTTP_UNAUTHORIZED,
        .status = STATUS_INVALID_ARGUMENT,
        .slug = "unauthorized",
        .title = "POST and DELETE require the token.",
        .next_step = "Send Authorization: Bearer and the token of the daemon's token file."};

    if (auth_is_allowed(c->token, request->authorization))
        return true;
    reply_refusal(reply, request, &unauthorized, "%s",
                  request->authorization ? "the credential in Authorization is not the token"
                                         : "there is no Authorization field");
    reply->asks_token = true;
    return false;
}

void routes_dispatch(struct handlers_context *c, struct request *request, struct reply *reply)
{
    const char *allow = "";
    const struct route *route = find(request, c->for_probes, &allow);

    if (!route && !*allow)
        no_such_path(request, c->for_probes, reply);
    else if (!route)
        no_such_method(request, allow, reply);
    if (!route || (method_of(route->method) != METHOD_GET && !check_token(c, request, reply)) ||
        !check_params(route, request, reply))
        return;
    c->function = route->function;
    if (route->needs_daemon && !c->backend)
        handlers_need_daemon(request, reply);
    else if (request->gpu && !handlers_find_gpu(c, request, reply))
        return;
    else if (route->render)
        handlers_reply_cached(c, route->slot, route->render, reply);
    else
        route->handler(c, request, reply);
}

bool routes_takes_body(const struct request *request)
{
    struct request copy = *request;
    const char *allow;
    const struct route *route = find(&copy, false, &allow);

    return route && method_of(route->method) == METHOD_POST;
}

static struct document *render_index(const struct handlers_context *c)
{
    struct json_writer t;

    (void)c;
    json_writer_begin(&t, 0);
    json_writer_open(&t, NULL, '{');
    json_writer_text(&t, "service", "reachd");
    json_writer_open(&t, "routes", '[');
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        json_writer_open(&t, NULL, '{');
        json_writer_text(&t, "method", routes[i].method);
        json_writer_text(&t, "path", routes[i].path);
        json_writer_text(&t, "about", routes[i].about);
        json_writer_close(&t, '}');
    }
    json_writer_close(&t, ']');
    json_writer_close(&t, '}');
    return document_new(&t, NULL);
}

/* A browser names text/html first in its Accept field, and curl accepts every type. */
static void handle_index(struct handlers_context *c, const struct request *request,
                         struct reply *reply)
{
    const int html = accept_weight(request->accept, "text/html");

    if (c->ui && !c->for_probes && html > accept_weight(request->accept, "application/json")) {
        reply_empty(reply, HTTP_TEMPORARY_REDIRECT);
        snprintf(reply->location, sizeof(reply->location),
                 "ui/"); /* the same target as in handlers_ui_redirect */
    } else {
        handlers_reply_cached(c, CACHE_INDEX, render_index, reply);
    }
    reply->vary = "Accept";
}
