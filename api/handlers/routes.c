/* routes.c: the route table, and what follows from it.
 *
 * A row says it all: method, path, the query parameters that exist, the handler. So 404 (no path
 * matches), 405 with Allow (a path matches, its methods do not), 400 for a parameter that nobody
 * knows, and the list that GET / gives cannot disagree with each other. HEAD is GET without a body,
 * which libmicrohttpd leaves out by itself; OPTIONS says what Allow says.
 *
 * What is not a GET changes something, so it needs the token, where there is one.
 */
#include "api/handlers/routes.h"

#include "api/decode/decode.h"
#include "api/handlers/auth.h"
#include "api/decode/problem.h"
#include "base/json_out.h"

#include <stdio.h>
#include <string.h>

enum { MAX_PARAMS = 6 };
enum method { METHOD_NONE = 0, METHOD_GET = 1, METHOD_POST = 2, METHOD_DELETE = 4 };

struct route {
    const char *method; /* "GET", "POST" or "DELETE" */
    const char *path;
    const char *params[MAX_PARAMS];
    const char *(*param)(uint32_t i); /* instead of them; NULL behind the last */
    handlers_fn *handler;
    const char *about;
    bool needs_daemon; /* a snapshot is not enough */
};

static const struct route routes[] = {
    {.method = "GET", .path = "/", .handler = handlers_index, .about = "this list"},
    {.method = "GET",
     .path = "/healthz",
     .handler = handlers_healthz,
     .needs_daemon = true,
     .about = "is the process alive?"},
    {.method = "GET",
     .path = "/readyz",
     .handler = handlers_readyz,
     .params = {"verbose"},
     .needs_daemon = true,
     .about = "does any GPU have a fingerprint? verbose: how old, and what of the rest"},
    {.method = "GET",
     .path = "/metrics",
     .handler = handlers_metrics,
     .needs_daemon = true,
     .about = "Prometheus or OpenMetrics text"},
    {.method = "GET",
     .path = "/openapi.yaml",
     .handler = handlers_openapi,
     .about = "the contract of all this"},
    {.method = "GET",
     .path = "/v1/node",
     .handler = handlers_node,
     .needs_daemon = true,
     .about = "host, daemon version, driver, GPU sources"},
    {.method = "GET",
     .path = "/v1/gpus",
     .handler = handlers_gpus,
     .about = "the GPUs and the state of each"},
    {.method = "GET",
     .path = "/v1/fingerprints",
     .handler = handlers_all_fingerprints,
     .about = "the GPUs, the state of each and its current fingerprint, in one document"},
    {.method = "GET",
     .path = "/v1/gpus/{gpu}",
     .handler = handlers_gpu,
     .about = "one GPU, by UUID or index"},
    {.method = "GET",
     .path = "/v1/gpus/{gpu}/fingerprint",
     .handler = handlers_fingerprint,
     .params = {"at"},
     .about = "the current fingerprint; at=ID an older one"},
    {.method = "POST",
     .path = "/v1/gpus/{gpu}/fingerprint",
     .handler = handlers_measure,
     .needs_daemon = true,
     .about = "measure again; the body may name a depth: quick, full, matrix"},
    {.method = "GET",
     .path = "/v1/gpus/{gpu}/fingerprints",
     .handler = handlers_fingerprints,
     .params = {"limit", "cursor"},
     .needs_daemon = true,
     .about = "history, newest first"},
    {.method = "GET",
     .path = "/v1/jobs/{id}",
     .handler = handlers_job,
     .needs_daemon = true,
     .about = "how far a measurement is"},
    {.method = "DELETE",
     .path = "/v1/jobs/{id}",
     .handler = handlers_cancel,
     .needs_daemon = true,
     .about = "end a measurement early"},
    {.method = "GET",
     .path = "/v1/gpus/{gpu}/observations",
     .handler = handlers_observations,
     .params = {"run", "limit", "cursor"},
     .needs_daemon = true,
     .about = "raw observations, newest first"},
    {.method = "GET",
     .path = "/v1/gpus/{gpu}/observations/{id}",
     .handler = handlers_observation,
     .needs_daemon = true,
     .about = "one observation, as JSON or text/csv"},
    {.method = "GET",
     .path = "/v1/gpus/{gpu}/scope",
     .handler = handlers_scope,
     .params = {"bytes", "access"},
     .about = "how many bytes may one pass touch at random?"},
    {.method = "GET",
     .path = "/v1/gpus/{gpu}/placement",
     .handler = handlers_placement,
     .params = {"bytes", "windows", "granularity"},
     .about = "which SM should work in which window of memory?"},
    {.method = "GET",
     .path = "/v1/gpus/{gpu}/plan",
     .handler = handlers_plan,
     .param = decode_job_param,
     .about = "every way to do a job, best first"},
    {.method = "GET",
     .path = "/v1/gpus/{gpu}/split",
     .handler = handlers_split,
     .params = {"bytes", "weight"},
     .about = "one GPU for several jobs, by whole groups"},
    {.method = "GET",
     .path = "/v1/gpus/{gpu}/explain",
     .handler = handlers_explain,
     .params = {"bytes", "access", "element", "transaction", "gbps"},
     .about = "is it the TLB?"},
    {.method = "GET",
     .path = "/v1/gpus/{gpu}/environment",
     .handler = handlers_environment,
     .about = "what a scheduler puts into a job's environment, as text"},
};
enum { ROUTE_COUNT = sizeof(routes) / sizeof(*routes) };

/* Is the segment what the route says, from `at` to the next slash? (A segment may hold a slash of
 * its own, decoded.) What is not remembered asks this some fifty times. */
static bool segment_matches(const char *at, const char *segment)
{
    while (*segment != '\0' && *at != '/' && *at == *segment) {
        at++;
        segment++;
    }
    return *segment == '\0' && (*at == '\0' || *at == '/');
}

/* Does the path fit? Then `request` gets its captures. */
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
            return false; /* "//" names nothing */
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

/* The value of Allow for a set of methods; "" for none. */
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

/* What is not of version 1 of the API is about the service itself: that is what probes ask. */
static bool is_for_probes(const struct route *route)
{
    return strncmp(route->path, "/v1/", 4) != 0;
}

/* The route, or NULL with the methods that the path does have: "" for an unknown path. */
static const struct route *find(struct request *request, bool for_probes, const char **out_allow)
{
    unsigned methods = METHOD_NONE;

    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        if ((for_probes && !is_for_probes(&routes[i])) || !path_matches(&routes[i], request))
            continue;
        if (method_matches(&routes[i], request->method))
            return &routes[i];
        methods |= method_of(routes[i].method);
    }
    *out_allow = allow_of(methods);
    return NULL;
}

static void no_such_path(const struct request *request, bool for_probes, struct reply *reply)
{
    struct problem p = {.status = STATUS_NOT_FOUND, .next_step = "GET / lists what there is."};

    snprintf(p.detail, sizeof(p.detail), "there is no path %.160s%s", request->instance,
             for_probes ? " on this address, which is for health probes" : "");
    reply_problem(reply, request, &p);
}

/* OPTIONS, or a method that the path does not have. */
static void no_such_method(const struct request *request, const char *allow, struct reply *reply)
{
    struct problem p = {.http_status = HTTP_METHOD_NOT_ALLOWED,
                        .status = STATUS_INVALID_ARGUMENT,
                        .slug = "method-not-allowed",
                        .title = "This path does not have this method.",
                        .next_step = "Use one of the methods in the Allow field."};

    if (strcmp(request->method, "OPTIONS") == 0) {
        reply_empty(reply, HTTP_NO_CONTENT);
        reply->allow = allow;
        return;
    }
    snprintf(p.detail, sizeof(p.detail), "%.20s is not one of %s", request->method, allow);
    reply_problem(reply, request, &p);
    reply->allow = allow;
}

/* NULL behind the last. */
static const char *param_of(const struct route *route, uint32_t i)
{
    if (route->param)
        return route->param(i);
    return i < MAX_PARAMS ? route->params[i] : NULL;
}

static const char *unknown_param(const struct route *route, const struct request *request)
{
    for (uint32_t i = 0; i < request->param_count; i++) {
        const char *param;
        bool known = false;
        for (uint32_t k = 0; !known && (param = param_of(route, k)); k++)
            known = strcmp(request->params[i].name, param) == 0;
        if (!known)
            return request->params[i].name;
    }
    return NULL;
}

static void no_such_param(const struct route *route, const struct request *request,
                          const char *name, struct reply *reply)
{
    struct problem p = {.status = STATUS_INVALID_ARGUMENT,
                        .parameter = name,
                        .next_step = "Leave it out; /openapi.yaml names what each path takes."};
    const char *param;
    int at;

    at = snprintf(p.detail, sizeof(p.detail), "%s takes no parameter \"%.40s\"; it takes ",
                  route->path, name);
    if (!param_of(route, 0))
        snprintf(p.detail + at, sizeof(p.detail) - (size_t)at, "none");
    for (uint32_t k = 0; (param = param_of(route, k)); k++)
        at += snprintf(p.detail + at, sizeof(p.detail) - (size_t)at, "%s%s", k ? ", " : "", param);
    reply_problem(reply, request, &p);
}

static void no_token(const struct request *request, struct reply *reply)
{
    struct problem p = {.http_status = HTTP_UNAUTHORIZED,
                        .status = STATUS_INVALID_ARGUMENT,
                        .slug = "unauthorized",
                        .title = "Who changes something here must bring the token.",
                        .next_step = "Send Authorization: Bearer and the token of the daemon's "
                                     "token file."};

    snprintf(p.detail, sizeof(p.detail), "%s",
             request->authorization ? "the credential in Authorization is not the token"
                                    : "there is no Authorization field");
    reply_problem(reply, request, &p);
    reply->asks_token = true;
}

void routes_dispatch(struct handlers_context *c, struct request *request, struct reply *reply)
{
    const char *allow = "";
    const struct route *route = find(request, c->for_probes, &allow);
    const char *unknown;

    if (!route && !*allow) {
        no_such_path(request, c->for_probes, reply);
        return;
    }
    if (!route) {
        no_such_method(request, allow, reply);
        return;
    }
    if (method_of(route->method) != METHOD_GET &&
        !auth_is_allowed(c->token, request->authorization)) {
        no_token(request, reply);
        return;
    }
    unknown = unknown_param(route, request);
    if (unknown)
        no_such_param(route, request, unknown, reply);
    else if (route->needs_daemon && !c->backend)
        handlers_needs_daemon(request, reply);
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

json_t *routes_to_json(void)
{
    json_t *list = json_array();
    struct json_out o;

    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        struct json_out row;
        json_out_begin(&row);
        json_out_text(&row, "method", routes[i].method);
        json_out_text(&row, "path", routes[i].path);
        json_out_text(&row, "about", routes[i].about);
        if (!json_out_append(&list, json_out_end(&row)))
            break;
    }
    json_out_begin(&o);
    json_out_text(&o, "service", "reachd");
    json_out_value(&o, "routes", list);
    return json_out_end(&o);
}
