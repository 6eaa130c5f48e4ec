/* diagnose_kind.c: the driver's information about a pointer. The sources are attributes of pointers
 * and ranges, the properties of a handle and, for host memory, the mappings of the process. */
#include "clients/cuda/diagnose/diagnose_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Values of CUmemorytype, CUpointer_attribute and CUmem_range_attribute. */
enum {
    TYPE_HOST = 1,
    POINTER_TYPE = 2,
    POINTER_DEVICE = 3,
    POINTER_HOST = 4,
    POINTER_MANAGED = 8,
    POINTER_ORDINAL = 9,
    POINTER_RANGE_START = 11,
    POINTER_RANGE_BYTES = 12,
    POINTER_ACCESS = 16,
    POINTER_MAPPING_BYTES = 18,
    RANGE_PREFERRED = 2,
    RANGE_ACCESSED_BY = 3,
    RANGE_PREFETCHED = 4,
    MAX_ACCESSED_BY = 64,
    MAPPING_CHARS = 512
};

const char *reach_memory_name(enum reach_memory memory)
{
    static const char *const names[REACH_MEMORY_COUNT] = {
        "unknown",        "device",          "peer",
        "managed-device", "managed-host",    "managed",
        "host-pinned",    "host-registered", "host-virtual"};

    return (unsigned)memory < REACH_MEMORY_COUNT ? names[memory] : names[0];
}

/* Returns whether the driver answered. An attribute that does not apply to this memory is not a
 * failure. The first other failure is recorded. */
static bool tells(struct diagnose *d, int result, const char *call)
{
    if (result != 0 && result != DRV_INVALID_VALUE && result != DRV_NOT_PERMITTED &&
        result != DRV_NOT_SUPPORTED && d->failed == REACH_ALLOC_OK)
        d->failed = alloc_driver_check(&d->driver, result, call, &d->failure);
    return result == 0;
}

/* Returns an attribute, or 0 if the driver does not report it. No attribute is longer than 8
 * bytes. */
static uint64_t attribute(struct diagnose *d, int which, uint64_t pointer)
{
    uint64_t value = 0;
    const int result = d->driver.cuPointerGetAttribute(&value, which, pointer);

    return tells(d, result, "cuPointerGetAttribute") ? value : 0;
}

/* ---- managed memory ---- */

static bool range_attribute(struct diagnose *d, int which, int *out, size_t bytes)
{
    return tells(d, d->driver.cuMemRangeGetAttribute(out, bytes, which, d->address, d->found.bytes),
                 "cuMemRangeGetAttribute");
}

/* Returns a device, DRV_CPU, or DRV_NOWHERE if the pages have no common location. */
static int range_location(struct diagnose *d, int which)
{
    int location = DRV_NOWHERE;

    return range_attribute(d, which, &location, sizeof location) ? location : DRV_NOWHERE;
}

static bool is_accessed_by_device(struct diagnose *d)
{
    int devices[MAX_ACCESSED_BY] = {0};

    if (!range_attribute(d, RANGE_ACCESSED_BY, devices, sizeof devices))
        return false;
    for (int i = 0; i < MAX_ACCESSED_BY; i++) {
        if (devices[i] == d->device)
            return true;
    }
    return false;
}

/* Finds the location of the pages by the advice, or else by the last prefetch. A read would move
 * pages that are elsewhere and not mapped. */
static enum reach_memory managed_location(struct diagnose *d)
{
    const int preferred = range_location(d, RANGE_PREFERRED);
    const int prefetched = range_location(d, RANGE_PREFETCHED);
    const int location = preferred != DRV_NOWHERE ? preferred : prefetched;

    if (location == d->device) {
        if (prefetched != d->device)
            d->unread = "the managed memory was not prefetched to the device, so a read may move "
                        "pages";
        return REACH_MEMORY_MANAGED_DEVICE;
    }
    if (location == DRV_CPU) {
        if (!is_accessed_by_device(d))
            d->unread = "the managed memory is not set as accessed by the device, so a read may "
                        "move pages";
        return REACH_MEMORY_MANAGED_HOST;
    }
    d->unread =
        "the managed memory has no location at this device or at the host, so a read may move "
        "pages";
    return REACH_MEMORY_MANAGED;
}

/* ---- host memory ---- */

/* The driver gives the same attributes for memory that it allocated and for registered memory. It
 * maps its own memory shared, without a file or from its device. Shared memory without a file that
 * a process registered cannot be distinguished from it. */
static enum reach_memory pinned_or_registered(uint64_t host)
{
    char line[MAPPING_CHARS];
    enum reach_memory memory = REACH_MEMORY_HOST_PINNED;
    FILE *maps = fopen("/proc/self/maps", "re");

    while (maps && fgets(line, sizeof line, maps)) {
        char *end = line;
        const uint64_t from = strtoull(line, &end, 16);
        const uint64_t behind = *end == '-' ? strtoull(end + 1, &end, 16) : 0;
        if (host < from || host >= behind) /* the permissions follow: " rwxp " */
            continue;
        if ((strlen(end) > 4 && end[4] == 'p') ||
            (!strstr(line, " /dev/zero") && !strstr(line, " /dev/nvidia")))
            memory = REACH_MEMORY_HOST_REGISTERED;
        break;
    }
    if (maps)
        (void)fclose(maps);
    return memory;
}

/* ---- the virtual memory API ---- */

/* Describes the handle behind the memory. Returns false if the memory was not made with this
 * API. */
static bool describe_handle(struct diagnose *d, uint64_t pointer)
{
    struct drv_prop prop = {.type = 0};
    uint64_t handle = 0;
    bool known;

    if (!tells(d, d->driver.cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)pointer),
               "cuMemRetainAllocationHandle"))
        return false;
    known = tells(d, d->driver.cuMemGetAllocationPropertiesFromHandle(&prop, handle),
                  "cuMemGetAllocationPropertiesFromHandle");
    (void)d->driver.cuMemRelease(handle);
    if (!known)
        return false;
    d->found.mapping_bytes = attribute(d, POINTER_MAPPING_BYTES, pointer);
    if (d->found.mapping_bytes == 0) /* drivers before CUDA 11.4 lack the attribute */
        d->found.mapping_bytes = attribute(d, POINTER_RANGE_BYTES, pointer);
    d->found.compressible = finding_make(prop.flags[0] != 0, 0);
    if (prop.location.type == DRV_DEVICE_DOMAIN)
        prop.location = (struct drv_location){DRV_DEVICE, prop.location.id & UINT8_MAX};
    if (prop.location.type != DRV_DEVICE)
        d->found.memory = REACH_MEMORY_HOST_VIRTUAL;
    else
        d->found.memory = prop.location.id == d->device ? REACH_MEMORY_DEVICE : REACH_MEMORY_PEER;
    return true;
}

/* ---- all of it ---- */

/* Returns whether the device may read the memory. Only virtual and peer memory need permission. */
static bool may_read(struct diagnose *d, uint64_t pointer, bool is_virtual)
{
    const struct drv_location here = {DRV_DEVICE, d->device};
    unsigned long long flags = 0;

    if (is_virtual)
        return tells(d, d->driver.cuMemGetAccess(&flags, &here, pointer), "cuMemGetAccess") &&
               flags != 0;
    return d->found.memory != REACH_MEMORY_PEER || attribute(d, POINTER_ACCESS, pointer) != 0;
}

/* A kernel that accesses an address without memory destroys the context. */
static enum reach_alloc_status check_bounds(struct diagnose *d, uint64_t pointer, uint64_t bytes,
                                            bool is_virtual, struct reach_alloc_error *error)
{
    const uint64_t first = attribute(d, POINTER_RANGE_START, pointer);
    const uint64_t length = attribute(d, POINTER_RANGE_BYTES, pointer);

    if (attribute(d, POINTER_TYPE, pointer + bytes - 1) == 0 && d->failed == REACH_ALLOC_OK)
        return alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT,
                          "the last of %" PRIu64 " bytes at 0x%" PRIx64
                          " is not memory of the driver; pass at most the allocated bytes",
                          bytes, pointer);
    if (!is_virtual && length > 0 && pointer - first + bytes > length)
        return alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT,
                          "%" PRIu64 " bytes at 0x%" PRIx64
                          " extend past the end of the allocation, which has %" PRIu64
                          " bytes; pass at most the allocated bytes",
                          bytes, pointer, length);
    return REACH_ALLOC_OK;
}

/* Chooses the whole lines, at the address that the device uses. */
static void choose_lines(struct diagnose *d, uint64_t pointer, uint64_t bytes, bool is_virtual)
{
    const uint64_t device = is_virtual ? pointer : attribute(d, POINTER_DEVICE, pointer);

    d->address = (device + DIAGNOSE_LINE - 1) / DIAGNOSE_LINE * DIAGNOSE_LINE;
    d->found.bytes = bytes > d->address - device
                         ? (bytes - (d->address - device)) / DIAGNOSE_LINE * DIAGNOSE_LINE
                         : 0;
    if (device == 0)
        d->unread = "the device has no address for this memory";
    else if (d->found.bytes == 0)
        d->unread = "the memory has no whole line of 128 bytes";
}

enum reach_alloc_status diagnose_kind(struct diagnose *d, uint64_t pointer,
                                      struct reach_alloc_error *error)
{
    const uint64_t bytes = d->found.bytes;
    const uint64_t type = attribute(d, POINTER_TYPE, pointer);
    bool is_virtual;
    enum reach_alloc_status s;

    if (type == 0 && d->failed == REACH_ALLOC_OK)
        return alloc_fail(error, REACH_ALLOC_INVALID_ARGUMENT,
                          "0x%" PRIx64
                          " is not memory of the driver; allocate or register the memory with CUDA",
                          pointer);
    is_virtual = describe_handle(d, pointer);
    s = check_bounds(d, pointer, bytes, is_virtual, error);
    if (s != REACH_ALLOC_OK)
        return s;
    choose_lines(d, pointer, bytes, is_virtual);
    if (!is_virtual)
        d->found.compressible = finding_make(0, 0); /* only the virtual memory API can compress */
    if (!is_virtual && (attribute(d, POINTER_MANAGED, pointer) & 0xff))
        d->found.memory = managed_location(d);
    else if (!is_virtual && type == TYPE_HOST)
        d->found.memory = pinned_or_registered(attribute(d, POINTER_HOST, pointer));
    else if (!is_virtual)
        d->found.memory = attribute(d, POINTER_ORDINAL, pointer) == (uint64_t)d->device
                              ? REACH_MEMORY_DEVICE
                              : REACH_MEMORY_PEER;
    if (!may_read(d, pointer, is_virtual))
        d->unread = "the device has no access to this memory";
    if (d->failed != REACH_ALLOC_OK && error)
        *error = d->failure;
    return d->failed;
}
