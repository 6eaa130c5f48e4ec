/* onchip.h: the part of `reachctl caches` about shared memory, clusters and parallelism. */
#ifndef REACH_CLIENTS_REACHCTL_ONCHIP_H
#define REACH_CLIENTS_REACHCTL_ONCHIP_H

#include <jansson.h>

/* Prints the parts "shared", "clusters" and "parallelism" of GET /v1/gpus/{gpu}/caches. */
void onchip_print(const json_t *caches);

#endif
