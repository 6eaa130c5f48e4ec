/* backend.h: what the API asks of the rest of the daemon, answered from the store and the
 * pipeline. */
#ifndef REACH_BACKEND_H
#define REACH_BACKEND_H

#include "api/handlers/backend.h"
#include "pipeline/pipeline.h"
#include "store/store.h"

struct backend {
    struct store *store;       /* borrowed */
    struct pipeline *pipeline; /* borrowed */
};

/* Every slot of the API's contract; borrows `backend`. */
struct api_backend backend_api(struct backend *backend);

/* A job as the API shows it; new reference, NULL without memory. */
json_t *backend_job_json(const struct job *job);

#endif
