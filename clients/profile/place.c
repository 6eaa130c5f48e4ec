/* place.c: see place.h. */
#include "clients/profile/place.h"

#include "types/name_of.h"

#include <stdlib.h>

NAME_FUNCTION(
    place_name, enum place, [PLACE_DEVICE] = "device", [PLACE_MANAGED_DEVICE] = "managed-device",
    [PLACE_PINNED] = "pinned-host", [PLACE_REGISTERED] = "registered-host",
    [PLACE_REGISTERED_HUGE] = "registered-huge-host", [PLACE_MANAGED_HOST] = "managed-host",
    [PLACE_PEER] = "peer", [PLACE_MANAGED] = "managed", [PLACE_UNKNOWN] = "unknown")
NAME_FUNCTION(
    place_words,
    enum place, [PLACE_DEVICE] = "device", [PLACE_MANAGED_DEVICE] = "managed at the device",
    [PLACE_PINNED] = "pinned host", [PLACE_REGISTERED] = "registered host",
    [PLACE_REGISTERED_HUGE] = "registered huge pages", [PLACE_MANAGED_HOST] = "managed at the host",
    [PLACE_PEER] = "peer", [PLACE_MANAGED] = "managed", [PLACE_UNKNOWN] = "unknown")

bool place_is_device(enum place place)
{
    return place == PLACE_DEVICE || place == PLACE_MANAGED_DEVICE;
}

bool place_memory_kind(enum place place, enum memory_kind *out)
{
    switch (place) {
    case PLACE_PINNED:
        *out = MEMORY_HOST_PINNED;
        return true;
    case PLACE_REGISTERED:
        *out = MEMORY_HOST_REGISTERED;
        return true;
    case PLACE_REGISTERED_HUGE:
        *out = MEMORY_HOST_REGISTERED_HUGE;
        return true;
    case PLACE_MANAGED_HOST:
        *out = MEMORY_MANAGED_HOST;
        return true;
    case PLACE_PEER:
        *out = MEMORY_PEER;
        return true;
    default:
        return false;
    }
}

static enum place place_of(const struct recording_allocation *a, uint32_t gpu)
{
    switch (a->kind) {
    case RECORDING_PINNED:
        return PLACE_PINNED;
    case RECORDING_REGISTERED:
        return PLACE_REGISTERED;
    case RECORDING_REGISTERED_HUGE:
        return PLACE_REGISTERED_HUGE;
    case RECORDING_MANAGED:
        return a->at == RECORDING_AT_HOST     ? PLACE_MANAGED_HOST
               : a->at == RECORDING_AT_DEVICE ? PLACE_MANAGED_DEVICE
                                              : PLACE_MANAGED;
    default:
        return a->gpu == gpu ? PLACE_DEVICE : PLACE_PEER;
    }
}

enum status place_map_make(const struct recording *r, uint32_t gpu, struct place_map *out,
                           struct err *err)
{
    *out = (struct place_map){.regions = calloc(r->allocation_count + 1u, sizeof(*out->regions))};
    if (!out->regions)
        return err_no_memory(err, "the map of memory");
    for (uint32_t i = 0; i < r->allocation_count; i++) {
        const struct recording_allocation *const a = &r->allocations[i];
        struct place_region *const last = out->count > 0 ? &out->regions[out->count - 1] : NULL;
        const uint64_t last_end = last ? last->address + last->bytes : 0;
        const uint64_t begin = a->address > last_end ? a->address : last_end;
        const uint64_t end = a->address + a->bytes;
        const enum place place = place_of(a, gpu);
        const bool is_piece = a->kind == RECORDING_VIRTUAL;
        if (end <= begin)
            continue;
        if (is_piece && last && last->is_piece && begin == last_end && last->place == place &&
            last->gpu == a->gpu)
            last->bytes += end - begin;
        else
            out->regions[out->count++] =
                (struct place_region){begin, end - begin, a->gpu, place, is_piece};
    }
    return STATUS_OK;
}

void place_map_free(struct place_map *take)
{
    free(take->regions);
    *take = (struct place_map){0};
}

/* Returns the number of regions that begin at or below an address. */
static uint32_t count_below(const struct place_map *map, uint64_t address)
{
    uint32_t low = 0;
    uint32_t high = map->count;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (map->regions[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t place_map_find(const struct place_map *map, uint64_t address)
{
    const uint32_t below = count_below(map, address);
    const struct place_region *const r = below > 0 ? &map->regions[below - 1] : NULL;

    return r && address - r->address < r->bytes ? below - 1 : UINT32_MAX;
}

uint64_t place_map_region_touched(const struct place_map *map, uint32_t region,
                                  const struct recording_launch *l)
{
    const uint64_t low = map->regions[region].address;
    const uint64_t high = low + map->regions[region].bytes;
    uint64_t sum = 0;

    for (uint32_t i = 0; i < l->page_run_count; i++) {
        const uint64_t first = l->pages[i].first << RECORDING_PAGE_SHIFT;
        const uint64_t last = first + (l->pages[i].count << RECORDING_PAGE_SHIFT);
        const uint64_t begin = first > low ? first : low;
        const uint64_t end = last < high ? last : high;
        sum += end > begin ? end - begin : 0;
    }
    return sum;
}

/* Adds the whole pages of [begin, end), which contains no allocation. */
static void add_unknown(uint64_t begin, uint64_t end, uint64_t out[PLACE_COUNT])
{
    const uint64_t page = (uint64_t)1 << RECORDING_PAGE_SHIFT;
    const uint64_t first = (begin + page - 1) / page;
    const uint64_t last = end / page;

    out[PLACE_UNKNOWN] += last > first ? (last - first) * page : 0;
}

void place_map_touched(const struct place_map *map, const struct recording_launch *l,
                       uint64_t out[PLACE_COUNT])
{
    for (uint32_t i = 0; i < l->page_run_count; i++) {
        uint64_t at = l->pages[i].first << RECORDING_PAGE_SHIFT;
        const uint64_t end = at + (l->pages[i].count << RECORDING_PAGE_SHIFT);
        const uint32_t below = count_below(map, at);
        for (uint32_t k = below > 0 ? below - 1 : 0;
             k < map->count && map->regions[k].address < end; k++) {
            const struct place_region *const r = &map->regions[k];
            const uint64_t begin = r->address > at ? r->address : at;
            const uint64_t stop = r->address + r->bytes < end ? r->address + r->bytes : end;
            if (stop <= begin)
                continue;
            add_unknown(at, begin, out);
            out[r->place] += stop - begin;
            at = stop;
        }
        add_unknown(at, end, out);
    }
}
