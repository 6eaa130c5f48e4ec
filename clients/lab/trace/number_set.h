/* number_set.h: a hash table that numbers its keys in the order in which they are added. */
#pragma once

#include <stdint.h>

/* A zeroed structure is an empty set. */
struct number_set {
    uint32_t count, room; /* room is 0 or a power of two */
    uint64_t *keys;       /* key of each index */
    uint32_t *slots;      /* index + 1, or 0 if the slot is free */
};

/* Returns the index of `key`, and adds the key if it is new. Returns UINT32_MAX if out of
 * memory. */
uint32_t number_set_add(struct number_set *s, uint64_t key);
void number_set_free(struct number_set *take);
