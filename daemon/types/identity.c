/* identity.c: orders GPUs. See identity.h. */
#include "types/identity.h"

#include <stdlib.h>

/* Returns the number of a PCI address, or UINT64_MAX if the text is not a PCI address. Drivers
 * write the domain with four or eight digits, in upper or lower case. */
static uint64_t address_of(const struct gpu_identity *id)
{
    uint64_t address = 0;
    char *end = NULL;
    const char *at = id->pci_bus_id;

    for (int part = 0; part < 3; part++) { /* domain:bus:device */
        address = address << 16 | strtoul(at, &end, 16);
        if (end == at || (part < 2 && *end != ':'))
            return UINT64_MAX;
        at = end + 1;
    }
    return address;
}

const char *identity_division(const struct gpu_identity *id)
{
    return id->mig ? "MIG" : id->mlopart ? "MLOPart" : "nothing";
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
    if (identity_is_instance(a) != identity_is_instance(b))
        return identity_is_instance(a) ? 1 : -1;
    return strcasecmp(a->uuid, b->uuid);
}
