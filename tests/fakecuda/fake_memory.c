/* fake_memory.c: addresses, allocations and mappings of the stand-in driver. */
#include "base/units.h"
#include "gpu/sim/sim_desc.h"
#include "tests/fakecuda/fake_state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void *fake_list_add(struct fake_list *list, size_t item_bytes, size_t at)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 16;
        void *items = realloc(list->items, capacity * item_bytes);
        if (!items)
            abort();
        list->items = items;
        list->capacity = capacity;
    }
    char *slot = (char *)list->items + at * item_bytes;
    memmove(slot + item_bytes, slot, (list->count - at) * item_bytes);
    memset(slot, 0, item_bytes);
    list->count++;
    return slot;
}

void fake_list_remove(struct fake_list *list, size_t item_bytes, size_t at)
{
    char *slot = (char *)list->items + at * item_bytes;
    memmove(slot, slot + item_bytes, (list->count - at - 1) * item_bytes);
    list->count--;
}

/* Returns the end of an object of this device that overlaps [va, va + bytes), or 0 if there is
 * none.
 */
static uint64_t end_of_taken(int device, uint64_t va, uint64_t bytes)
{
    const struct fake_alloc *allocs = fake.allocs.items;
    const struct fake_range *ranges = fake.ranges.items;

    for (size_t i = 0; i < fake.allocs.count; i++)
        if (allocs[i].device == device && allocs[i].va < va + bytes &&
            va < allocs[i].va + allocs[i].bytes)
            return allocs[i].va + allocs[i].bytes;
    for (size_t i = 0; i < fake.ranges.count; i++)
        if (ranges[i].device == device && ranges[i].va < va + bytes &&
            va < ranges[i].va + ranges[i].bytes)
            return ranges[i].va + ranges[i].bytes;
    return 0;
}

/* Returns addresses that were never used while there are any left, so that a use after free is
 * detected. Then it returns the first free addresses. */
uint64_t fake_take_va(struct fake_device *device, uint64_t bytes, uint64_t alignment)
{
    const int index = (int)(device - fake.devices);
    const uint64_t end = device->base_va + sim_desc_range(&fake.control.gpus[index]);
    uint64_t va = (device->next_va + alignment - 1) / alignment * alignment;
    uint64_t taken = 1;

    if (va <= end && bytes <= end - va) {
        device->next_va = va + bytes;
        return va;
    }
    for (va = device->base_va; taken > 0;) {
        va = (va + alignment - 1) / alignment * alignment;
        if (va > end || bytes > end - va)
            return 0;
        taken = end_of_taken(index, va, bytes);
        va = taken > 0 ? taken : va;
    }
    return va;
}

void fake_settle_va(int device)
{
    const struct fake_alloc *allocs = fake.allocs.items;
    const struct fake_range *ranges = fake.ranges.items;
    for (size_t i = 0; i < fake.allocs.count; i++) {
        if (allocs[i].device == device)
            return;
    }
    for (size_t i = 0; i < fake.ranges.count; i++) {
        if (ranges[i].device == device)
            return;
    }
    fake.devices[device].next_va = fake.devices[device].base_va;
}

/* Returns whether allocations cover all of [va, va + bytes); several may be adjacent. */
static bool alloc_covers(uint64_t va, uint64_t bytes)
{
    const struct fake_alloc *allocs = fake.allocs.items;
    const uint64_t end = va + bytes;

    for (size_t i = 0; i < fake.allocs.count; i++)
        if (va >= allocs[i].va && va - allocs[i].va < allocs[i].bytes) {
            va = allocs[i].va + allocs[i].bytes;
            if (va >= end)
                return true;
            i = (size_t)-1; /* an adjacent allocation may come earlier in the list */
        }
    return false;
}

/* Returns the index of the last mapping that begins at or before `va`, or count if there is none.
 */
static size_t map_before(uint64_t va)
{
    const struct fake_map *maps = fake.maps.items;
    size_t low = 0;
    size_t high = fake.maps.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (maps[middle].va <= va)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? low - 1 : fake.maps.count;
}

static bool maps_cover(uint64_t va, uint64_t bytes)
{
    const struct fake_map *maps = fake.maps.items;
    uint64_t at = va;

    for (size_t i = map_before(va); i < fake.maps.count; i++) {
        if (maps[i].va > at || at >= maps[i].va + maps[i].bytes || !maps[i].accessible)
            return false;
        at = maps[i].va + maps[i].bytes;
        if (at >= va + bytes)
            return true;
    }
    return false;
}

/* The mappings of the process are read last, because that takes much longer. */
bool fake_is_mapped(uint64_t va, uint64_t bytes)
{
    uint64_t first, length;

    return maps_cover(va, bytes) || alloc_covers(va, bytes) ||
           (fake_find_pageable(va, &first, &length) != MEMORY_DEVICE &&
            bytes <= length - (va - first));
}

void *fake_host(uint64_t va, uint64_t bytes)
{
    const struct fake_alloc *allocs = fake.allocs.items;
    for (size_t i = 0; i < fake.allocs.count; i++) {
        const struct fake_alloc *a = &allocs[i];
        if (a->host && va >= a->va && va - a->va <= a->bytes && bytes <= a->bytes - (va - a->va))
            return a->host + (va - a->va);
    }
    return NULL;
}

struct fake_handle *fake_handle(cu_mem_handle id)
{
    struct fake_handle *handles = fake.handles.items;
    for (size_t i = 0; i < fake.handles.count; i++) {
        if (handles[i].id == id)
            return &handles[i];
    }
    return NULL;
}

void fake_handle_forget(const struct fake_handle *h)
{
    if (h->host)
        (void)munmap(h->host, h->bytes);
}

uint8_t *fake_mapped(uint64_t va, uint64_t *bytes)
{
    const struct fake_map *maps = fake.maps.items;
    const size_t i = map_before(va);
    if (i == fake.maps.count || va < maps[i].va || va >= maps[i].va + maps[i].bytes ||
        !maps[i].accessible)
        return NULL;
    struct fake_handle *h = fake_handle(maps[i].handle);
    if (!h)
        return NULL;
    if (!h->host) { /* pages that are never touched take no memory */
        void *host =
            mmap(NULL, h->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (host == MAP_FAILED)
            abort();
        h->host = host;
    }
    uint64_t offset = va - maps[i].va;
    if (*bytes > maps[i].bytes - offset)
        *bytes = maps[i].bytes - offset;
    return h->host + offset;
}

/* Returns the host memory behind an allocation, or behind a mapping (see fake_mapped). */
static uint8_t *device_bytes(uint64_t va, uint64_t *bytes)
{
    uint8_t *host = fake_host(va, *bytes);
    return host ? host : fake_mapped(va, bytes);
}

bool fake_copy(void *to, uint64_t device_to, const void *from, uint64_t device_from, uint64_t bytes)
{
    for (uint64_t done = 0; done < bytes;) {
        uint64_t n = bytes - done;
        uint8_t *target = to ? (uint8_t *)to + done : device_bytes(device_to + done, &n);
        const uint8_t *source =
            from ? (const uint8_t *)from + done : device_bytes(device_from + done, &n);
        if (!target || !source)
            return false;
        memcpy(target, source, n);
        done += n;
    }
    return true;
}

void fake_hold(int device, int64_t bytes)
{
    fake.devices[device].held_bytes += (uint64_t)bytes;
    fake.report.device_bytes += (uint64_t)bytes;
    if (fake.report.device_bytes > fake.report.most_device_bytes)
        fake.report.most_device_bytes = fake.report.device_bytes;
}

void fake_forget_allocs(int device)
{
    const struct fake_alloc *allocs = fake.allocs.items;
    for (size_t i = fake.allocs.count; i-- > 0;) {
        if (allocs[i].device != device || allocs[i].kind != MEMORY_DEVICE)
            continue;
        fake_hold(device, -(int64_t)allocs[i].bytes);
        free(allocs[i].host);
        fake_list_remove(&fake.allocs, sizeof *allocs, i);
    }
    fake_settle_va(device);
}

void fake_free_all(void)
{
    const struct fake_alloc *allocs = fake.allocs.items;
    for (size_t i = 0; i < fake.allocs.count; i++)
        free(allocs[i].host);
    const struct fake_handle *handles = fake.handles.items;
    for (size_t i = 0; i < fake.handles.count; i++)
        fake_handle_forget(&handles[i]);
    free(fake.events.items);
    free(fake.allocs.items);
    free(fake.handles.items);
    free(fake.ranges.items);
    free(fake.maps.items);
    free(fake.streams.items);
    for (int i = 0; i < REACH_MAX_GPUS; i++)
        sim_machine_free(fake.devices[i].machine);
    for (int i = 0; i < REACH_MAX_GPUS; i++)
        sim_machine_free(fake.devices[i].far);
    memset(&fake, 0, sizeof fake);
    fake.current = -1;
}
