/* devices.h: the names in reachd of the GPUs of a task. The function is pure and needs only libc.
 *
 * Slurm passes UUIDs or indices in CUDA_VISIBLE_DEVICES. If cgroups constrain the devices, the
 * indices count from 0 within the job, and SLURM_STEP_GPUS or SLURM_JOB_GPUS has the indices of the
 * node.
 *
 * Slurm counts by PCI address ("pci:1" in reachd). CUDA does so only if CUDA_DEVICE_ORDER is
 * PCI_BUS_ID. Otherwise it counts from the fastest GPU ("cuda:1"), which reachd can resolve only if
 * all GPUs are alike. For a constrained job with one GPU the order does not matter. */
#ifndef REACH_CLIENTS_SLURM_DEVICES_H
#define REACH_CLIENTS_SLURM_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

enum { DEVICES_MAX = 32, DEVICE_NAME_BYTES = 64 };

struct devices {
    uint32_t count;
    char names[DEVICES_MAX][DEVICE_NAME_BYTES]; /* in the order in which CUDA numbers them */
};

/* `visible` is the value of CUDA_VISIBLE_DEVICES, `node` of SLURM_STEP_GPUS or SLURM_JOB_GPUS, and
 * `order` of CUDA_DEVICE_ORDER. Each is "" if it is not set. Like in CUDA, the list ends at an
 * entry "-1". Returns false if the values name no GPU or are ambiguous.
 */
bool devices_read(const char *visible, const char *node, const char *order, struct devices *out);

#endif
