/* caches.c: see caches.h. */
#include "fingerprint/caches.h"

enum finding l2_match_domains(const struct fingerprint_l2 *l2)
{
    uint32_t sms_of_side[REACH_MAX_SMS] = {0};
    bool match;

    if (!IS_KNOWN(l2->locality_domains) || l2->sides.known == MAYBE_UNKNOWN)
        return FINDING_UNKNOWN;
    if (!IS_KNOWN(l2->sides))
        return l2->locality_domains.v == 1 ? FINDING_YES : FINDING_NO;
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++)
        if (l2->side_of_sm.group_of_sm[sm] < l2->sides.v)
            sms_of_side[l2->side_of_sm.group_of_sm[sm]]++;
    match = l2->locality_domains.v == l2->sides.v;
    for (uint32_t side = 0; match && side < l2->sides.v; side++)
        match =
            !IS_KNOWN(l2->locality_domain_sms) || sms_of_side[side] >= l2->locality_domain_sms.v;
    return match ? FINDING_YES : FINDING_NO;
}

const struct cache_carveout *cache_carveout_beside(const struct cache_facts *l1,
                                                   uint64_t shared_bytes)
{
    for (uint32_t i = 0; i < l1->carveout_count; i++)
        if (l1->carveouts[i].shared_bytes >= shared_bytes)
            return &l1->carveouts[i];
    return NULL;
}

struct maybe_u64 cache_kept_bytes(struct maybe_u64 fits, struct maybe_u64 size)
{
    return IS_KNOWN(fits) ? fits : size;
}
