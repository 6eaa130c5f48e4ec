/* fake_pointer.c: the driver calls that the diagnosis of libreach-cuda uses: attributes of
 * pointers, the location of managed memory, mapped handles, and copies in a stream. */
#include "tests/fakecuda/fake_driver.h"
#include "tests/fakecuda/fake_state.h"

#include <limits.h>
#include <string.h>

/* constants of CUmemorytype, CUpointer_attribute and CUmem_range_attribute */
enum { TYPE_HOST = 1, TYPE_DEVICE = 2 };
enum {
    POINTER_TYPE = 2,
    POINTER_DEVICE = 3,
    POINTER_HOST = 4,
    POINTER_MANAGED = 8,
    POINTER_ORDINAL = 9,
    POINTER_DOMAIN = 22, /* CU_POINTER_ATTRIBUTE_LOCALITY_DOMAIN_ORDINAL */
    POINTER_RANGE_START = 11,
    POINTER_RANGE_BYTES = 12,
    POINTER_MAPPING_BYTES = 18
};
enum { RANGE_PREFERRED = 2, RANGE_ACCESSED_BY = 3, RANGE_PREFETCHED = 4 };

cu_result cuCtxGetDevice(cu_device *device)
{
    const cu_result r = fake_enter("cuCtxGetDevice");
    if (r != CU_SUCCESS)
        return r;
    if (fake.current < 0)
        return CU_ERROR_INVALID_CONTEXT;
    *device = fake.current;
    return CU_SUCCESS;
}

cu_result cuMemcpyHtoDAsync_v2(cu_deviceptr to, const void *from, size_t bytes, cu_stream stream)
{
    const cu_result r = fake_enter_context("cuMemcpyHtoDAsync");
    if (r != CU_SUCCESS)
        return r;
    if (!fake_stream_of(stream) || !fake_copy(NULL, to, from, 0, bytes))
        return fake_misuse(CU_ERROR_INVALID_VALUE, "a copy to memory or in a stream that is not "
                                                   "there");
    return CU_SUCCESS;
}

cu_result cuMemcpyDtoHAsync_v2(void *to, cu_deviceptr from, size_t bytes, cu_stream stream)
{
    const cu_result r = fake_enter_context("cuMemcpyDtoHAsync");
    if (r != CU_SUCCESS)
        return r;
    if (!fake_stream_of(stream) || !fake_copy(to, 0, NULL, from, bytes))
        return fake_misuse(CU_ERROR_INVALID_VALUE, "a copy from memory or in a stream that is not "
                                                   "there");
    return CU_SUCCESS;
}

/* Returns the allocation that contains `pointer`, an address of the device or of the process. */
static const struct fake_alloc *find_alloc(cu_deviceptr pointer)
{
    const struct fake_alloc *allocs = fake.allocs.items;
    for (size_t i = 0; i < fake.allocs.count; i++) {
        if (pointer - allocs[i].va < allocs[i].bytes ||
            (allocs[i].process &&
             pointer - (uint64_t)(uintptr_t)allocs[i].process < allocs[i].bytes))
            return &allocs[i];
    }
    return NULL;
}

static const struct fake_map *find_map(cu_deviceptr pointer)
{
    const struct fake_map *maps = fake.maps.items;
    for (size_t i = 0; i < fake.maps.count; i++) {
        if (pointer - maps[i].va < maps[i].bytes)
            return &maps[i];
    }
    return NULL;
}

static cu_result alloc_attribute(const struct fake_alloc *a, int attribute, cu_deviceptr pointer,
                                 uint64_t *out)
{
    const uint64_t start = a->process ? (uint64_t)(uintptr_t)a->process : a->va;
    switch (attribute) {
    case POINTER_TYPE:
        *out = a->process ? TYPE_HOST : TYPE_DEVICE;
        return CU_SUCCESS;
    case POINTER_DEVICE:
        *out = a->va + (pointer - start);
        return CU_SUCCESS;
    case POINTER_HOST:
        *out = pointer;
        return a->process ? CU_SUCCESS : CU_ERROR_INVALID_VALUE;
    case POINTER_MANAGED:
        *out = a->kind == MEMORY_MANAGED_HOST || a->kind == MEMORY_MANAGED_DEVICE;
        return CU_SUCCESS;
    case POINTER_ORDINAL:
        *out = (uint64_t)a->device;
        return CU_SUCCESS;
    case POINTER_RANGE_START:
        *out = start;
        return CU_SUCCESS;
    case POINTER_RANGE_BYTES:
        *out = a->bytes;
        return CU_SUCCESS;
    default:
        return CU_ERROR_INVALID_VALUE;
    }
}

static cu_result map_attribute(const struct fake_map *m, int attribute, cu_deviceptr pointer,
                               uint64_t *out)
{
    switch (attribute) {
    case POINTER_TYPE:
        *out = TYPE_DEVICE;
        return CU_SUCCESS;
    case POINTER_DEVICE:
        *out = pointer;
        return CU_SUCCESS;
    case POINTER_MAPPING_BYTES:
        *out = m->bytes;
        return CU_SUCCESS;
    case POINTER_DOMAIN:
        *out = (uint64_t)fake_handle(m->handle)->domain;
        return fake.control.gpus[fake.current].domains > 0 ? CU_SUCCESS : CU_ERROR_INVALID_VALUE;
    default:
        return CU_ERROR_INVALID_VALUE;
    }
}

cu_result cuPointerGetAttribute(void *data, int attribute, cu_deviceptr pointer)
{
    const cu_result r = fake_enter_context("cuPointerGetAttribute");
    const struct fake_alloc *a = find_alloc(pointer);
    const struct fake_map *m = find_map(pointer);
    uint64_t value = 0;
    cu_result told;
    if (r != CU_SUCCESS || (!a && !m))
        return r != CU_SUCCESS ? r : CU_ERROR_INVALID_VALUE;
    told = a ? alloc_attribute(a, attribute, pointer, &value)
             : map_attribute(m, attribute, pointer, &value);
    memcpy(data, &value, sizeof(uint32_t)); /* the smallest attributes have 32 bits */
    if (attribute != POINTER_TYPE && attribute != POINTER_MANAGED && attribute != POINTER_ORDINAL &&
        attribute != POINTER_DOMAIN)
        memcpy(data, &value, sizeof value);
    return told;
}

cu_result cuMemRangeGetAttribute(void *data, size_t bytes, int attribute, cu_deviceptr p,
                                 size_t count)
{
    const cu_result r = fake_enter_context("cuMemRangeGetAttribute");
    const struct fake_alloc *a = find_alloc(p);
    int *const out = data;
    if (r != CU_SUCCESS)
        return r;
    if (!a || p + count > a->va + a->bytes || bytes % sizeof(int) != 0)
        return fake_misuse(CU_ERROR_INVALID_VALUE, "a range that is not there");
    for (size_t i = 0; i < bytes / sizeof(int); i++)
        out[i] = FAKE_NOWHERE;
    if (attribute == RANGE_PREFERRED)
        out[0] = a->preferred;
    else if (attribute == RANGE_PREFETCHED)
        out[0] = a->prefetched;
    else if (attribute == RANGE_ACCESSED_BY && a->accessed)
        out[0] = a->device;
    return CU_SUCCESS;
}

cu_result cuMemGetAccess(unsigned long long *flags, const struct cu_mem_location *location,
                         cu_deviceptr p)
{
    const cu_result r = fake_enter_context("cuMemGetAccess");
    const struct fake_map *m = find_map(p);
    if (r != CU_SUCCESS)
        return r;
    if (!m || location->type != CU_LOCATION_DEVICE)
        return fake_misuse(CU_ERROR_INVALID_VALUE, "access to no mapping");
    *flags = m->accessible ? 3 : 0;
    return CU_SUCCESS;
}

cu_result cuMemRetainAllocationHandle(cu_mem_handle *handle, void *p)
{
    const cu_result r = fake_enter_context("cuMemRetainAllocationHandle");
    const struct fake_map *m = find_map((cu_deviceptr)(uintptr_t)p);
    if (r != CU_SUCCESS || !m)
        return r != CU_SUCCESS ? r : CU_ERROR_INVALID_VALUE;
    fake_handle(m->handle)->retains++;
    *handle = m->handle;
    return CU_SUCCESS;
}

cu_result cuMemGetAllocationPropertiesFromHandle(struct cu_mem_allocation_prop *prop,
                                                 cu_mem_handle handle)
{
    const cu_result r = fake_enter_context("cuMemGetAllocationPropertiesFromHandle");
    const struct fake_handle *h = fake_handle(handle);
    if (r != CU_SUCCESS)
        return r;
    if (!h)
        return fake_misuse(CU_ERROR_INVALID_VALUE, "the properties of no handle");
    memset(prop, 0, sizeof *prop);
    prop->type = 1;
    prop->location.type =
        h->kind == MEMORY_HOST_VIRTUAL ? CU_LOCATION_HOST_NUMA : CU_LOCATION_DEVICE;
    prop->location.id = h->kind == MEMORY_HOST_VIRTUAL ? 0 : h->device;
    if (h->domain != FAKE_NO_DOMAIN)
        prop->location =
            (struct cu_mem_location){FAKE_LOCATION_DOMAIN, h->device | h->domain << CHAR_BIT};
    prop->flags.compression_type = h->compressed;
    return CU_SUCCESS;
}
