/* cuda_onchip.h: runs SHARED and PEER on the device. They touch no memory of the GPU. The module is
 * internal to the cuda source. */
#pragma once

#include "gpu/cuda/cuda_launch.h"

/* Runs a SHARED; writes `count` values. */
enum status cuda_onchip_shared(const struct cuda_probe *p, const struct probe_spec *spec,
                               uint32_t *values, size_t count, struct err *err);
/* Runs a PEER: launches all clusters that fit at a time, once for each repeat. If no cluster of
 * that size fits, the rows are 0. */
enum status cuda_onchip_peer(const struct cuda_probe *p, const struct probe_spec *spec,
                             uint32_t *values, struct err *err);
