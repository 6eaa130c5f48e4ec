/* identity.c: the order of GPUs. See identity.h. */
#include "base/identity.h"

#include <stdio.h>

/* The number of a PCI address, or UINT64_MAX if there is none. Drivers write the domain with four
 * or eight digits, in upper or lower case. */
static uint64_t address_of(const struct gpu_identity *id)
{
    unsigned domain = 0;
    unsigned bus = 0;
    unsigned device = 0;

    if (sscanf(id->pci_bus_id, "%x:%x:%x", &domain, &bus, &device) != 3)
        return UINT64_MAX;
    return (uint64_t)domain << 32 | (bus & 0xffff) << 16 | (device & 0xffff);
}

static bool is_instance(const struct gpu_identity *id)
{
    return id->mig && !identity_is_divided(id);
}

bool identity_is_same_address(const struct gpu_identity *a, const struct gpu_identity *b)
{
    const uint64_t address = address_of(a);

    return address != UINT64_MAX && address == address_of(b);
}

int identity_compare(const struct gpu_identity *a, const struct gpu_identity *b)
{
    const uint64_t x = address_of(a);
    const uint64_t y = address_of(b);

    if (x != y)
        return x < y ? -1 : 1;
    if (x == UINT64_MAX)
        return 0;
    if (is_instance(a) != is_instance(b))
        return is_instance(a) ? 1 : -1;
    return strcasecmp(a->uuid, b->uuid);
}
