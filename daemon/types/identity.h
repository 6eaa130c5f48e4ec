/* identity.h: which GPU this is. A flat value that travels from the source to the last client.
 * A result belongs to the UUID and the serial, never to an index. */
#ifndef REACH_TYPES_IDENTITY_H
#define REACH_TYPES_IDENTITY_H

#include "base/maybe.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

enum {
    REACH_MAX_GPUS = 32,   /* of one node, MIG instances counted */
    REACH_MAX_SMS = 512,   /* of one GPU; also the bound on %smid */
    REACH_MAX_GROUPS = 256 /* SM groups of one level of one GPU */
};

enum origin {
    ORIGIN_MEASURED = 0, /* on hardware */
    ORIGIN_SIMULATED,    /* by the MMU model, or through the stand-in driver */
    ORIGIN_IMPORTED      /* published raw numbers of others */
};
/* "measured", "simulated", "imported". */
const char *origin_name(enum origin o);
/* False if no enumerator has the name; `*out` is then unchanged. */
bool origin_from_name(const char *name, enum origin *out);

struct gpu_identity {
    char uuid[64];          /* "GPU-" or "MIG-" and 36 characters; "SIM-..." if simulated,
                               "IMPORTED-..." if imported */
    char name[96];          /* from the driver; never used for a decision */
    char serial[32];        /* "" if the driver does not report it */
    char pci_bus_id[32];    /* "0000:3b:00.0"; "" if not reported */
    uint32_t compute_major; /* compute capability */
    uint32_t compute_minor;
    uint32_t sm_count;       /* 0: of a GPU that is divided */
    uint64_t memory_bytes;   /* total, from the driver */
    uint64_t l2_cache_bytes; /* data cache; 0 if the driver does not report it */
    char driver_version[32]; /* "580.159.04"; the CUDA version without NVML */
    char cuda_version[16];   /* of the driver: "13.0" */
    bool mig;                /* this is a MIG instance, or MIG mode is on */
    enum origin origin;      /* imported: not a GPU of this node */
};

/* Do two texts name the same GPU? Case is ignored, and so is whether a UUID is said to be of a GPU
 * or of an instance: CUDA gives a job the 16 bytes alone, and no two are equal. */
static inline bool identity_is_same_uuid(const char *a, const char *b)
{
    static const char gpu[] = "GPU-";
    static const char mig[] = "MIG-";
    const bool both = (strncasecmp(a, gpu, 4) == 0 || strncasecmp(a, mig, 4) == 0) &&
                      (strncasecmp(b, gpu, 4) == 0 || strncasecmp(b, mig, 4) == 0);

    return strcasecmp(a + (both ? 4 : 0), b + (both ? 4 : 0)) == 0;
}

/* Is `text` the beginning of this UUID: "GPU-" or "MIG-", and one character more at least? */
static inline bool identity_is_prefix(const char *text, const char *uuid)
{
    const size_t bytes = strlen(text);

    return bytes > 4 && (strncasecmp(text, "GPU-", 4) == 0 || strncasecmp(text, "MIG-", 4) == 0) &&
           strncasecmp(text, uuid, bytes) == 0;
}

/* The documented order of GPUs, which is the order of their indices: by PCI address (domain, bus,
 * device); at one address first the GPU, then its MIG instances by UUID. GPUs without an address
 * are behind the others and equal. Below, equal to or above 0, as for qsort. */
int identity_compare(const struct gpu_identity *a, const struct gpu_identity *b);

/* Do two GPUs have one PCI address? False if either has none. */
bool identity_is_same_address(const struct gpu_identity *a, const struct gpu_identity *b);

/* Is it a GPU in MIG mode? Its instances are GPUs of their own, with its pci_bus_id, and no process
 * can use it as a whole. */
static inline bool identity_is_divided(const struct gpu_identity *id)
{
    return id->mig && id->sm_count == 0;
}

#endif
