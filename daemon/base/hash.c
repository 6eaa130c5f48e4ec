/* hash.c: calculates FNV-1a, and a faster hash for the path of every request. FNV-1a takes one
 * exclusive-or and one multiplication per byte. So the result does not depend on how the input was
 * cut: hash(hash(start, "ab"), "c") == hash(start, "abc"). */
#include "base/hash.h"

#include <string.h>

#define FNV_PRIME ((uint64_t)0x100000001b3u)

/* The multiplication wraps on purpose. */
uint64_t hash_bytes(uint64_t h, const void *data, size_t n)
{
    const unsigned char *p = data;

    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * FNV_PRIME;
    return h;
}

uint64_t hash_u64(uint64_t h, uint64_t v)
{
    for (int i = 0; i < 64; i += 8)
        h = (h ^ (v >> i & 0xff)) * FNV_PRIME;
    return h;
}

static uint64_t mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0x9fb21c651e98df25u;
    return h ^ (h >> 32);
}

uint64_t hash_quick(const void *data, size_t n)
{
    const unsigned char *p = data;
    uint64_t h = HASH_START ^ n;
    uint64_t word = 0;

    for (; n >= sizeof(word); n -= sizeof(word), p += sizeof(word)) {
        memcpy(&word, p, sizeof(word));
        h = mix(h, word);
    }
    word = 0;
    memcpy(&word, p, n);
    return mix(mix(h, word), word);
}
