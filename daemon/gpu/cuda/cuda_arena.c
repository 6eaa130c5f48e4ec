/* cuda_arena.c: see cuda_arena.h for the idea. */
#include "gpu/cuda/cuda_arena.h"

#include "base/units.h"

#include <stdlib.h>

/* The length of the memory behind random reads: several times the L2 of today's chips, so that the
 * data does not stay in the L2. */
#define BULK_BYTES     (1024 * MIB)
#define BULK_MIN_BYTES (CUDA_ARENA_LEAST_BYTES / 2)

/* The length of the bulk handle divided by the length of the longest run. */
enum { RUNS_PART = 16 };

/* Probes of more pages than this use the bulk range, which needs no mapping. */
enum { LINE_MAX_PAGES = 2560 };

static struct cu_mem_allocation_prop device_memory(int device)
{
    return (struct cu_mem_allocation_prop){.type = 1, .location = {.type = 1, .id = device}};
}

enum status cuda_arena_reserve(const struct cuda_api *api, uint64_t bytes, cu_deviceptr *out,
                               struct err *err)
{
    uint64_t alignment = 1;
    while (alignment * 2 <= bytes)
        alignment *= 2;
    if (api->cuMemAddressReserve(out, bytes, alignment, 0, 0) == CU_SUCCESS)
        return STATUS_OK;
    return CUDA_CALL(api, err, cuMemAddressReserve, out, bytes, 0, 0, 0);
}

enum status cuda_alias_open(const struct cuda_api *api, const struct cu_mem_allocation_prop *prop,
                            uint64_t handle_bytes, uint64_t range_bytes, struct cuda_alias *out,
                            struct err *err)
{
    enum status s;

    *out = (struct cuda_alias){.mapped = NULL};
    s = CUDA_CALL(api, err, cuMemCreate, &out->handle, handle_bytes, prop, 0);
    if (s != STATUS_OK)
        return s;
    out->handle_bytes = handle_bytes;
    s = cuda_arena_reserve(api, range_bytes, &out->base, err);
    if (s != STATUS_OK)
        return s;
    out->reserved_bytes = range_bytes;
    out->mapped = calloc(range_bytes / handle_bytes, 1);
    return out->mapped ? STATUS_OK : err_no_memory(err, "the arena");
}

enum status cuda_alias_map(const struct cuda_api *api, int device, struct cuda_alias *a,
                           uint64_t first, uint64_t count, struct err *err)
{
    const struct cu_mem_access_desc access = {.location = {.type = 1, .id = device}, .flags = 3};
    const uint64_t before = a->mapped_count;

    for (uint64_t slot = first; slot < first + count; slot++) {
        enum status s;
        if (a->mapped[slot])
            continue;
        s = CUDA_CALL(api, err, cuMemMap, a->base + slot * a->handle_bytes, a->handle_bytes, 0,
                      a->handle, 0);
        if (s != STATUS_OK)
            return s;
        a->mapped[slot] = 1;
        a->mapped_count += 1;
    }
    if (a->mapped_count == before)
        return STATUS_OK;
    return CUDA_CALL(api, err, cuMemSetAccess, a->base + first * a->handle_bytes,
                     count * a->handle_bytes, &access, 1);
}

/* Errors are ignored here, because the end of the context releases everything else. */
void cuda_alias_close(const struct cuda_api *api, struct cuda_alias *a)
{
    const uint64_t slots = a->mapped ? a->reserved_bytes / a->handle_bytes : 0;

    for (uint64_t first = 0; first < slots && a->mapped_count > 0;) {
        uint64_t end = first;
        while (end < slots && a->mapped[end])
            end++;
        if (end > first)
            api->cuMemUnmap(a->base + first * a->handle_bytes, (end - first) * a->handle_bytes);
        a->mapped_count -= end - first;
        first = end + 1;
    }
    if (a->reserved_bytes)
        api->cuMemAddressFree(a->base, a->reserved_bytes);
    if (a->handle_bytes)
        api->cuMemRelease(a->handle);
    free(a->mapped);
    *a = (struct cuda_alias){.mapped = NULL};
}

/* Returns the memory of the bulk handle and of the longest run beside it (probe_longest_run). */
static uint64_t with_run(uint64_t bulk_bytes)
{
    return bulk_bytes + bulk_bytes / RUNS_PART;
}

/* Returns the largest power-of-two multiple of the granule that is allowed and free. */
static uint64_t bulk_size(uint64_t limit_bytes, uint64_t free_bytes, uint64_t granule_bytes)
{
    uint64_t bytes = BULK_BYTES;
    while ((with_run(bytes) > limit_bytes || bytes > free_bytes / 2) && bytes / 2 >= granule_bytes)
        bytes /= 2;
    return bytes;
}

/* Sets the error for too little memory. Half of the free memory stays free, so twice the least
 * length of the bulk handle must be free. */
static enum status too_little(uint64_t limit_bytes, uint64_t free_bytes, struct err *err)
{
    if (limit_bytes < with_run(BULK_MIN_BYTES))
        return err_set(err, STATUS_INVALID_ARGUMENT,
                       "--memory-limit leaves %llu MiB of device memory for a measurement, and a "
                       "measurement needs %llu MiB",
                       (unsigned long long)(limit_bytes / MIB),
                       (unsigned long long)(with_run(BULK_MIN_BYTES) / MIB));
    return err_set(
        err, STATUS_GPU_NO_MEMORY,
        "%llu MiB of device memory are free beside the CUDA context, and a measurement needs "
        "%llu MiB",
        (unsigned long long)(free_bytes / MIB), (unsigned long long)(CUDA_ARENA_LEAST_BYTES / MIB));
}

static enum status open_alias(struct cuda_arena *arena, uint64_t limit_bytes, uint64_t free_bytes,
                              uint64_t range_bytes, struct err *err)
{
    const struct cuda_api *api = arena->api;
    const struct cu_mem_allocation_prop prop = device_memory(arena->device);
    size_t granule = 0;
    enum status s = CUDA_CALL(api, err, cuMemGetAllocationGranularity, &granule, &prop, 0);
    if (s != STATUS_OK)
        return s;
    arena->granule_bytes = granule;
    const uint64_t bulk_bytes = bulk_size(limit_bytes, free_bytes, granule);
    if (bulk_bytes < BULK_MIN_BYTES)
        return too_little(limit_bytes, free_bytes, err);
    arena->range_bytes = (range_bytes + bulk_bytes - 1) / bulk_bytes * bulk_bytes;
    s = cuda_alias_open(api, &prop, bulk_bytes, arena->range_bytes, &arena->bulk, err);
    if (s == STATUS_OK)
        s = cuda_alias_map(api, arena->device, &arena->bulk, 0, arena->range_bytes / bulk_bytes,
                           err);
    if (s == STATUS_OK)
        s = CUDA_CALL(api, err, cuMemsetD8, arena->bulk.base, 0, bulk_bytes);
    if (s == STATUS_OK)
        s = cuda_alias_open(api, &prop, granule, arena->range_bytes, &arena->line, err);
    if (s == STATUS_OK)
        s = cuda_alias_map(api, arena->device, &arena->line, 0, 1, err);
    if (s == STATUS_OK)
        s = CUDA_CALL(api, err, cuMemsetD8, arena->line.base, 0, granule);
    return s;
}

/* Makes one allocation, as large as allowed. The range is as long as the memory. */
static enum status open_plain(struct cuda_arena *arena, uint64_t limit_bytes, uint64_t free_bytes,
                              struct err *err)
{
    const struct cuda_api *api = arena->api;
    uint64_t bytes = limit_bytes < free_bytes / 2 ? limit_bytes : free_bytes / 2;
    enum status s;

    arena->kind = ARENA_PLAIN;
    arena->granule_bytes = 2 * MIB;
    bytes -= bytes % arena->granule_bytes;
    if (bytes < BULK_MIN_BYTES)
        return too_little(limit_bytes, free_bytes, err);
    s = CUDA_CALL(api, err, cuMemAlloc, &arena->plain, bytes);
    if (s != STATUS_OK) {
        arena->plain = 0;
        return s;
    }
    arena->bulk.base = arena->plain;
    arena->range_bytes = bytes;
    return CUDA_CALL(api, err, cuMemsetD8, arena->plain, 0, bytes);
}

enum status cuda_arena_open(const struct cuda_api *api, int device, uint64_t limit_bytes,
                            uint64_t free_bytes, uint64_t range_bytes, bool plain,
                            struct cuda_arena *out, struct err *err)
{
    struct cuda_arena arena = {.api = api, .device = device, .kind = ARENA_ALIAS};
    int vmm = 0;
    enum status s;

    if (!plain && api->has_vmm &&
        api->cuDeviceGetAttribute(&vmm, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT, device) !=
            CU_SUCCESS)
        vmm = 0;
    s = vmm ? open_alias(&arena, limit_bytes, free_bytes, range_bytes, err)
            : open_plain(&arena, limit_bytes, free_bytes, err);
    if (s != STATUS_OK)
        cuda_arena_close(&arena);
    *out = arena;
    return s;
}

/* Maps bulk slots over [runs_end, end). Only whole slots are mapped, so the last slot may end
 * behind `end`. */
static enum status map_rest(struct cuda_arena *arena, uint64_t end, struct err *err)
{
    const struct cuda_api *api = arena->api;
    const struct cu_mem_access_desc access = {.location = {.type = 1, .id = arena->device},
                                              .flags = 3};
    const uint64_t slot = arena->bulk.handle_bytes;

    while (arena->runs_end < end) {
        const cu_deviceptr at = arena->runs.base + arena->runs_end;
        enum status s = CUDA_CALL(api, err, cuMemMap, at, slot, 0, arena->bulk.handle, 0);
        if (s != STATUS_OK)
            return s;
        arena->runs_end += slot;
        s = CUDA_CALL(api, err, cuMemSetAccess, at, slot, &access, 1);
        if (s != STATUS_OK)
            return s;
    }
    return STATUS_OK;
}

static void close_runs(struct cuda_arena *arena)
{
    if (arena->runs_end > arena->runs_bytes)
        arena->api->cuMemUnmap(arena->runs.base + arena->runs_bytes,
                               arena->runs_end - arena->runs_bytes);
    cuda_alias_close(arena->api, &arena->runs);
    arena->runs_bytes = arena->runs_end = 0;
}

enum status cuda_arena_open_runs(struct cuda_arena *arena, const struct probe_spec *spec,
                                 struct err *err)
{
    const struct cuda_api *api = arena->api;
    const uint64_t run = spec->run_bytes;
    const uint64_t bytes = (spec->points[0] + run - 1) / run * run + arena->bulk.handle_bytes;
    const struct cu_mem_allocation_prop prop = device_memory(arena->device);
    const nsec_t start = clock_monotonic();
    enum status s;

    close_runs(arena);
    s = cuda_alias_open(api, &prop, run, bytes, &arena->runs, err);

    arena->runs_bytes = arena->runs_end = spec->scattered_bytes;
    if (s == STATUS_OK)
        s = cuda_alias_map(api, arena->device, &arena->runs, 0, spec->scattered_bytes / run, err);
    if (s == STATUS_OK)
        s = map_rest(arena, spec->points[0], err);
    if (s == STATUS_OK && spec->scattered_bytes > 0)
        s = CUDA_CALL(api, err, cuMemsetD8, arena->runs.base, 0, run);
    if (s != STATUS_OK)
        close_runs(arena);
    arena->spent_ns += clock_monotonic() - start;
    return s;
}

void cuda_arena_close(struct cuda_arena *arena)
{
    if (arena->kind == ARENA_ALIAS) {
        close_runs(arena);
        cuda_alias_close(arena->api, &arena->bulk);
        cuda_alias_close(arena->api, &arena->line);
    }
    if (arena->plain)
        arena->api->cuMemFree(arena->plain);
    *arena = (struct cuda_arena){.api = arena->api};
}

enum status cuda_arena_latency_base(struct cuda_arena *arena, uint64_t first_byte,
                                    uint64_t stride_bytes, uint64_t pages, cu_deviceptr *out,
                                    struct err *err)
{
    const uint64_t slot_bytes = arena->line.handle_bytes;
    const bool same_line =
        arena->kind == ARENA_ALIAS && pages <= LINE_MAX_PAGES && stride_bytes % slot_bytes == 0;
    const nsec_t start = clock_monotonic();
    enum status s = STATUS_OK;

    *out = (same_line ? arena->line.base : arena->bulk.base) + first_byte;
    if (same_line && first_byte % slot_bytes == 0)
        *out += arena->line_offset; /* otherwise the caller has chosen the place in a slot */
    for (uint64_t i = 0; s == STATUS_OK && same_line && i < pages; i++) {
        const uint64_t slot = (first_byte + i * stride_bytes) / slot_bytes;
        s = cuda_alias_map(arena->api, arena->device, &arena->line, slot, 1, err);
    }
    arena->spent_ns += clock_monotonic() - start;
    return s;
}

uint64_t cuda_arena_device_bytes(const struct cuda_arena *arena)
{
    return arena->plain ? arena->range_bytes
                        : with_run(arena->bulk.handle_bytes) + arena->line.handle_bytes;
}
