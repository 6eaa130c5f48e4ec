/* routes.h: dispatches a request to the function of its route. Any thread. */
#ifndef REACH_API_HANDLERS_ROUTES_H
#define REACH_API_HANDLERS_ROUTES_H

#include "api/handlers/handlers.h"

/* Answers the request: 404, 405, 401, unknown query parameters and GPUs here, everything else by
 * the function of the route. Fills the captures of the request and of the context. */
void routes_dispatch(struct handlers_context *c, struct request *request, struct reply *reply);

/* True if the method and path belong to a route that reads a body. */
bool routes_takes_body(const struct request *request);

#endif
