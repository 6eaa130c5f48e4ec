/* hash.c: FNV-1a. One exclusive-or and one multiplication a byte, so the result does not depend on
 * how the input was cut: hash(hash(start, "ab"), "c") == hash(start, "abc"). */
#include "base/hash.h"

#define FNV_PRIME ((uint64_t)0x100000001b3u)

/* The multiplication wraps on purpose: that is the hash. */
uint64_t hash_bytes(uint64_t h, const void *data, size_t n)
{
    const unsigned char *p = data;

    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * FNV_PRIME;
    return h;
}
