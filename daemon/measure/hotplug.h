/* hotplug.h: merges what the driver lists with what is published. */
#ifndef REACH_MEASURE_HOTPLUG_H
#define REACH_MEASURE_HOTPLUG_H

#include "measure/pipeline.h"

/* What the driver has reported. */
struct gpu_listing {
    uint32_t count;
    struct gpu_listed gpus[REACH_MAX_GPUS];
    uint32_t merged;  /* the first so many are published already */
    uint32_t unnamed; /* devices of which not even the UUID is known, */
    struct err why_unnamed;
    bool complete;  /* there are no others */
    struct err why; /* why there is no list; STATUS_OK: there is one */
};

/* Publishes what a list, which may grow, has that is not published yet. The mutex is not held. */
void pipeline_merge(struct pipeline *p, struct gpu_listing *listing);

#endif
