/* fake_driver.c: memory, modules, streams and launches of the stand-in driver. See fakecuda.c. */
#include "tests/fakecuda/fake_driver.h"

#include "base/units.h"
#include "tests/fakecuda/fake_state.h"
#include "tests/fakecuda/fakecuda_script.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define GRANULE           (2 * MIB)
#define BACKED_BYTES      (64 * MIB)
#define LARGEST_ALIGNMENT GIB
#define FAKE_CODE         90

/* This is the first step of every call that works in the current context. */
cu_result fake_enter_context(const char *call)
{
    cu_result r = fake_enter(call);
    if (r == CU_SUCCESS && fake.current < 0)
        r = fake_misuse(CU_ERROR_INVALID_CONTEXT, "%s without a context", call);
    return r;
}

static uint64_t free_bytes(int device)
{
    uint64_t used = fake.control.others_bytes + fake.devices[device].held_bytes;
    uint64_t total = fake.control.gpus[device].memory_bytes;
    return used < total ? total - used : 0;
}

cu_result cuMemGetInfo_v2(size_t *free_out, size_t *total_out)
{
    cu_result r = fake_enter_context("cuMemGetInfo");
    if (r != CU_SUCCESS)
        return r;
    *free_out = free_bytes(fake.current);
    *total_out = fake.control.gpus[fake.current].memory_bytes;
    return CU_SUCCESS;
}

/* ---- plain allocations ---- */

cu_result cuMemAlloc_v2(cu_deviceptr *p, size_t bytes)
{
    FAKE_CALL("cuMemAlloc_v2");
    cu_result r = fake_enter_context("cuMemAlloc");
    if (r != CU_SUCCESS)
        return r;
    if (bytes == 0)
        return fake_misuse(CU_ERROR_INVALID_VALUE, "an allocation of nothing");
    if (bytes > free_bytes(fake.current))
        return CU_ERROR_OUT_OF_MEMORY;
    uint64_t va = fake_take_va(&fake.devices[fake.current], bytes, GRANULE);
    if (va == 0)
        return CU_ERROR_OUT_OF_MEMORY;
    struct fake_alloc *a = fake_list_add(&fake.allocs, sizeof *a, fake.allocs.count);
    *a = (struct fake_alloc){.va = va, .bytes = bytes, .device = fake.current};
    /* Memory of a real GPU is not zero, so code that relies on zeros must fail. */
    if (bytes <= BACKED_BYTES) {
        a->host = malloc(bytes);
        if (!a->host)
            abort();
        memset(a->host, 0xa5, bytes < GRANULE ? bytes : GRANULE);
    }
    fake_hold(fake.current, (int64_t)bytes);
    *p = va;
    fake_report_memory(FAKECUDA_DEVICE_ALLOC, va, bytes);
    return CU_SUCCESS;
}

cu_result cuMemFree_v2(cu_deviceptr p)
{
    FAKE_CALL("cuMemFree_v2");
    cu_result r = fake_enter("cuMemFree");
    fakecuda_drain();
    struct fake_alloc *allocs = fake.allocs.items;
    for (size_t i = 0; i < fake.allocs.count; i++) {
        if (allocs[i].va != p)
            continue;
        int device = allocs[i].device;
        fake_report_memory(FAKECUDA_DEVICE_FREE, p, allocs[i].bytes);
        fake_hold(device, -(int64_t)allocs[i].bytes);
        free(allocs[i].host);
        if (allocs[i].kind != MEMORY_DEVICE) {
            fake_hold(device, (int64_t)allocs[i].bytes);
            (void)munmap((void *)(uintptr_t)p, allocs[i].bytes);
        }
        fake_list_remove(&fake.allocs, sizeof *allocs, i);
        fake_settle_va(device);
        return r;
    }
    return fake_misuse(CU_ERROR_INVALID_VALUE, "an allocation is freed that is not there");
}

cu_result cuMemcpyDtoH_v2(void *to, cu_deviceptr from, size_t bytes)
{
    cu_result r = fake_enter_context("cuMemcpyDtoH");
    if (r != CU_SUCCESS)
        return r;
    if (!fake_copy(to, 0, NULL, from, bytes))
        return fake_misuse(CU_ERROR_INVALID_VALUE, "a copy from memory that is not there");
    return CU_SUCCESS;
}

cu_result cuMemcpyHtoD_v2(cu_deviceptr to, const void *from, size_t bytes)
{
    cu_result r = fake_enter_context("cuMemcpyHtoD");
    if (r != CU_SUCCESS)
        return r;
    if (!fake_copy(NULL, to, from, 0, bytes))
        return fake_misuse(CU_ERROR_INVALID_VALUE, "a copy to memory that is not there");
    return CU_SUCCESS;
}

cu_result cuMemsetD8_v2(cu_deviceptr p, unsigned char value, size_t bytes)
{
    cu_result r = fake_enter_context("cuMemsetD8");
    if (r != CU_SUCCESS)
        return r;
    void *host = fake_host(p, bytes);
    if (host)
        memset(host, value, bytes);
    else if (value != 0 || !fake_is_mapped(p, bytes))
        return fake_misuse(CU_ERROR_INVALID_VALUE, "memory is set that is not there");
    return CU_SUCCESS;
}

/* ---- virtual memory ---- */

/* Reports the device and the locality domain (from 0, or FAKE_NO_DOMAIN) of device memory. Returns
 * false if there is no such place. */
static bool read_location(const struct cu_mem_location *location, int *device, int *domain)
{
    *device = location->id;
    *domain = FAKE_NO_DOMAIN;
    if (location->type == FAKE_LOCATION_DOMAIN) {
        *device = location->id & UINT8_MAX;
        *domain = location->id >> CHAR_BIT;
    }
    return *device >= 0 && (uint32_t)*device < fake.control.gpu_count &&
           (*domain == FAKE_NO_DOMAIN || (uint32_t)*domain < fake.control.gpus[*device].domains);
}

cu_result cuMemGetAllocationGranularity(size_t *bytes, const struct cu_mem_allocation_prop *prop,
                                        int option)
{
    cu_result r = fake_enter_context("cuMemGetAllocationGranularity");
    (void)option;
    if (r != CU_SUCCESS)
        return r;
    if (prop->type != 1 ||
        (prop->location.type != CU_LOCATION_DEVICE && prop->location.type != FAKE_LOCATION_DOMAIN &&
         prop->location.type != CU_LOCATION_HOST_NUMA))
        return fake_misuse(CU_ERROR_INVALID_VALUE, "a kind of memory that there is not");
    *bytes = GRANULE;
    return CU_SUCCESS;
}

/* Device memory exists until the handle is released and no mapping is left. */
static void settle_handle(struct fake_handle *h)
{
    if (!h->released || h->maps > 0 || h->retains > 0)
        return;
    fake_hold(h->device, h->kind == MEMORY_HOST_VIRTUAL ? 0 : -(int64_t)h->bytes);
    fake_handle_forget(h);
    fake_list_remove(&fake.handles, sizeof *h,
                     (size_t)(h - (struct fake_handle *)fake.handles.items));
}

cu_result cuMemCreate(cu_mem_handle *handle, size_t bytes,
                      const struct cu_mem_allocation_prop *prop, unsigned long long flags)
{
    cu_result r = fake_enter_context("cuMemCreate");
    if (r != CU_SUCCESS)
        return r;
    const bool at_host = prop->location.type == CU_LOCATION_HOST_NUMA;
    int device = fake.current;
    int domain = FAKE_NO_DOMAIN;
    if (bytes == 0 || bytes % GRANULE != 0 || flags != 0 ||
        (!at_host && !read_location(&prop->location, &device, &domain)))
        return fake_misuse(CU_ERROR_INVALID_VALUE, "a handle of %zu bytes", bytes);
    if (!at_host && (bytes > free_bytes(device) || (fake.longest_run && bytes > fake.longest_run)))
        return CU_ERROR_OUT_OF_MEMORY;
    struct fake_handle *h = fake_list_add(&fake.handles, sizeof *h, fake.handles.count);
    *h = (struct fake_handle){.id = ++fake.next_id,
                              .bytes = bytes,
                              .device = device,
                              .domain = domain,
                              .compressed = prop->flags.compression_type != 0,
                              .kind = at_host                  ? MEMORY_HOST_VIRTUAL
                                      : device == fake.current ? MEMORY_DEVICE
                                                               : MEMORY_PEER};
    fake_hold(device, at_host ? 0 : (int64_t)bytes);
    *handle = h->id;
    return CU_SUCCESS;
}

cu_result cuMemRelease(cu_mem_handle handle)
{
    cu_result r = fake_enter("cuMemRelease");
    struct fake_handle *h = fake_handle(handle);
    if (!h || (h->released && h->retains == 0))
        return fake_misuse(CU_ERROR_INVALID_VALUE, "a handle is released that is not there");
    if (h->retains > 0) {
        h->retains--;
        return r;
    }
    h->released = true;
    settle_handle(h);
    return r;
}

cu_result cuMemAddressReserve(cu_deviceptr *p, size_t bytes, size_t alignment, cu_deviceptr hint,
                              unsigned long long flags)
{
    cu_result r = fake_enter_context("cuMemAddressReserve");
    uint64_t align = GRANULE;
    if (r != CU_SUCCESS)
        return r;
    if (bytes == 0 || bytes % GRANULE != 0 || alignment % GRANULE != 0 || hint != 0 || flags != 0)
        return fake_misuse(CU_ERROR_INVALID_VALUE, "a reservation of %zu bytes", bytes);
    while (align < alignment || (align * 2 <= bytes && align < LARGEST_ALIGNMENT))
        align *= 2;
    uint64_t va = fake_take_va(&fake.devices[fake.current], bytes, align);
    if (va == 0)
        return CU_ERROR_OUT_OF_MEMORY;
    struct fake_range *range = fake_list_add(&fake.ranges, sizeof *range, fake.ranges.count);
    *range = (struct fake_range){.va = va, .bytes = bytes, .device = fake.current};
    *p = va;
    fake_report_memory(FAKECUDA_RESERVE, va, bytes);
    return CU_SUCCESS;
}

static bool overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

cu_result cuMemAddressFree(cu_deviceptr p, size_t bytes)
{
    cu_result r = fake_enter("cuMemAddressFree");
    struct fake_range *ranges = fake.ranges.items;
    const struct fake_map *maps = fake.maps.items;
    for (size_t i = 0; i < fake.maps.count; i++) {
        if (overlap(maps[i].va, maps[i].bytes, p, bytes))
            return fake_misuse(CU_ERROR_INVALID_VALUE, "addresses are freed that are mapped");
    }
    for (size_t i = 0; i < fake.ranges.count; i++) {
        if (ranges[i].va == p && ranges[i].bytes == bytes) {
            int device = ranges[i].device;
            fake_report_memory(FAKECUDA_RELEASE, p, bytes);
            fake_list_remove(&fake.ranges, sizeof *ranges, i);
            fake_settle_va(device);
            return r;
        }
    }
    return fake_misuse(CU_ERROR_INVALID_VALUE, "addresses are freed that are not reserved");
}

static bool is_reserved(uint64_t va, uint64_t bytes)
{
    const struct fake_range *ranges = fake.ranges.items;
    for (size_t i = 0; i < fake.ranges.count; i++) {
        if (va >= ranges[i].va && va + bytes <= ranges[i].va + ranges[i].bytes)
            return true;
    }
    return false;
}

cu_result cuMemMap(cu_deviceptr p, size_t bytes, size_t offset, cu_mem_handle handle,
                   unsigned long long flags)
{
    cu_result r = fake_enter_context("cuMemMap");
    if (r != CU_SUCCESS)
        return r;
    struct fake_handle *h = fake_handle(handle);
    if (!h || h->released || offset != 0 || flags != 0 || bytes > h->bytes || bytes % GRANULE != 0)
        return fake_misuse(CU_ERROR_INVALID_VALUE, "a handle is mapped that is not there");
    if (!is_reserved(p, bytes))
        return fake_misuse(CU_ERROR_INVALID_VALUE, "a handle is mapped outside of a reservation");
    const struct fake_map *maps = fake.maps.items;
    size_t at = fake.maps.count;
    while (at > 0 && maps[at - 1].va > p)
        at--;
    if ((at > 0 && overlap(maps[at - 1].va, maps[at - 1].bytes, p, bytes)) ||
        (at < fake.maps.count && overlap(maps[at].va, maps[at].bytes, p, bytes)))
        return fake_misuse(CU_ERROR_INVALID_VALUE, "addresses are mapped twice");
    struct fake_map *m = fake_list_add(&fake.maps, sizeof *m, at);
    *m = (struct fake_map){.va = p, .bytes = bytes, .handle = handle};
    h->maps++;
    return CU_SUCCESS;
}

enum memory_kind fake_kind_of_map(uint64_t va)
{
    const struct fake_map *maps = fake.maps.items;
    for (size_t i = 0; i < fake.maps.count; i++)
        if (maps[i].va == va)
            return fake_handle(maps[i].handle)->kind;
    return MEMORY_DEVICE;
}

bool fake_is_compressed(uint64_t va)
{
    const struct fake_map *maps = fake.maps.items;
    for (size_t i = 0; i < fake.maps.count; i++)
        if (maps[i].va == va)
            return fake_handle(maps[i].handle)->compressed;
    return false;
}

cu_result cuMemUnmap(cu_deviceptr p, size_t bytes)
{
    cu_result r = fake_enter("cuMemUnmap");
    const struct fake_map *maps = fake.maps.items;
    uint64_t unmapped = 0;
    for (size_t i = fake.maps.count; i-- > 0;) {
        struct fake_map m = maps[i];
        if (m.va < p || m.va >= p + bytes)
            continue;
        if (m.va + m.bytes > p + bytes)
            return fake_misuse(CU_ERROR_INVALID_VALUE, "half a mapping is taken away");
        fake_list_remove(&fake.maps, sizeof m, i);
        struct fake_handle *h = fake_handle(m.handle);
        if (h) {
            h->maps--;
            settle_handle(h);
        }
        unmapped += m.bytes;
    }
    if (unmapped != bytes)
        return fake_misuse(CU_ERROR_INVALID_VALUE, "addresses are unmapped that are not mapped");
    return r;
}

cu_result cuMemSetAccess(cu_deviceptr p, size_t bytes, const struct cu_mem_access_desc *access,
                         size_t count)
{
    cu_result r = fake_enter_context("cuMemSetAccess");
    if (r != CU_SUCCESS)
        return r;
    struct fake_map *maps = fake.maps.items;
    uint64_t set = 0;
    if (count < 1 || count > 2 || access->location.type != 1 ||
        access->location.id != fake.current ||
        (count == 2 && access[1].location.type != CU_LOCATION_HOST_NUMA))
        return fake_misuse(CU_ERROR_INVALID_VALUE, "access for no device");
    for (size_t i = 0; i < fake.maps.count; i++) {
        if (maps[i].va >= p && maps[i].va + maps[i].bytes <= p + bytes) {
            maps[i].accessible = access->flags == 3;
            set += maps[i].bytes;
        }
    }
    if (set != bytes)
        return fake_misuse(CU_ERROR_INVALID_VALUE, "access to addresses that are not mapped");
    return CU_SUCCESS;
}

/* ---- modules, streams, launches ---- */

cu_result cuModuleLoadData(cu_module *module, const void *image)
{
    cu_result r = fake_enter_context("cuModuleLoadData");
    if (r != CU_SUCCESS)
        return r;
    if (!image)
        return fake_misuse(CU_ERROR_INVALID_VALUE, "a module of nothing");
    r = fake_script_load(module, image);
    if (r != CU_ERROR_NOT_FOUND)
        return r;
    if (fake.modules > 0)
        return fake_misuse(CU_ERROR_INVALID_VALUE, "a second module; one is all there is here");
    fake.modules++;
    *module = (cu_module)(void *)&fake.modules;
    return CU_SUCCESS;
}

cu_result cuModuleUnload(cu_module module)
{
    cu_result r = fake_enter("cuModuleUnload");
    if (fake_script_unload(module))
        return r;
    if ((void *)module != (void *)&fake.modules || fake.modules == 0)
        return fake_misuse(CU_ERROR_INVALID_VALUE, "a module is unloaded that is not there");
    fake.modules = 0;
    memset(fake.functions, 0, sizeof fake.functions);
    return r;
}

cu_result cuModuleGetFunction(cu_function *f, cu_module module, const char *name)
{
    cu_result r = fake_enter_context("cuModuleGetFunction");
    if (r != CU_SUCCESS)
        return r;
    if (fake_script_function(f, module, name))
        return CU_SUCCESS;
    const char *known = fake_kernel_name(name);
    if ((void *)module != (void *)&fake.modules || fake.modules == 0)
        return fake_misuse(CU_ERROR_INVALID_VALUE, "a function of no module");
    if (!known)
        return CU_ERROR_NOT_FOUND;
    size_t i = 0;
    while (fake.functions[i].name && fake.functions[i].name != known)
        i++;
    fake.functions[i].name = known;
    *f = (cu_function)(void *)&fake.functions[i];
    return CU_SUCCESS;
}

static struct fake_function *find_function(cu_function f)
{
    for (size_t i = 0; i < FAKE_KERNELS; i++) {
        if ((void *)f == (void *)&fake.functions[i] && fake.functions[i].name)
            return &fake.functions[i];
    }
    return NULL;
}

cu_result cuFuncSetAttribute(cu_function f, int attribute, int value)
{
    cu_result r = fake_enter_context("cuFuncSetAttribute");
    if (r != CU_SUCCESS)
        return r;
    struct fake_function *function = find_function(f);
    if (function && attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT && value >= 0 &&
        value <= 100) {
        function->carveout_percent = fake.control.no_hints ? 0 : value;
        return CU_SUCCESS;
    }
    if (function && attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED)
        return CU_SUCCESS;
    if (!function || attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0)
        return fake_misuse(CU_ERROR_INVALID_VALUE, "attribute %d of a function", attribute);
    function->shared_bytes = value;
    return CU_SUCCESS;
}

uint64_t fake_shared_of_sm(const char *name)
{
    for (size_t i = 0; i < FAKE_KERNELS; i++) {
        const struct fake_function *f = &fake.functions[i];
        const uint64_t hint = (uint64_t)f->carveout_percent * FAKE_SHARED_PER_SM / 100;
        const uint64_t block = f->launched_bytes + FAKE_SHARED_RESERVED;
        if (f->name == name)
            return hint > block ? hint : block;
    }
    return 0;
}

struct fake_stream *fake_stream_of(cu_stream stream)
{
    struct fake_stream *streams = fake.streams.items;
    for (size_t i = 0; i < fake.streams.count; i++) {
        if (streams[i].id == (uint64_t)(uintptr_t)stream)
            return &streams[i];
    }
    return NULL;
}

cu_result cuStreamCreate(cu_stream *stream, unsigned flags)
{
    cu_result r = fake_enter_context("cuStreamCreate");
    if (r != CU_SUCCESS)
        return r;
    if (flags > CU_STREAM_NON_BLOCKING)
        return fake_misuse(CU_ERROR_INVALID_VALUE, "flags %u of a stream", flags);
    struct fake_stream *s = fake_list_add(&fake.streams, sizeof *s, fake.streams.count);
    s->id = ++fake.next_id;
    *stream = (cu_stream)(uintptr_t)s->id; /* a handle that is never dereferenced */
    return CU_SUCCESS;
}

cu_result cuStreamDestroy_v2(cu_stream stream)
{
    FAKE_CALL_WITH("cuStreamDestroy_v2", &stream);
    cu_result r = fake_enter("cuStreamDestroy");
    struct fake_stream *s = fake_stream_of(stream);
    if (!s)
        return fake_misuse(CU_ERROR_INVALID_HANDLE, "a stream is destroyed that is not there");
    fake_list_remove(&fake.streams, sizeof *s,
                     (size_t)(s - (struct fake_stream *)fake.streams.items));
    return r;
}

/* A stream is not ready at the first query after a launch, so that a caller that waits really
 * waits. */
cu_result cuStreamQuery(cu_stream stream)
{
    cu_result r = fake_enter_context("cuStreamQuery");
    if (r != CU_SUCCESS)
        return r;
    struct fake_stream *s = fake_stream_of(stream);
    if (!s)
        return fake_misuse(CU_ERROR_INVALID_HANDLE, "a stream is asked that is not there");
    if (s->hung)
        return CU_ERROR_NOT_READY;
    if (s->busy && !s->asked) {
        s->asked = true;
        return CU_ERROR_NOT_READY;
    }
    s->busy = false;
    return CU_SUCCESS;
}

/* Returns whether an SM has room for only one block. A block cannot use more shared memory than its
 * function allows. It must use more than half of the shared memory of an SM, except in the kernel
 * that divides that memory. */
static bool fits_one_block(unsigned shared_bytes, const struct fake_function *f)
{
    return (int)shared_bytes <= f->shared_bytes &&
           (2 * shared_bytes > FAKE_SHARED_PER_SM || strcmp(f->name, "reach_cache") == 0);
}

cu_result cuFuncGetAttribute(int *value, int attribute, cu_function f)
{
    cu_result r = fake_enter_context("cuFuncGetAttribute");
    if (r != CU_SUCCESS)
        return r;
    if (!find_function(f) || attribute != CU_FUNC_ATTRIBUTE_PTX_VERSION)
        return fake_misuse(CU_ERROR_INVALID_VALUE, "attribute %d of a function", attribute);
    *value = FAKE_CODE;
    return CU_SUCCESS;
}

/* Returns the number of blocks in a cluster, or 0 if this project does not use the
 * configuration. */
static unsigned cluster_of(const struct cu_launch_config *config, const struct fake_function *f)
{
    if (!f || !config || config->attribute_count != 1 ||
        config->attributes[0].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION ||
        config->attributes[0].cluster[1] != 1 || config->attributes[0].cluster[2] != 1 ||
        config->grid[1] != 1 || config->grid[2] != 1 || config->block[1] != 1 ||
        config->block[2] != 1 || !fits_one_block(config->shared_bytes, f))
        return 0;
    return config->attributes[0].cluster[0];
}

cu_result cuOccupancyMaxActiveClusters(int *clusters, cu_function f,
                                       const struct cu_launch_config *config)
{
    cu_result r = fake_enter_context("cuOccupancyMaxActiveClusters");
    if (r != CU_SUCCESS)
        return r;
    const unsigned sms = cluster_of(config, find_function(f));
    if (sms == 0)
        return fake_misuse(CU_ERROR_INVALID_VALUE, "the occupancy of no clusters");
    *clusters = (int)fake_clusters(fake.current, sms);
    return *clusters > 0 ? CU_SUCCESS : CU_ERROR_INVALID_VALUE;
}

cu_result cuLaunchKernelEx(const struct cu_launch_config *config, cu_function f, void **parameters,
                           void **extra)
{
    cu_result r = fake_enter_context("cuLaunchKernelEx");
    if (r != CU_SUCCESS)
        return r;
    const struct fake_function *function = find_function(f);
    const unsigned sms = cluster_of(config, function);
    struct fake_stream *s = sms > 0 ? fake_stream_of(config->stream) : NULL;
    if (!s || extra || !parameters || s->busy || s->hung)
        return fake_misuse(CU_ERROR_INVALID_VALUE, "a launch of no clusters, or behind another");
    fake.report.launches++;
    s->busy = true;
    s->asked = false;
    return fake_kernel_run_clusters(function->name, fake.current, config->grid[0], config->block[0],
                                    sms, parameters[0]);
}

cu_result cuLaunchKernel(cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                         unsigned by, unsigned bz, unsigned shared_bytes, cu_stream stream,
                         void **parameters, void **extra)
{
    cu_result r = fake_enter_context("cuLaunchKernel");
    if (r != CU_SUCCESS)
        return r;
    FAKE_CALL("cuLaunchKernel");
    if (fake_script_is(f))
        return fake_script_launch(f, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}, stream,
                                  parameters);
    struct fake_function *function = find_function(f);
    struct fake_stream *s = fake_stream_of(stream);
    if (!function || !s || gy != 1 || gz != 1 || by != 1 || bz != 1 || extra || !parameters)
        return fake_misuse(CU_ERROR_INVALID_VALUE, "a launch of nothing, nowhere or in 2D");
    if (!fits_one_block(shared_bytes, function))
        return fake_misuse(CU_ERROR_INVALID_VALUE, "%s: two blocks fit on an SM, or none",
                           function->name);
    if (s->busy || s->hung)
        return fake_misuse(CU_ERROR_INVALID_VALUE, "a launch behind one without a wait");
    function->launched_bytes = shared_bytes;
    fake.report.launches++;
    s->busy = true;
    s->asked = false;
    s->hung = control_fault(&fake.control, FAULT_HANG, function->name, -1,
                            fakecuda_uses(function->name) + 1) != NULL;
    if (s->hung) {
        (void)fake_count_use(function->name);
        return CU_SUCCESS;
    }
    return fake_kernel_run(function->name, fake.current, gx, bx, parameters[0]);
}
