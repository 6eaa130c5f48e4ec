/* backend.h: the API's access to the rest of the daemon. Requests are answered from the store and
 * the pipeline. */
#pragma once

#include "api/handlers/backend.h"
#include "compare/reference.h"
#include "measure/pipeline.h"
#include "store/store.h"

struct backend {
    struct store *store;               /* borrowed */
    struct pipeline *pipeline;         /* borrowed */
    const struct reference *reference; /* chips to compare with, borrowed; may be NULL */
};

/* Returns the functions that the API calls. The result borrows `backend`. */
struct api_backend backend_api(struct backend *backend);
