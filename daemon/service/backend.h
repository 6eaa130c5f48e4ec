/* backend.h: what the API needs of the rest of the daemon, answered from the store and the
 * pipeline. */
#ifndef REACH_SERVICE_BACKEND_H
#define REACH_SERVICE_BACKEND_H

#include "api/handlers/backend.h"
#include "compare/reference.h"
#include "measure/pipeline.h"
#include "store/store.h"

struct backend {
    struct store *store;               /* borrowed */
    struct pipeline *pipeline;         /* borrowed */
    const struct reference *reference; /* the chips to compare with, borrowed; NULL: none */
};

/* Every slot of the API's contract; borrows `backend`. */
struct api_backend backend_api(struct backend *backend);

#endif
