/* exchange.c: the life of one request.
 *
 * libmicrohttpd calls the access handler at least twice: once when the header fields are there,
 * then for each piece of the body, and once more at its end. The first call is where a request is
 * refused before its body is read; an answer given there closes the connection. Everything else is
 * answered in the last call. A body that no route reads is thrown away as it comes.
 */
#include "api/exchange.h"

#include "api/guard.h"
#include "api/problem.h"
#include "api/routes.h"

#include <stdlib.h>
#include <string.h>

enum step { STEP_FIRST = 0, STEP_BODY, STEP_ANSWERED };

struct exchange {
    enum step step;
    bool keeps_body;
    char *target; /* owned: libmicrohttpd writes over its own */
    struct request request;
};

struct exchange *exchange_new(const char *target)
{
    struct exchange *x = calloc(1, sizeof(*x));

    if (!x)
        return NULL;
    x->target = strdup(target);
    if (!x->target) {
        free(x);
        return NULL;
    }
    return x;
}

void exchange_free(struct exchange *take)
{
    if (!take)
        return;
    request_clear(&take->request);
    free(take->target);
    free(take);
}

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static enum MHD_Result refuse(struct exchange *x, struct MHD_Connection *connection,
                              const struct problem *problem)
{
    struct reply reply = {.http_status = 0};

    problem_write(&reply, &x->request, problem);
    reply.close = true; /* where the next request begins is not certain */
    x->step = STEP_ANSWERED;
    return reply_send(connection, &x->request, &reply);
}

static enum MHD_Result first_step(struct exchange *x, struct MHD_Connection *connection,
                                  const char *method, const char *http_version)
{
    struct problem problem;
    struct err err;

    x->request.method = method;
    if (!guard_check(connection, http_version, &problem))
        return refuse(x, connection, &problem);
    if (request_parse(&x->request, x->target, &err) != STATUS_OK) {
        problem = (struct problem){.status = err.status};
        memcpy(problem.detail, err.text, sizeof(problem.detail));
        return refuse(x, connection, &problem);
    }
    x->request.accept = header(connection, MHD_HTTP_HEADER_ACCEPT);
    x->request.content_type = header(connection, MHD_HTTP_HEADER_CONTENT_TYPE);
    x->request.if_none_match = header(connection, MHD_HTTP_HEADER_IF_NONE_MATCH);
    x->keeps_body = routes_takes_body(&x->request);
    x->step = STEP_BODY;
    return MHD_YES;
}

static enum MHD_Result last_step(struct exchange *x, struct handlers_context *c,
                                 struct MHD_Connection *connection)
{
    struct reply reply = {.http_status = 0};
    struct problem problem;

    x->step = STEP_ANSWERED;
    if (x->request.body_too_large) {
        guard_too_large(&problem);
        problem_write(&reply, &x->request, &problem);
        reply.close = true;
    } else {
        routes_dispatch(c, &x->request, &reply);
    }
    return reply_send(connection, &x->request, &reply);
}

enum MHD_Result exchange_step(struct exchange *x, struct handlers_context *c,
                              struct MHD_Connection *connection, const char *method,
                              const char *http_version, const char *data, size_t *data_bytes)
{
    if (x->step == STEP_FIRST)
        return first_step(x, connection, method, http_version);
    if (x->step == STEP_ANSWERED) { /* the rest of a body after an early answer */
        *data_bytes = 0;
        return MHD_YES;
    }
    if (*data_bytes > 0) {
        size_t bytes = *data_bytes;
        *data_bytes = 0;
        if (x->keeps_body && request_add_body(&x->request, data, bytes) != STATUS_OK)
            return MHD_NO;
        return MHD_YES;
    }
    return last_step(x, c, connection);
}
