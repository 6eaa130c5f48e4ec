/* scattered.cuh: allocates memory whose adjacent virtual pieces are not adjacent in physical
 * memory, if the driver permits that for its handles. */
#pragma once

#include "common.cuh"

#include <cuda.h>
#include <utility>
#include <vector>

/* Maps `bytes` of virtual memory to handles of `run` bytes in random order, always the same order.
 * The memory is released when the process ends. */
static char *scattered_memory(uint64_t bytes, uint64_t run)
{
    CUmemAllocationProp prop = {};
    CUmemAccessDesc access = {};
    std::vector<CUmemGenericAllocationHandle> handles(bytes / run);
    CUdeviceptr base;
    uint64_t x = 88172645463325252ull;

    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    for (size_t i = 0; i < handles.size(); i++) {
        CHECK(DRIVER(cuMemCreate)(&handles[i], run, &prop, 0));
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        std::swap(handles[i], handles[(x >> 33) % (i + 1)]);
    }
    CHECK(DRIVER(cuMemAddressReserve)(&base, bytes, 1 << 30, 0, 0));
    for (size_t i = 0; i < handles.size(); i++)
        CHECK(DRIVER(cuMemMap)(base + i * run, run, 0, handles[i], 0));
    CHECK(DRIVER(cuMemSetAccess)(base, bytes, &access, 1));
    return (char *)base;
}
