/* identity.h: the identity of a GPU. It is a flat value that travels from the source to the last
 * client. A result belongs to the UUID and the serial, never to an index. */
#pragma once

#include "base/maybe.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

enum {
    REACH_MAX_GPUS = 32,   /* most GPUs of one node, including MIG instances */
    REACH_MAX_SMS = 512,   /* most SMs of one GPU; also the bound on %smid */
    REACH_MAX_GROUPS = 256 /* most SM groups of one level of one GPU */
};

enum origin {
    ORIGIN_MEASURED = 0, /* on hardware */
    ORIGIN_SIMULATED,    /* by the MMU model, or through the stand-in driver */
    ORIGIN_IMPORTED      /* published raw numbers of others */
};
/* Returns "measured", "simulated" or "imported". */
const char *origin_name(enum origin o);
/* Returns false if no enumerator has the name; `*out` is then unchanged. */
bool origin_from_name(const char *name, enum origin *out);

struct gpu_identity {
    char uuid[64];          /* "GPU-" or "MIG-" and 36 characters; "SIM-..." if simulated,
                               "IMPORTED-..." if imported */
    char name[96];          /* name from the driver; never used for a decision */
    char serial[32];        /* serial number; "" if the driver does not report it */
    char pci_bus_id[32];    /* "0000:3b:00.0"; "" if not reported */
    uint32_t compute_major; /* compute capability */
    uint32_t compute_minor;
    uint32_t sm_count;       /* number of SMs; 0 if the GPU is divided */
    uint64_t memory_bytes;   /* total memory, from the driver */
    uint64_t l2_cache_bytes; /* size of the L2 cache; 0 if the driver does not report it */
    char driver_version[32]; /* "580.159.04"; without NVML, the CUDA version */
    char cuda_version[16];   /* version of the driver's CUDA: "13.0" */
    bool mig;                /* this is a MIG instance, or MIG mode is on */
    bool mlopart;       /* this is an MLOPart device, or MPS divides the GPU into such devices */
    enum origin origin; /* ORIGIN_IMPORTED if it is not a GPU of this node */
};

/* Returns whether two texts name the same GPU. Case is ignored. The prefix, which marks a GPU or an
 * instance, is ignored too: CUDA gives a job only the 16 bytes, and these are unique. */
static inline bool identity_is_same_uuid(const char *a, const char *b)
{
    static const char gpu[] = "GPU-";
    static const char mig[] = "MIG-";
    const bool both = (strncasecmp(a, gpu, 4) == 0 || strncasecmp(a, mig, 4) == 0) &&
                      (strncasecmp(b, gpu, 4) == 0 || strncasecmp(b, mig, 4) == 0);

    return strcasecmp(a + (both ? 4 : 0), b + (both ? 4 : 0)) == 0;
}

/* Returns whether `text` is the beginning of this UUID: "GPU-" or "MIG-" and at least one more
 * character. */
static inline bool identity_is_prefix(const char *text, const char *uuid)
{
    const size_t bytes = strlen(text);

    return bytes > 4 && (strncasecmp(text, "GPU-", 4) == 0 || strncasecmp(text, "MIG-", 4) == 0) &&
           strncasecmp(text, uuid, bytes) == 0;
}

/* Compares GPUs in their documented order, which is the order of their indices: by PCI address
 * (domain, bus, device). At one address the GPU comes first, then its instances by UUID. GPUs
 * without an address are last and equal. Returns a value below, equal to or above 0, like for
 * qsort. */
int identity_compare(const struct gpu_identity *a, const struct gpu_identity *b);

/* Returns whether two GPUs have the same PCI address. Returns false if either GPU has none. */
bool identity_is_same_address(const struct gpu_identity *a, const struct gpu_identity *b);

/* Returns whether MIG or MLOPart divides the GPU. Its instances count as GPUs with its pci_bus_id,
 * and no process can use the GPU as a whole. */
static inline bool identity_is_divided(const struct gpu_identity *id)
{
    return (id->mig || id->mlopart) && id->sm_count == 0;
}

/* Returns whether this is an instance of a divided GPU: of MIG, or a device of MLOPart. */
static inline bool identity_is_instance(const struct gpu_identity *id)
{
    return (id->mig || id->mlopart) && id->sm_count > 0;
}

/* Returns the name of what divides a GPU: "MIG", "MLOPart", or "nothing". */
const char *identity_division(const struct gpu_identity *id);
