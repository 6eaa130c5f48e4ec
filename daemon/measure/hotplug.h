/* hotplug.h: merges what the driver lists with what is published. */
#ifndef REACH_MEASURE_HOTPLUG_H
#define REACH_MEASURE_HOTPLUG_H

#include "measure/pipeline.h"

struct gpu_listing;

/* Publishes what a list, which may grow, has that is not published yet. The mutex is not held. */
void pipeline_merge(struct pipeline *p, struct gpu_listing *listing);

#endif
