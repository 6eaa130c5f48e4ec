/* devices.h: the GPUs of a task, by their names in reachd. Pure; needs only libc.
 *
 * Slurm passes them in CUDA_VISIBLE_DEVICES: UUIDs, or indices. If cgroups constrain the devices,
 * the indices count from 0 within the job, and SLURM_STEP_GPUS or SLURM_JOB_GPUS has those of the
 * node.
 *
 * Slurm counts by PCI address ("pci:1" in reachd). CUDA does so only if CUDA_DEVICE_ORDER is
 * PCI_BUS_ID, else from the fastest GPU ("cuda:1"), which reachd knows only if all are alike. With
 * one GPU in a constrained job there is nothing to order.
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

/* `visible` is the value of CUDA_VISIBLE_DEVICES, `node` that of SLURM_STEP_GPUS or SLURM_JOB_GPUS,
 * and `order` that of CUDA_DEVICE_ORDER ("": not set). As for CUDA, the list ends at an entry "-1".
 * False if they name no GPU, or if it is ambiguous which. */
bool devices_read(const char *visible, const char *node, const char *order, struct devices *out);

#endif
