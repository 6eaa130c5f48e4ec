/* cuda_memory.c: see cuda_memory.h. */
#include "gpu/cuda/cuda_memory.h"

#include "base/units.h"
#include "gpu/cuda/host_memory.h"
#include "gpu/cuda/host_nodes.h"

/* The size of a handle that is mapped again and again: several times the L2 of today's chips. */
#define ALIAS_HOST_BYTES  (128 * MIB)
#define ALIAS_PEER_BYTES  (256 * MIB)
#define ALIAS_LEAST_BYTES (32 * MIB)
#define MOST_LEFT_BYTES   (4096 * MIB) /* limit of all ranges together, in use or not */

/* The least share of pages that must be on the node that a probe names. */
#define NODE_SHARE 0.9

uint64_t cuda_memory_host_bytes(const struct cuda_memory *m)
{
    const uint64_t most = host_memory_share();

    return m->host_limit_bytes && m->host_limit_bytes < most ? m->host_limit_bytes : most;
}

/* Managed memory at a device without memory of its own is host memory. */
static uint64_t managed_limit(const struct cuda_memory *m)
{
    const uint64_t host = m->unified ? cuda_memory_host_bytes(m) : UINT64_MAX;

    return m->managed_bytes < host ? m->managed_bytes : host;
}

static enum status lacks(const char *what, struct err *err)
{
    return err_set(err, STATUS_NOT_SUPPORTED, "the driver or the device lacks %s", what);
}

static bool has(const struct cuda_memory *m, int attribute)
{
    int value = 0;

    return m->api->cuDeviceGetAttribute(&value, attribute, m->device) == CU_SUCCESS && value > 0;
}

/* ---- the making of each kind; cuda_memory_close also releases an incomplete range ---- */

static enum status zero(struct cuda_memory *m, uint64_t bytes, struct err *err)
{
    return CUDA_CALL(m->api, err, cuMemsetD8, m->range.base, 0, bytes);
}

static enum status make_pinned(struct cuda_memory *m, struct err *err)
{
    enum status s;

    if (!m->api->cuMemHostAlloc || !m->api->cuMemFreeHost || !m->api->cuMemHostGetDevicePointer)
        return lacks("cuMemHostAlloc", err);
    s = CUDA_CALL(m->api, err, cuMemHostAlloc, &m->range.host, m->range.bytes,
                  CU_MEMHOST_PORTABLE_AND_MAPPED);
    if (s != STATUS_OK) {
        m->range.host = NULL;
        return s;
    }
    s = CUDA_CALL(m->api, err, cuMemHostGetDevicePointer, &m->range.base, m->range.host, 0);
    return s == STATUS_OK ? zero(m, m->range.bytes, err) : s;
}

static enum status make_registered(struct cuda_memory *m, struct err *err)
{
    enum status s;

    if (!m->api->cuMemHostRegister || !m->api->cuMemHostUnregister ||
        !m->api->cuMemHostGetDevicePointer)
        return lacks("cuMemHostRegister", err);
    s = host_memory_map(m->range.bytes,
                        m->range.kind == MEMORY_HOST_REGISTERED ? HOST_PAGES_ORDINARY
                                                                : HOST_PAGES_HUGE,
                        &m->range.host, err);
    if (s != STATUS_OK)
        return s;
    return host_pieces_register(m->api, m->range.host, m->range.bytes, &m->range.base,
                                &m->range.registered_bytes, err);
}

/* Sets the location of the memory, and that this device accesses it there. */
static enum status advise(struct cuda_memory *m, cu_device location, struct err *err)
{
    const enum status s = CUDA_CALL(m->api, err, cuMemAdvise, m->range.base, m->range.bytes,
                                    CU_MEM_ADVISE_SET_PREFERRED_LOCATION, location);

    return s == STATUS_OK ? CUDA_CALL(m->api, err, cuMemAdvise, m->range.base, m->range.bytes,
                                      CU_MEM_ADVISE_SET_ACCESSED_BY, m->device)
                          : s;
}

/* Makes memory that the driver does not allocate. Under HMM the driver moves anonymous pages that
 * the device touches, so these pages need the advice to stay. With page tables of the host (ATS)
 * they stay anyway, and so do pages of a file. */
static enum status make_pageable(struct cuda_memory *m, struct err *err)
{
    const bool is_file = m->range.kind == MEMORY_HOST_FILE;
    enum status s;

    if (!m->api->cuMemAdvise || !has(m, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS))
        return lacks("access to pageable memory", err);
    s = is_file ? host_memory_map_file(m->state, m->range.bytes, &m->range.host, err)
                : host_memory_map(m->range.bytes, HOST_PAGES_ANY, &m->range.host, err);
    if (s != STATUS_OK)
        return s;
    m->range.base = (uintptr_t)m->range.host;
    s = advise(m, CU_DEVICE_CPU, err);
    if (is_file || has(m, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES))
        return STATUS_OK;
    return s == STATUS_OK ? zero(m, m->range.bytes, err) : s; /* the device maps each page */
}

/* Makes managed memory. The processor touches host pages first, so that no page migrates
 * afterwards. */
static enum status make_managed(struct cuda_memory *m, struct err *err)
{
    const struct cuda_api *api = m->api;
    const bool at_host = m->range.kind == MEMORY_MANAGED_HOST;
    const cu_device location = at_host ? CU_DEVICE_CPU : m->device;
    enum status s;

    if (!api->cuMemAllocManaged || !api->cuMemAdvise || !api->cuMemPrefetchAsync ||
        !has(m, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS))
        return lacks("managed memory that both sides access", err);
    s = CUDA_CALL(api, err, cuMemAllocManaged, &m->range.base, m->range.bytes,
                  CU_MEM_ATTACH_GLOBAL);
    if (s != STATUS_OK) {
        m->range.base = 0;
        return s;
    }
    s = advise(m, location, err);
    if (s != STATUS_OK)
        return s;
    if (at_host) {
        host_memory_touch((void *)(uintptr_t)m->range.base,
                          m->range.bytes); /* the kernel gives zero pages */
        return STATUS_OK;
    }
    s = CUDA_CALL(api, err, cuMemPrefetchAsync, m->range.base, m->range.bytes, m->device, NULL);
    return s == STATUS_OK ? zero(m, m->range.bytes, err) : s;
}

/* Maps one handle of `handle_bytes` over the whole range. If `handle_bytes` is 0, allocates as much
 * memory as the range is long. */
static enum status make_handles(struct cuda_memory *m, struct cu_mem_location location,
                                uint64_t handle_bytes, struct err *err)
{
    const struct cu_mem_allocation_prop prop = {.type = 1, .location = location};
    size_t granule = 0;
    enum status s;

    if (!m->vmm)
        return lacks("the virtual memory API", err);
    s = CUDA_CALL(m->api, err, cuMemGetAllocationGranularity, &granule, &prop, 0);
    if (s != STATUS_OK)
        return s;
    if (handle_bytes == 0) {
        m->range.bytes = (m->range.bytes + granule - 1) / granule * granule;
        s = host_handles_open(m->api, m->device, &prop, m->range.bytes, &m->range.handles, err);
        m->range.base = m->range.handles.base;
        return s;
    }
    handle_bytes = (handle_bytes + granule - 1) / granule * granule;
    m->range.bytes = (m->range.bytes + handle_bytes - 1) / handle_bytes * handle_bytes;
    m->range.period_bytes = handle_bytes;
    s = cuda_alias_open(m->api, &prop, handle_bytes, m->range.bytes, &m->range.alias, err);
    m->range.base = m->range.alias.base;
    if (s == STATUS_OK)
        s = cuda_alias_map(m->api, m->device, &m->range.alias, 0, m->range.bytes / handle_bytes,
                           err);
    return s == STATUS_OK ? zero(m, handle_bytes, err) : s;
}

int cuda_memory_node(const struct cuda_memory *m)
{
    int nearest = -1;

    if (m->range.node > 0)
        return (int)m->range.node - 1;
    return m->api->cuDeviceGetAttribute(&nearest, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, m->device) ==
                   CU_SUCCESS
               ? nearest
               : -1;
}

static enum status make_virtual(struct cuda_memory *m, struct err *err)
{
    const uint64_t most = cuda_memory_host_bytes(m);
    const int node = cuda_memory_node(m);
    const struct cu_mem_location location = {.type = CU_LOCATION_HOST_NUMA,
                                             .id = node < 0 ? 0 : node};

    if (!has(m, CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT))
        return lacks("handles of host memory", err);
    if (m->range.bytes <= most)
        return make_handles(m, location, 0, err);
    return make_handles(m, location, most < ALIAS_HOST_BYTES ? most : ALIAS_HOST_BYTES, err);
}

static enum status make_peer(struct cuda_memory *m, struct err *err)
{
    const struct cu_mem_location location = {.type = CU_LOCATION_DEVICE,
                                             .id = m->peers[m->range.peer]};
    int can = 0;

    if (!m->api->cuDeviceCanAccessPeer ||
        m->api->cuDeviceCanAccessPeer(&can, m->device, location.id) != CU_SUCCESS || !can)
        return lacks("access to the peer", err);
    return make_handles(m, location, ALIAS_PEER_BYTES, err);
}

static enum status make(struct cuda_memory *m, struct err *err)
{
    const bool aliased = m->range.kind == MEMORY_HOST_VIRTUAL || m->range.kind == MEMORY_PEER;

    if (memory_kind_is_host(m->range.kind) &&
        (aliased ? ALIAS_LEAST_BYTES : m->range.bytes) > cuda_memory_host_bytes(m))
        return err_set(err, STATUS_NO_MEMORY, "%llu MiB exceed the limit of host memory",
                       (unsigned long long)(m->range.bytes / MIB));
    if (m->range.kind == MEMORY_MANAGED_DEVICE && m->range.bytes > managed_limit(m))
        return err_set(err, STATUS_GPU_NO_MEMORY, "%llu MiB exceed the rest of the memory limit",
                       (unsigned long long)(m->range.bytes / MIB));
    switch (m->range.kind) {
    case MEMORY_HOST_PINNED:
        return make_pinned(m, err);
    case MEMORY_HOST_VIRTUAL:
        return make_virtual(m, err);
    case MEMORY_HOST_REGISTERED:
    case MEMORY_HOST_REGISTERED_HUGE:
        return make_registered(m, err);
    case MEMORY_HOST_PAGEABLE:
    case MEMORY_HOST_FILE:
        return make_pageable(m, err);
    case MEMORY_PEER:
        return make_peer(m, err);
    default:
        return make_managed(m, err);
    }
}

/* Makes the range while this thread is on the CPUs of the node of the pages. If the probe names the
 * node, the pages must be there, which is known only of mappings of this process. */
static enum status make_on_node(struct cuda_memory *m, struct err *err)
{
    const int node = memory_kind_is_host(m->range.kind) ? cuda_memory_node(m) : -1;
    cpu_set_t before;
    const bool is_bound = node >= 0 && host_nodes_bind(node, &before);
    enum status s;

    if (m->range.node > 0 && !is_bound)
        return err_set(err, STATUS_NOT_PERMITTED, "the process may not use CPUs of NUMA node %d",
                       node);
    s = make(m, err);
    if (is_bound)
        host_nodes_unbind(&before);
    if (s == STATUS_OK && m->range.node > 0 && host_nodes_share(m->range.host, node) < NODE_SHARE)
        s = err_set(err, STATUS_NO_MEMORY, "the kernel did not put the pages on NUMA node %d",
                    node);
    return s;
}

static void release(const struct cuda_api *api, struct cuda_range *r)
{
    if (r->kind == MEMORY_DEVICE)
        return;
    cuda_alias_close(api, &r->alias);
    host_handles_close(api, &r->handles);
    if (r->registered_bytes)
        host_pieces_unregister(api, r->host, r->registered_bytes);
    if (r->host && r->kind == MEMORY_HOST_PINNED)
        api->cuMemFreeHost(r->host);
    else if (r->host)
        host_memory_free(r->host, r->bytes);
    else if (r->base && (r->kind == MEMORY_MANAGED_HOST || r->kind == MEMORY_MANAGED_DEVICE))
        api->cuMemFree(r->base);
    *r = (struct cuda_range){.kind = MEMORY_DEVICE};
}

static void release_left(struct cuda_memory *m)
{
    while (m->left_count > 0)
        release(m->api, &m->left[--m->left_count]);
}

void cuda_memory_close(struct cuda_memory *m)
{
    release(m->api, &m->range);
    release_left(m);
    if (m->batch)
        m->api->cuMemFreeHost(m->batch);
    m->batch = NULL;
}

/* All ranges, including the requested one, must stay within the limit. */
static bool may_be_left(const struct cuda_memory *m, const struct cuda_range *wanted)
{
    uint64_t bytes = m->range.bytes + (memory_kind_is_host(wanted->kind) ? wanted->bytes : 0);

    if (!memory_kind_is_host(m->range.kind) || m->left_count == MEMORY_KIND_COUNT ||
        wanted->kind == m->range.kind)
        return false;
    for (uint32_t i = 0; i < m->left_count; i++)
        bytes += m->left[i].bytes;
    return bytes <= MOST_LEFT_BYTES && bytes <= cuda_memory_host_bytes(m);
}

/* Keeps the range for later if the limits allow it, otherwise releases it. */
static void leave(struct cuda_memory *m, const struct cuda_range *wanted)
{
    if (may_be_left(m, wanted))
        m->left[m->left_count++] = m->range;
    else
        release(m->api, &m->range);
    m->range = (struct cuda_range){.kind = MEMORY_DEVICE};
}

/* Makes the pinned memory into which the CPU gathers, if there is none. */
static enum status make_batch(struct cuda_memory *m, struct err *err)
{
    if (m->batch)
        return STATUS_OK;
    if (!m->api->cuMemHostAlloc || !m->api->cuMemFreeHost)
        return lacks("cuMemHostAlloc", err);
    const enum status s = CUDA_CALL(m->api, err, cuMemHostAlloc, &m->batch, CUDA_BATCH_BYTES,
                                    CU_MEMHOST_PORTABLE_AND_MAPPED);
    if (s != STATUS_OK)
        m->batch = NULL;
    return s;
}

static enum reason reason_of(enum status s, enum memory_kind kind)
{
    if (s == STATUS_NO_MEMORY || s == STATUS_GPU_NO_MEMORY)
        return memory_kind_is_host(kind) ? REASON_NO_HOST_MEMORY : REASON_NO_DEVICE_MEMORY;
    return s == STATUS_NOT_PERMITTED ? REASON_NOT_PERMITTED : REASON_NOT_SUPPORTED;
}

/* Makes the range of this kind and length. If memory is short, releases the unused ranges and tries
 * again. */
static enum status make_range(struct cuda_memory *m, const struct cuda_range *wanted,
                              struct err *err)
{
    for (;;) {
        m->range = *wanted;
        const enum status s = make_on_node(m, err);
        if (s == STATUS_OK)
            return s;
        release(m->api, &m->range);
        if ((s != STATUS_NO_MEMORY && s != STATUS_GPU_NO_MEMORY) || m->left_count == 0)
            return s;
        release_left(m);
    }
}

enum status cuda_memory_use(struct cuda_memory *m, const struct probe_spec *spec,
                            enum reason *out_reason, struct err *err)
{
    const uint64_t need = probe_range_bytes(spec, REACH_MAX_SMS);
    const enum memory_kind kind = /* pages are ordinary for the CPU even if they are registered */
        spec->memory == MEMORY_HOST_GATHERED ? MEMORY_HOST_REGISTERED : spec->memory;
    const struct cuda_range wanted = {.kind = kind,
                                      .peer = spec->peer,
                                      .node = spec->node,
                                      .bytes = (need + 2 * MIB - 1) / (2 * MIB) * (2 * MIB)};
    struct err why = {0};
    enum status s = STATUS_OK;

    *out_reason = REASON_NONE;
    if (kind != m->range.kind || spec->node != m->range.node ||
        (kind == MEMORY_PEER && spec->peer != m->range.peer) || need > m->range.bytes) {
        leave(m, &wanted);
        if (kind == MEMORY_DEVICE)
            return STATUS_OK;
        s = make_range(m, &wanted, &why);
    }
    if (s == STATUS_OK && spec->memory == MEMORY_HOST_GATHERED)
        s = make_batch(m, &why);
    if (s == STATUS_OK)
        return s;
    if (s == STATUS_GPU_LOST || s == STATUS_DEADLINE)
        return err_set(err, s, "%s", why.text);
    *out_reason = reason_of(s, spec->memory);
    return STATUS_OK;
}
