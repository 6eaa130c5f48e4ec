/* topology.c: computes the name of a group map. */
#include "fingerprint/topology.h"

#include "base/hash.h"

#include <inttypes.h>
#include <stdio.h>

/* Hashes the SM and the lowest SM of its group, low byte first. Both are independent of the group
 * numbers. */
static uint64_t hash_pair(uint64_t h, uint32_t sm, uint32_t first)
{
    const unsigned char bytes[] = {(unsigned char)sm, (unsigned char)(sm >> 8),
                                   (unsigned char)first, (unsigned char)(first >> 8)};

    return hash_bytes(h, bytes, sizeof(bytes));
}

char *fingerprint_map_hash(const struct sm_partition *partition, char *out)
{
    uint16_t first_of[REACH_MAX_GROUPS];
    uint64_t h = HASH_START;

    for (uint32_t g = 0; g < REACH_MAX_GROUPS; g++)
        first_of[g] = FINGERPRINT_NO_GROUP;
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++) {
        const uint16_t g = partition->group_of_sm[sm];
        if (g >= REACH_MAX_GROUPS)
            continue;
        if (first_of[g] == FINGERPRINT_NO_GROUP)
            first_of[g] = (uint16_t)sm;
        h = hash_pair(h, sm, first_of[g]);
    }
    out[0] = '\0';
    if (partition->group_count > 0)
        (void)snprintf(out, FINGERPRINT_MAP_HASH_BYTES, "map%016" PRIx64, h);
    return out;
}
