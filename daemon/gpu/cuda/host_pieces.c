/* host_pieces.c: see host_pieces.h. */
#include "gpu/cuda/host_pieces.h"

#include "gpu/cuda/cuda_arena.h"

#include <stdlib.h>

static uint64_t piece_at(uint64_t at, uint64_t bytes)
{
    return bytes - at < HOST_PIECE_BYTES ? bytes - at : HOST_PIECE_BYTES;
}

/* ---- registered memory ---- */

/* Returns the device address of the piece at `at`, which must continue the range. */
static enum status check_adjacent(const struct cuda_api *api, char *host, uint64_t at,
                                  cu_deviceptr *base, struct err *err)
{
    cu_deviceptr address = 0;
    const enum status s = CUDA_CALL(api, err, cuMemHostGetDevicePointer, &address, host + at, 0);

    if (s != STATUS_OK)
        return s;
    if (at == 0)
        *base = address;
    return address == *base + at
               ? STATUS_OK
               : err_set(
                     err, STATUS_NOT_SUPPORTED,
                     "cannot use registered memory: the driver does not map its pieces adjacently");
}

enum status host_pieces_register(const struct cuda_api *api, void *host, uint64_t bytes,
                                 cu_deviceptr *out_base, uint64_t *registered_bytes,
                                 struct err *err)
{
    enum status s = STATUS_OK;

    *registered_bytes = 0;
    for (uint64_t at = 0; at < bytes && s == STATUS_OK; at = *registered_bytes) {
        const uint64_t piece = piece_at(at, bytes);
        s = CUDA_CALL(api, err, cuMemHostRegister, (char *)host + at, piece,
                      CU_MEMHOST_PORTABLE_AND_MAPPED);
        if (s != STATUS_OK)
            break;
        *registered_bytes += piece;
        s = check_adjacent(api, host, at, out_base, err);
    }
    return s;
}

void host_pieces_unregister(const struct cuda_api *api, void *host, uint64_t registered_bytes)
{
    for (uint64_t at = 0; at < registered_bytes; at += HOST_PIECE_BYTES)
        api->cuMemHostUnregister((char *)host + at);
}

/* ---- handles ---- */

static enum status add_handle(const struct cuda_api *api, cu_device device,
                              const struct cu_mem_allocation_prop *prop, uint64_t piece,
                              struct host_handles *h, struct err *err)
{
    const struct cu_mem_access_desc access = {
        .location = {.type = CU_LOCATION_DEVICE, .id = device}, .flags = 3};
    const cu_deviceptr at = h->base + h->mapped_bytes;
    enum status s = CUDA_CALL(api, err, cuMemCreate, &h->handles[h->created_count], piece, prop, 0);

    if (s != STATUS_OK)
        return s;
    h->created_count += 1;
    s = CUDA_CALL(api, err, cuMemMap, at, piece, 0, h->handles[h->created_count - 1], 0);
    if (s != STATUS_OK)
        return s;
    h->mapped_bytes += piece;
    s = CUDA_CALL(api, err, cuMemSetAccess, at, piece, &access, 1);
    return s == STATUS_OK ? CUDA_CALL(api, err, cuMemsetD8, at, 0, piece) : s;
}

enum status host_handles_open(const struct cuda_api *api, cu_device device,
                              const struct cu_mem_allocation_prop *prop, uint64_t bytes,
                              struct host_handles *out, struct err *err)
{
    const uint64_t count = (bytes + HOST_PIECE_BYTES - 1) / HOST_PIECE_BYTES;
    enum status s;

    *out = (struct host_handles){.base = 0};
    s = cuda_arena_reserve(api, bytes, &out->base, err);
    if (s != STATUS_OK)
        return s;
    out->reserved_bytes = bytes;
    out->handles = calloc(count, sizeof *out->handles);
    if (!out->handles)
        return err_no_memory(err, "%llu handles", (unsigned long long)count);
    while (s == STATUS_OK && out->mapped_bytes < bytes)
        s = add_handle(api, device, prop, piece_at(out->mapped_bytes, bytes), out, err);
    return s;
}

/* Errors of the driver are ignored here: the end of the context releases everything else. */
void host_handles_close(const struct cuda_api *api, struct host_handles *h)
{
    for (uint64_t at = 0; at < h->mapped_bytes; at += HOST_PIECE_BYTES)
        api->cuMemUnmap(h->base + at, piece_at(at, h->mapped_bytes));
    for (uint64_t i = 0; i < h->created_count; i++)
        api->cuMemRelease(h->handles[i]);
    if (h->reserved_bytes)
        api->cuMemAddressFree(h->base, h->reserved_bytes);
    free(h->handles);
    *h = (struct host_handles){.base = 0};
}
