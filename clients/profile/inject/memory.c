/* memory.c: sorted lists of allocations and of reserved ranges. */
#include "clients/profile/inject/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct list {
    struct allocation *items; /* sorted by address, without overlaps */
    uint32_t count, room;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list allocations, reserved;

/* Returns the item that begins at or below `address`; NULL if there is none. */
static struct allocation *find(const struct list *l, uint64_t address)
{
    uint32_t low = 0, high = l->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (l->items[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? &l->items[low - 1] : NULL;
}

static bool contains(const struct allocation *a, uint64_t address)
{
    return a && address - a->address < a->bytes;
}

static bool make_room(struct list *l)
{
    if (l->count < l->room)
        return true;
    const uint32_t room = l->room ? 2 * l->room : 1024;
    struct allocation *const moved = realloc(l->items, room * sizeof *moved);
    if (!moved)
        return false;
    l->items = moved;
    l->room = room;
    return true;
}

/* Adds an item in place of those that it overlaps. Without memory, the item is lost. */
static void add(struct list *l, const struct allocation *a)
{
    if (a->bytes == 0 || !make_room(l))
        return;
    struct allocation *const before = find(l, a->address);
    uint32_t first = before ? (uint32_t)(before - l->items) + 1 : 0, last = first;
    if (contains(before, a->address))
        first--;
    while (last < l->count && l->items[last].address < a->address + a->bytes)
        last++;
    memmove(&l->items[first + 1], &l->items[last], (l->count - last) * sizeof *l->items);
    l->count = l->count - (last - first) + 1;
    l->items[first] = *a;
}

void memory_allocated(int device, uint64_t address, uint64_t bytes, const char *kind)
{
    const struct allocation a = {
        .device = device, .address = address, .bytes = bytes, .kind = kind, .at = "unknown"};
    pthread_mutex_lock(&lock);
    add(&allocations, &a);
    pthread_mutex_unlock(&lock);
}

void memory_freed(uint64_t address)
{
    pthread_mutex_lock(&lock);
    struct allocation *const a = find(&allocations, address);
    if (a && a->address == address)
        a->freed = true;
    pthread_mutex_unlock(&lock);
}

void memory_reserved(uint64_t address, uint64_t bytes)
{
    const struct allocation a = {.address = address, .bytes = bytes};
    pthread_mutex_lock(&lock);
    add(&reserved, &a);
    pthread_mutex_unlock(&lock);
}

void memory_released(uint64_t address)
{
    pthread_mutex_lock(&lock);
    struct allocation *const a = find(&reserved, address);
    if (a && a->address == address) {
        const size_t at = (size_t)(a - reserved.items);
        memmove(a, a + 1, (reserved.count - at - 1) * sizeof *a);
        reserved.count--;
    }
    pthread_mutex_unlock(&lock);
}

bool memory_is_reserved(uint64_t address)
{
    pthread_mutex_lock(&lock);
    const bool is_in = contains(find(&reserved, address), address);
    pthread_mutex_unlock(&lock);
    return is_in;
}

bool memory_is_known(uint64_t address)
{
    pthread_mutex_lock(&lock);
    const bool is_in = contains(find(&allocations, address), address);
    pthread_mutex_unlock(&lock);
    return is_in;
}

void memory_locate(uint64_t address, const char *kind, const char *at)
{
    pthread_mutex_lock(&lock);
    struct allocation *const a = find(&allocations, address);
    if (a && a->address == address) {
        a->kind = kind;
        a->at = at;
    }
    pthread_mutex_unlock(&lock);
}

bool memory_get(uint32_t i, struct allocation *out)
{
    pthread_mutex_lock(&lock);
    const bool found = i < allocations.count;
    if (found)
        *out = allocations.items[i];
    pthread_mutex_unlock(&lock);
    return found;
}
