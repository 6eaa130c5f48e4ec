/* devices.h: the names in reachd of the GPUs of a task. Both functions need only libc, and
 * devices_read is pure.
 *
 * Slurm passes UUIDs or indices in CUDA_VISIBLE_DEVICES. If cgroups constrain the devices, the
 * indices count from 0 among the GPUs whose device files the task can open. The names in reachd
 * then contain the numbers of these files ("pci:0@2,5").
 *
 * If no device file is forbidden, SLURM_STEP_GPUS or SLURM_JOB_GPUS has the indices of the node.
 * Slurm counts by PCI address ("pci:1") if it finds the GPUs by NVML, and else in the order of
 * gres.conf.
 *
 * CUDA counts by PCI address only if CUDA_DEVICE_ORDER is PCI_BUS_ID. Otherwise it counts from the
 * fastest GPU ("cuda:1"), which reachd can resolve only if all GPUs are alike. For a constrained
 * job with one GPU the order does not matter. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { DEVICES_MAX = 32, DEVICE_FILES_BYTES = 128, DEVICE_NAME_BYTES = 144 };

struct devices {
    uint32_t count;
    char names[DEVICES_MAX][DEVICE_NAME_BYTES]; /* in the order in which CUDA numbers them */
};

/* Lists the numbers of the files /dev/nvidiaN that the calling process may open, for example "2,5".
 * Writes "" if a cgroup forbids none of the files or all, or if there are too many. */
void devices_list_files(char out[DEVICE_FILES_BYTES]);

/* `visible` is the value of CUDA_VISIBLE_DEVICES, `node` of SLURM_STEP_GPUS or SLURM_JOB_GPUS, and
 * `order` of CUDA_DEVICE_ORDER. Each is "" if it is not set. `files` is from devices_list_files.
 * Like in CUDA, the list ends at an entry "-1". Returns false if the values name no GPU or are
 * ambiguous. */
bool devices_read(const char *visible, const char *node, const char *order, const char *files,
                  struct devices *out);
