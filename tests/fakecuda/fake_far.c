/* fake_far.c: memory of the stand-in driver outside the memory of the device: pinned, registered
 * and managed memory, handles of the host and of peers, and memory that the driver did not
 * allocate. A kind that the description of the GPU lacks is not supported. Each range has a model
 * of its own (sim_kind_desc). */
#include "base/units.h"
#include "tests/fakecuda/fake_driver.h"
#include "tests/fakecuda/fake_state.h"
#include "tests/fakecuda/fakecuda_script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static bool has_kind(enum memory_kind kind)
{
    return fake.control.gpus[fake.current].kinds[kind].gbps > 0;
}

/* Makes a range of this kind. The process and the device use the same address for managed memory.
 * The process chooses that address, because a sanitizer takes much of its address space. */
static cu_result add_range(enum memory_kind kind, size_t bytes, void *host, cu_deviceptr *out)
{
    uint64_t va = 0;

    if (bytes == 0 || bytes % (kind == MEMORY_HOST_REGISTERED ? 4 * KIB : MIB) != 0)
        return fake_misuse(CU_ERROR_INVALID_VALUE, "host memory of %zu bytes", bytes);
    if (!has_kind(kind))
        return CU_ERROR_NOT_SUPPORTED;
    if (kind == MEMORY_MANAGED_HOST) {
        void *const at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        va = at == MAP_FAILED ? 0 : (uintptr_t)at;
    } else if (kind == MEMORY_HOST_REGISTERED) { /* the device uses the address of the process */
        va = (uintptr_t)host;
    } else {
        va = fake_take_va(&fake.devices[fake.current], bytes, 2 * MIB);
    }
    if (va == 0)
        return CU_ERROR_OUT_OF_MEMORY;
    struct fake_alloc *a = fake_list_add(&fake.allocs, sizeof *a, fake.allocs.count);
    *a = (struct fake_alloc){.va = va,
                             .bytes = bytes,
                             .device = fake.current,
                             .kind = kind,
                             .process = host,
                             .preferred = FAKE_NOWHERE,
                             .prefetched = FAKE_NOWHERE};
    *out = va;
    fake_report_memory(kind == MEMORY_MANAGED_HOST  ? FAKECUDA_MANAGED_ALLOC
                       : kind == MEMORY_HOST_PINNED ? FAKECUDA_PINNED_ALLOC
                                                    : FAKECUDA_REGISTERED_ALLOC,
                       va, bytes);
    return CU_SUCCESS;
}

static struct fake_alloc *find_by_host(const void *host)
{
    struct fake_alloc *allocs = fake.allocs.items;
    for (size_t i = 0; i < fake.allocs.count; i++)
        if (host && allocs[i].process == host)
            return &allocs[i];
    return NULL;
}

static cu_result remove_by_host(const void *host, const char *what)
{
    struct fake_alloc *a = find_by_host(host);
    if (!a)
        return fake_misuse(CU_ERROR_INVALID_VALUE, "%s that is not there", what);
    const int device = a->device;
    fake_report_memory(FAKECUDA_HOST_FREE, a->va, a->bytes);
    fake_list_remove(&fake.allocs, sizeof *a, (size_t)(a - (struct fake_alloc *)fake.allocs.items));
    fake_settle_va(device);
    return CU_SUCCESS;
}

cu_result cuMemHostAlloc(void **p, size_t bytes, unsigned flags)
{
    cu_deviceptr va;
    cu_result r = fake_enter_context("cuMemHostAlloc");
    if (r == CU_SUCCESS && flags != CU_MEMHOST_PORTABLE_AND_MAPPED)
        r = fake_misuse(CU_ERROR_INVALID_VALUE, "flags %u of pinned memory", flags);
    if (r != CU_SUCCESS)
        return r;
    void *const host = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (host == MAP_FAILED)
        return CU_ERROR_OUT_OF_MEMORY;
    r = add_range(MEMORY_HOST_PINNED, bytes, host, &va);
    if (r != CU_SUCCESS)
        (void)munmap(host, bytes);
    else
        *p = host;
    return r;
}

cu_result cuMemFreeHost(void *p)
{
    const cu_result entered = fake_enter("cuMemFreeHost");
    const struct fake_alloc *a = find_by_host(p);
    const size_t bytes = a ? a->bytes : 0;
    const cu_result r = remove_by_host(p, "pinned memory is freed");
    if (r == CU_SUCCESS)
        (void)munmap(p, bytes);
    return r == CU_SUCCESS ? entered : r;
}

cu_result cuMemHostGetDevicePointer_v2(cu_deviceptr *p, void *host, unsigned flags)
{
    const cu_result r = fake_enter_context("cuMemHostGetDevicePointer");
    const struct fake_alloc *a = find_by_host(host);
    if (r != CU_SUCCESS)
        return r;
    if (!a || flags != 0)
        return fake_misuse(CU_ERROR_INVALID_VALUE, "the address of host memory that is not there");
    *p = a->va;
    return CU_SUCCESS;
}

/* The driver does not distinguish ordinary pages from huge pages. */
cu_result cuMemHostRegister_v2(void *p, size_t bytes, unsigned flags)
{
    cu_deviceptr va;
    const cu_result r = fake_enter_context("cuMemHostRegister");
    if (r != CU_SUCCESS)
        return r;
    if (flags != CU_MEMHOST_PORTABLE_AND_MAPPED || (uintptr_t)p % (4 * KIB) != 0)
        return fake_misuse(CU_ERROR_INVALID_VALUE, "host memory at %p is registered", p);
    const struct fake_alloc *allocs = fake.allocs.items;
    for (size_t i = 0; i < fake.allocs.count; i++) {
        const uintptr_t at = (uintptr_t)allocs[i].process;
        if (at && at < (uintptr_t)p + bytes && (uintptr_t)p < at + allocs[i].bytes)
            return CU_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    }
    return add_range(MEMORY_HOST_REGISTERED, bytes, p, &va);
}

cu_result cuMemHostUnregister(void *p)
{
    const cu_result entered = fake_enter("cuMemHostUnregister");
    const cu_result r = remove_by_host(p, "memory is unregistered");
    return r == CU_SUCCESS ? entered : r;
}

cu_result cuMemAllocManaged(cu_deviceptr *p, size_t bytes, unsigned flags)
{
    const cu_result r = fake_enter_context("cuMemAllocManaged");
    if (r != CU_SUCCESS)
        return r;
    if (flags != CU_MEM_ATTACH_GLOBAL)
        return fake_misuse(CU_ERROR_INVALID_VALUE, "flags %u of managed memory", flags);
    return add_range(MEMORY_MANAGED_HOST, bytes, NULL, p);
}

static struct fake_alloc *find_managed(cu_deviceptr p, size_t bytes)
{
    struct fake_alloc *allocs = fake.allocs.items;
    for (size_t i = 0; i < fake.allocs.count; i++)
        if (allocs[i].va == p && allocs[i].bytes == bytes &&
            (allocs[i].kind == MEMORY_MANAGED_HOST || allocs[i].kind == MEMORY_MANAGED_DEVICE))
            return &allocs[i];
    return NULL;
}

/* ---- memory that the driver did not allocate ---- */

enum memory_kind fake_find_pageable(uint64_t va, uint64_t *first, uint64_t *bytes)
{
    enum memory_kind kind = MEMORY_DEVICE;
    char line[512];

    if (fake.current < 0 || (!has_kind(MEMORY_HOST_PAGEABLE) && !has_kind(MEMORY_HOST_FILE)))
        return MEMORY_DEVICE;
    FILE *const f = fopen("/proc/self/maps", "re");
    while (f && kind == MEMORY_DEVICE && fgets(line, sizeof line, f)) {
        char *end = line; /* such as "7f0000000000-7f0000001000 rw-p 00000000 00:00 0" */
        const uint64_t from = strtoull(line, &end, 16);
        const uint64_t to = *end == '-' ? strtoull(end + 1, &end, 16) : 0;
        unsigned long long inode;
        if (va < from || va >= to || sscanf(end, "%*s %*s %*s %llu", &inode) != 1)
            continue;
        kind = inode ? MEMORY_HOST_FILE : MEMORY_HOST_PAGEABLE;
        *first = from;
        *bytes = to - from;
    }
    if (f)
        (void)fclose(f);
    return has_kind(kind) ? kind : MEMORY_DEVICE;
}

cu_result cuMemAdvise(cu_deviceptr p, size_t bytes, int advice, cu_device device)
{
    const cu_result r = fake_enter_context("cuMemAdvise");
    struct fake_alloc *a = find_managed(p, bytes);
    uint64_t first, length;
    if (r != CU_SUCCESS)
        return r;
    if (!a && fake_find_pageable(p, &first, &length) != MEMORY_DEVICE)
        return CU_SUCCESS;
    if (!a || (advice != CU_MEM_ADVISE_SET_PREFERRED_LOCATION &&
               (advice != CU_MEM_ADVISE_SET_ACCESSED_BY || device != fake.current)))
        return fake_misuse(CU_ERROR_INVALID_VALUE, "advice %d on memory", advice);
    if (advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION) {
        a->kind = device == CU_DEVICE_CPU ? MEMORY_MANAGED_HOST : MEMORY_MANAGED_DEVICE;
        a->preferred = device;
    } else {
        a->accessed = true;
    }
    return CU_SUCCESS;
}

cu_result cuMemPrefetchAsync(cu_deviceptr p, size_t bytes, cu_device device, cu_stream stream)
{
    const cu_result r = fake_enter_context("cuMemPrefetchAsync");
    if (r != CU_SUCCESS)
        return r;
    struct fake_alloc *a = find_managed(p, bytes);
    if (!a || device != fake.current || stream)
        return fake_misuse(CU_ERROR_INVALID_VALUE, "a prefetch of memory that is not there");
    a->prefetched = device;
    return CU_SUCCESS;
}

cu_result cuDeviceCanAccessPeer(int *can, cu_device device, cu_device peer)
{
    const cu_result r = fake_enter("cuDeviceCanAccessPeer");
    if (r != CU_SUCCESS)
        return r;
    *can = device != peer && fake.control.gpus[device].kinds[MEMORY_PEER].gbps > 0;
    return CU_SUCCESS;
}

/* ---- memory of kernels ---- */

/* Returns whether b continues the range of a. Registered memory is one range if its pieces are
 * adjacent for the device and for the process. */
static bool continues(const struct fake_alloc *a, const struct fake_alloc *b)
{
    return a->kind == MEMORY_HOST_REGISTERED && b->kind == a->kind && a->device == b->device &&
           a->va + a->bytes == b->va && (const char *)a->process + a->bytes == b->process;
}

/* Extends [first, first + bytes), which is in `a`, by adjacent pieces. */
static void extend(const struct fake_alloc *a, uint64_t *first, uint64_t *bytes)
{
    const struct fake_alloc *const allocs = fake.allocs.items;
    const struct fake_alloc *before = a, *behind = a;

    for (size_t i = 0; i < fake.allocs.count; i++) {
        const bool is_before = continues(&allocs[i], before);
        if (!is_before && !continues(behind, &allocs[i]))
            continue;
        before = is_before ? &allocs[i] : before;
        behind = is_before ? behind : &allocs[i];
        i = (size_t)-1;
    }
    *first = before->va;
    *bytes = behind->va + behind->bytes - before->va;
}

/* Returns the range that contains `va`, and its kind of memory, if `va` is in memory outside the
 * device. */
static enum memory_kind find_range(uint64_t va, uint64_t *first, uint64_t *bytes)
{
    const struct fake_alloc *allocs = fake.allocs.items;
    const struct fake_range *ranges = fake.ranges.items;
    for (size_t i = 0; i < fake.allocs.count; i++)
        if (va >= allocs[i].va && va - allocs[i].va < allocs[i].bytes) {
            extend(&allocs[i], first, bytes);
            return allocs[i].kind;
        }
    for (size_t i = 0; i < fake.ranges.count; i++)
        if (va >= ranges[i].va && va - ranges[i].va < ranges[i].bytes) {
            *first = ranges[i].va;
            *bytes = ranges[i].bytes;
            return fake_kind_of_map(ranges[i].va);
        }
    return fake_find_pageable(va, first, bytes);
}

struct sim_machine *fake_machine_at(struct fake_device *device, uint64_t va, uint64_t *first)
{
    uint64_t bytes = 0;
    struct sim_desc desc;
    const enum memory_kind kind = find_range(va, first, &bytes);
    if (kind == MEMORY_DEVICE) {
        *first = device->base_va;
        return device->machine;
    }
    if (device->far_kind != kind || device->far_bytes != bytes) {
        sim_machine_free(device->far);
        sim_kind_desc(&fake.control.gpus[device - fake.devices], kind, 0, bytes, &desc);
        device->far = sim_machine_new(&desc);
        device->far_kind = kind;
        device->far_bytes = bytes;
        if (!device->far)
            abort();
    }
    return device->far;
}
