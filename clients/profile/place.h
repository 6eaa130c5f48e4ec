/* place.h: the memory behind the addresses of a process, as one GPU sees it. An allocation is a
 * region. Neighboring pieces of virtual memory are one region, because a program maps one array
 * piece by piece.
 *
 * A map is read-only after it was made, and may be used by any thread. */
#pragma once

#include "clients/profile/recording.h"
#include "types/memory_kind.h"

enum place {
    PLACE_DEVICE = 0,
    PLACE_MANAGED_DEVICE,
    PLACE_PINNED,
    PLACE_REGISTERED,
    PLACE_REGISTERED_HUGE, /* in huge pages */
    PLACE_MANAGED_HOST,
    PLACE_PEER,    /* memory of another GPU */
    PLACE_MANAGED, /* managed memory whose location is unknown */
    PLACE_UNKNOWN, /* memory outside of all recorded allocations */
    PLACE_COUNT
};
const char *place_name(enum place place); /* "device", "managed-device", "pinned-host", .. */
/* Returns the words of a report: "device", "pinned host", .. */
const char *place_words(enum place place);

/* Returns whether the GPU's own TLB levels translate the place (fingerprint.levels). */
bool place_is_device(enum place place);
/* Returns whether the fingerprint describes the place as another kind of memory, and which. */
bool place_memory_kind(enum place place, enum memory_kind *out);

struct place_region {
    uint64_t address;
    uint64_t bytes;
    uint32_t gpu; /* GPU of the allocation */
    enum place place;
    bool is_piece; /* whether a neighboring piece can continue the region */
};

struct place_map {
    uint32_t count;
    struct place_region *regions; /* sorted by address, without overlaps */
};

/* Makes the map of the GPU with index `gpu`. Returns STATUS_NO_MEMORY if out of memory. Free the
 * map with place_map_free. */
enum status place_map_make(const struct recording *r, uint32_t gpu, struct place_map *out,
                           struct err *err);
void place_map_free(struct place_map *take);

/* Returns the index of the region of an address, or UINT32_MAX if there is none. */
uint32_t place_map_find(const struct place_map *map, uint64_t address);

/* Returns the bytes of the pages of a region that a launch touches, as far as they are allocated.
 */
uint64_t place_map_region_touched(const struct place_map *map, uint32_t region,
                                  const struct recording_launch *l);

/* Adds the touched bytes of a launch to out[], by place. A page counts with the part of it that is
 * allocated, or as a whole if no part is. */
void place_map_touched(const struct place_map *map, const struct recording_launch *l,
                       uint64_t out[PLACE_COUNT]);
