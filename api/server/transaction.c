/* transaction.c: handles one request from its target to its answer.
 *
 * libmicrohttpd calls the access handler at least twice: after the header fields, for each piece of
 * the body, and at its end. In the first call a request can be refused before its body is read; an
 * answer in this call closes the connection. All other requests are answered in the last call. A
 * body that no route reads is discarded. Requests that must read the database go to the db_thread,
 * and the last call is repeated when the answer is ready. Most requests are a GET whose target has
 * a document in the cache. They are answered without parsing the target.
 */
#include "api/server/transaction.h"

#include "api/server/db_thread.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

enum step { STEP_FIRST = 0, STEP_BODY, STEP_DEFERRED, STEP_ANSWERED };

struct transaction {
    enum step step;
    bool keeps_body;
    bool is_parsed;
    struct request request;
    struct db_thread_call call; /* the call, if the answer must be read from the database */
    size_t target_bytes;
    char target[]; /* a copy, because libmicrohttpd overwrites its own text */
};

struct transaction *transaction_new(const char *target)
{
    size_t bytes = strlen(target);
    struct transaction *x = malloc(sizeof(*x) + bytes + 1);

    if (!x)
        return NULL;
    memset(x, 0, sizeof(*x));
    x->target_bytes = bytes;
    memcpy(x->target, target, bytes + 1);
    return x;
}

void transaction_free(struct transaction *take)
{
    if (!take)
        return;
    reply_clear(&take->call.reply);
    request_clear(&take->request);
    free(take);
}

/* Returns whether the request is GET or HEAD, which changes nothing and whose body is ignored. */
static bool is_read_only(const struct request *request)
{
    return strcmp(request->method, MHD_HTTP_METHOD_GET) == 0 ||
           strcmp(request->method, MHD_HTTP_METHOD_HEAD) == 0;
}

/* Logs changes and failures of the server, and every request at debug level. An answer from the
 * cache has no request number. */
static void log_answer(const struct transaction *x, unsigned http_status)
{
    const struct request *r = &x->request;

    if (http_status >= 500 && http_status != MHD_HTTP_SERVICE_UNAVAILABLE)
        log_warning("http: %.16s %s: %u, request %s", r->method, r->instance, http_status,
                    r->trace);
    else if (x->is_parsed && http_status < 300 && !is_read_only(r) &&
             strcmp(r->method, MHD_HTTP_METHOD_OPTIONS) != 0)
        log_info("http: %.16s %s: %u, request %s", r->method, r->instance, http_status, r->trace);
    else
        log_debug("http: %.16s %.400s: %u%s%s", r->method, x->target, http_status,
                  r->trace[0] ? ", request " : "", r->trace);
}

/* Sends the answer, counts it and logs it. */
static enum MHD_Result answer(struct transaction *x, struct handlers_context *c,
                              struct MHD_Connection *connection, struct reply *take)
{
    unsigned http_status = 0;
    enum MHD_Result result = send_reply(connection, &x->request, take, &http_status);

    x->step = STEP_ANSWERED;
    stats_count(c->stats, http_status);
    log_answer(x, http_status);
    return result;
}

static enum MHD_Result refuse(struct transaction *x, struct handlers_context *c,
                              struct MHD_Connection *connection, const struct problem *problem)
{
    struct reply reply = {.http_status = 0};

    request_make_id(&x->request, c->number);
    reply_problem(&reply, &x->request, problem);
    reply.close = true; /* the start of the next request is not certain */
    return answer(x, c, connection, &reply);
}

static bool parse(struct transaction *x, struct problem *out)
{
    struct err err;

    if (request_parse(&x->request, x->target, &err) != STATUS_OK) {
        *out = (struct problem){.status = err.status};
        memcpy(out->detail, err.text, sizeof(out->detail));
        return false;
    }
    x->is_parsed = true;
    return true;
}

static enum MHD_Result first_step(struct transaction *x, struct handlers_context *c,
                                  const struct transaction_call *call)
{
    struct problem problem;

    x->request.method = call->method;
    if (!guard_check_target(call->url, x->target_bytes, call->http_version, &problem) ||
        !guard_check(call->connection, call->http_version, &x->request, &problem) ||
        (!is_read_only(&x->request) && !parse(x, &problem)))
        return refuse(x, c, call->connection, &problem);
    x->keeps_body = x->is_parsed && routes_takes_body(&x->request);
    x->step = STEP_BODY;
    return MHD_YES;
}

/* Makes the reply of the route. A shared document is kept for the next request of this target,
 * unless a header field selects the document. */
static void dispatch(struct transaction *x, struct handlers_context *c, struct reply *reply)
{
    struct problem problem;

    request_make_id(&x->request, c->number);
    if (!x->is_parsed && !parse(x, &problem)) {
        reply_problem(reply, &x->request, &problem);
    } else if (x->request.body_too_large) {
        guard_too_large(&problem);
        reply_problem(reply, &x->request, &problem);
        reply->close = true;
    } else {
        routes_dispatch(c, &x->request, reply);
        if (reply->is_shared && !reply->vary && is_read_only(&x->request))
            cache_remember(c->cache, x->target, reply->document);
    }
}

/* Hands the request to the db_thread; if there is none, reads the database here. */
static enum MHD_Result defer(struct transaction *x, struct handlers_context *c,
                             struct MHD_Connection *connection, struct reply *reply)
{
    x->step = STEP_DEFERRED;
    x->call = (struct db_thread_call){.connection = connection, .request = &x->request};
    reply_clear(reply);
    if (db_thread_take(c->db_thread, &x->call))
        return MHD_YES;
    c->may_read = true;
    routes_dispatch(c, &x->request, reply);
    return answer(x, c, connection, reply);
}

static enum MHD_Result last_step(struct transaction *x, struct handlers_context *c,
                                 struct MHD_Connection *connection)
{
    struct reply reply = {.http_status = 0};
    struct document *kept = NULL;

    if (!c->for_probes && is_read_only(&x->request))
        kept = cache_find(c->cache, x->target);
    if (kept)
        reply_document(&reply, document_hold(kept));
    else
        dispatch(x, c, &reply);
    return reply.is_deferred ? defer(x, c, connection, &reply) : answer(x, c, connection, &reply);
}

enum MHD_Result transaction_step(struct transaction *x, struct handlers_context *c,
                                 const struct transaction_call *call)
{
    if (x->step == STEP_FIRST)
        return first_step(x, c, call);
    if (x->step == STEP_DEFERRED)
        return answer(x, c, call->connection, &x->call.reply);
    if (x->step == STEP_ANSWERED) { /* the rest of a body after an early answer */
        *call->data_bytes = 0;
        return MHD_YES;
    }
    if (*call->data_bytes > 0) {
        size_t bytes = *call->data_bytes;
        *call->data_bytes = 0;
        if (x->keeps_body && request_add_body(&x->request, call->data, bytes) != STATUS_OK)
            return MHD_NO;
        return MHD_YES;
    }
    return last_step(x, c, call->connection);
}
