/* hotplug.h: merges the driver's list of GPUs with the published GPUs. */
#pragma once

#include "measure/pipeline.h"

struct gpu_listing;

/* Publishes the unpublished GPUs of a list, which may grow. The mutex is not held. */
void pipeline_merge(struct pipeline *p, struct gpu_listing *listing);
