/* number_set.c: see number_set.h. */
#include "clients/lab/trace/number_set.h"

#include <stdbool.h>
#include <stdlib.h>

static uint64_t hash_key(uint64_t key)
{
    key = (key ^ key >> 32) * 0x9e3779b97f4a7c15u;
    return key ^ key >> 29;
}

static bool number_set_grow(struct number_set *s)
{
    const uint32_t room = s->room > 0 ? 2 * s->room : 256;
    uint64_t *keys = realloc(s->keys, room * sizeof *keys);
    uint32_t *slots;
    if (!keys)
        return false;
    s->keys = keys;
    slots = calloc(2 * (size_t)room, sizeof *slots);
    if (!slots)
        return false;
    free(s->slots);
    s->slots = slots;
    s->room = room;
    for (uint32_t i = 0; i < s->count; i++) {
        uint64_t at = hash_key(keys[i]) & (2 * (uint64_t)room - 1);
        while (slots[at] != 0)
            at = (at + 1) & (2 * (uint64_t)room - 1);
        slots[at] = i + 1;
    }
    return true;
}

uint32_t number_set_add(struct number_set *s, uint64_t key)
{
    uint64_t at;
    if (s->count == s->room && (s->room >= UINT32_MAX / 4 || !number_set_grow(s)))
        return UINT32_MAX;
    at = hash_key(key) & (2 * (uint64_t)s->room - 1);
    while (s->slots[at] != 0) {
        if (s->keys[s->slots[at] - 1] == key)
            return s->slots[at] - 1;
        at = (at + 1) & (2 * (uint64_t)s->room - 1);
    }
    s->keys[s->count] = key;
    s->slots[at] = ++s->count;
    return s->count - 1;
}

void number_set_free(struct number_set *take)
{
    free(take->keys);
    free(take->slots);
}
