/* devices.h: which GPUs a task has, by the names under which reachd knows them. Pure, libc alone.
 *
 * Slurm tells a task its GPUs as CUDA_VISIBLE_DEVICES: UUIDs, or indices. Where devices are
 * constrained by cgroups the indices count from 0 inside the job, and SLURM_STEP_GPUS or
 * SLURM_JOB_GPUS has those of the node.
 */
#ifndef REACH_CLIENTS_SLURM_DEVICES_H
#define REACH_CLIENTS_SLURM_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

enum { DEVICES_MAX = 32, DEVICE_NAME_BYTES = 64 };

struct devices {
    uint32_t count;
    char names[DEVICES_MAX][DEVICE_NAME_BYTES]; /* in the order in which CUDA numbers them */
};

/* `visible` is the value of CUDA_VISIBLE_DEVICES, `node` that of SLURM_STEP_GPUS or SLURM_JOB_GPUS
 * ("": not there). False where that names no GPU, or where it is not certain which. */
bool devices_read(const char *visible, const char *node, struct devices *out);

#endif
