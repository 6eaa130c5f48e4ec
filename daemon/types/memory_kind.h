/* memory_kind.h: the kinds of memory that a kernel can touch, by how they are allocated. A GPU
 * translates them with entries of different lengths, so each kind has its own reach.
 *
 *   device                cuMemAlloc, cuMemCreate: the subject of all other parts of a fingerprint
 *   managed-device        cuMemAllocManaged, prefetched to the device
 *   host-pinned           cuMemHostAlloc
 *   host-virtual          cuMemCreate at a NUMA node of the host
 *   managed-host          cuMemAllocManaged, preferred location host, accessed by the device
 *   host-registered       ordinary pages of the process, cuMemHostRegister
 *   host-registered-huge  transparent huge pages of the process, cuMemHostRegister
 *   host-pageable         pages of the process that the driver did not allocate and does not pin:
 *                         heterogeneous memory management (HMM), or page tables of the host (ATS)
 *   host-file             a mapped file, read like host-pageable
 *   host-gathered         ordinary pages of the process, which no kernel touches: threads of the
 *                         CPU gather rows into pinned memory, and then the rows are copied
 *   peer                  device memory of another GPU of the node
 */
#pragma once

#include <stdbool.h>

enum memory_kind {
    MEMORY_DEVICE = 0,
    MEMORY_MANAGED_DEVICE,
    MEMORY_HOST_PINNED,
    MEMORY_HOST_VIRTUAL,
    MEMORY_MANAGED_HOST,
    MEMORY_HOST_REGISTERED,
    MEMORY_HOST_REGISTERED_HUGE,
    MEMORY_HOST_PAGEABLE,
    MEMORY_HOST_FILE,
    MEMORY_HOST_GATHERED,
    MEMORY_PEER, /* the last kind, because a node can have several peers */
    MEMORY_KIND_COUNT
};

/* Returns "device", "managed-device" and so on. */
const char *memory_kind_name(enum memory_kind kind);
/* Returns false if no kind has this name or `name` is NULL; `*out` is then unchanged. */
bool memory_kind_from_name(const char *name, enum memory_kind *out);

/* Returns whether the kind takes memory of the host. */
bool memory_kind_is_host(enum memory_kind kind);
