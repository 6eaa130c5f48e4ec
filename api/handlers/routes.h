/* routes.h: which path is answered by whom. */
#ifndef REACH_API_ROUTES_H
#define REACH_API_ROUTES_H

#include "api/handlers/handlers.h"

/* Answers the request: 404, 405 and unknown query parameters here, everything else by its handler.
 * Fills the captures of the request. */
void routes_dispatch(struct handlers_context *c, struct request *request, struct reply *reply);

/* True where the method and path belong to a route that reads a body. */
bool routes_takes_body(const struct request *request);

/* What GET / lists: {"service": "reachd", "routes": [{"method","path","about"}..]}. */
json_t *routes_to_json(void);

#endif
