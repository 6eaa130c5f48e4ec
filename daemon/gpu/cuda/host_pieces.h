/* host_pieces.h: a range of host memory for a GPU that is made and released piece by piece.
 *
 * While the driver pins host memory, calls of all other processes on the node wait. One call of
 * cuMemCreate for 16 GiB makes nvidia-smi wait for 3 s. Each call for 64 MiB makes it wait for 0.1
 * s (docs/methods.md, "kinds of memory"). The pieces are adjacent, so they are one range for a
 * kernel. One thread uses a range.
 */
#pragma once

#include "gpu/cuda/cuda_api.h"

/* The length of a piece; the last piece of a range may be shorter. */
enum { HOST_PIECE_BYTES = 64 << 20 };

/* Registers [host, host + bytes), which must be aligned to 2 MiB. `*registered_bytes` counts the
 * registered bytes, also after a failure, for host_pieces_unregister. Returns STATUS_NOT_SUPPORTED
 * if the driver gives the pieces device addresses that are not adjacent. */
enum status host_pieces_register(const struct cuda_api *api, void *host, uint64_t bytes,
                                 cu_deviceptr *out_base, uint64_t *registered_bytes,
                                 struct err *err);
void host_pieces_unregister(const struct cuda_api *api, void *host, uint64_t registered_bytes);

/* Handles of the virtual memory API, mapped side by side. */
struct host_handles {
    cu_deviceptr base;
    uint64_t reserved_bytes;
    cu_mem_handle *handles; /* owned */
    uint64_t created_count; /* number of handles that exist */
    uint64_t mapped_bytes;  /* length of the mapped memory from `base` on */
};

/* Creates, maps and zeroes `bytes` of host memory, which `prop` describes, and gives `device`
 * access to it. `bytes` is a multiple of the granule of `prop`. After a failure `*out` contains
 * everything made so far, for host_handles_close. */
enum status host_handles_open(const struct cuda_api *api, cu_device device,
                              const struct cu_mem_allocation_prop *prop, uint64_t bytes,
                              struct host_handles *out, struct err *err);
/* Releases everything. A zeroed `*h` is allowed. */
void host_handles_close(const struct cuda_api *api, struct host_handles *h);
