/* order.h: puts the GPUs of a snapshot into the order of their indices. */
#pragma once

#include "snapshot/snapshot.h"

struct pipeline;

/* Sorts the GPUs of a draft, and `which` as well, and gives the threads their new indices. Returns
 * the draft or its replacement. The mutex is held. */
struct snapshot *pipeline_sort(struct pipeline *p, struct snapshot *take,
                               bool which[REACH_MAX_GPUS]);
