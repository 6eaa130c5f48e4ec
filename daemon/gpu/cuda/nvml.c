/* nvml.c: see nvml.h. The types mirror the public ABI of libnvidia-ml.so.1. */
#include "gpu/cuda/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef int nvml_result;
typedef struct nvml_device_st *nvml_device;

enum {
    NVML_OK = 0,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_CLOCK_SM = 1,
    NVML_CLOCK_MEMORY = 2,
    NVML_TEMPERATURE_GPU = 0,
    NVML_MAX_PROCESSES = 64,
    NVML_ERROR_UNCORRECTED = 1,
    NVML_COUNTER_VOLATILE = 0, /* errors since the driver was loaded */
    NVML_EVENT_XID = 8,
    NVML_MOST_EVENTS = 16 /* events that one call of nvml_read_conditions reads */
};

struct nvml_utilization {
    unsigned gpu;
    unsigned memory;
};

struct nvml_event {
    nvml_device device;
    unsigned long long type;
    unsigned long long data; /* for an Xid event: its number */
    unsigned gpu_instance;
    unsigned compute_instance;
};

struct nvml_process {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance;
    unsigned compute_instance;
};

struct nvml_memory {
    unsigned long long total_bytes;
    unsigned long long free_bytes;
    unsigned long long used_bytes;
};

struct nvml_pci {
    char legacy_id[16];
    unsigned domain;
    unsigned bus;
    unsigned device;
    unsigned device_id;
    unsigned subsystem_id;
    char id[32];
};

typedef struct nvml_event_set_st *nvml_event_set;
typedef nvml_result (*nvml_processes_function)(nvml_device device, unsigned *count,
                                               struct nvml_process *out);

/* Each row has the name of a function, the version of its ABI (part of the symbol's name), and its
 * parameters. */
/* clang-format off */
#define NVML_FUNCTIONS(X)                                                                          \
    X(nvmlInit, "_v2", void)                                                                       \
    X(nvmlShutdown, "", void)                                                                      \
    X(nvmlSystemGetDriverVersion, "", char *out, unsigned size)                                    \
    X(nvmlDeviceGetHandleByUUID, "", const char *uuid, nvml_device *device)                        \
    X(nvmlDeviceGetHandleByPciBusId, "_v2", const char *pci_bus_id, nvml_device *device)           \
    X(nvmlDeviceGetSerial, "", nvml_device device, char *out, unsigned size)                       \
    X(nvmlDeviceGetMigMode, "", nvml_device device, unsigned *current, unsigned *pending)          \
    X(nvmlDeviceGetCount, "_v2", unsigned *count)                                                  \
    X(nvmlDeviceGetHandleByIndex, "_v2", unsigned index, nvml_device *device)                      \
    X(nvmlDeviceGetMaxMigDeviceCount, "", nvml_device device, unsigned *count)                     \
    X(nvmlDeviceGetMigDeviceHandleByIndex, "",                                                     \
      nvml_device device, unsigned index, nvml_device *instance)                                   \
    X(nvmlDeviceGetUUID, "", nvml_device device, char *out, unsigned size)                         \
    X(nvmlDeviceGetName, "", nvml_device device, char *out, unsigned size)                         \
    X(nvmlDeviceGetPciInfo, "_v3", nvml_device device, struct nvml_pci *out)                       \
    X(nvmlDeviceGetMinorNumber, "", nvml_device device, unsigned *minor)                           \
    X(nvmlDeviceGetClockInfo, "", nvml_device device, int type, unsigned *mhz)                     \
    X(nvmlDeviceGetTemperature, "", nvml_device device, int sensor, unsigned *celsius)             \
    X(nvmlDeviceGetCurrentClocksThrottleReasons, "",                                               \
      nvml_device device, unsigned long long *mask)                                                \
    X(nvmlDeviceGetMemoryInfo, "", nvml_device device, struct nvml_memory *out)                    \
    X(nvmlDeviceGetComputeRunningProcesses, "_v3",                                                 \
      nvml_device device, unsigned *count, struct nvml_process *out)                               \
    X(nvmlDeviceGetMPSComputeRunningProcesses, "_v3",                                              \
      nvml_device device, unsigned *count, struct nvml_process *out)                               \
    X(nvmlDeviceGetMaxPcieLinkGeneration, "", nvml_device device, unsigned *generation)            \
    X(nvmlDeviceGetCurrPcieLinkGeneration, "", nvml_device device, unsigned *generation)           \
    X(nvmlDeviceGetMaxPcieLinkWidth, "", nvml_device device, unsigned *lanes)                      \
    X(nvmlDeviceGetCurrPcieLinkWidth, "", nvml_device device, unsigned *lanes)                     \
    X(nvmlDeviceGetUtilizationRates, "", nvml_device device, struct nvml_utilization *out)         \
    X(nvmlDeviceGetTotalEccErrors, "",                                                             \
      nvml_device device, int type, int counter, unsigned long long *count)                        \
    X(nvmlEventSetCreate, "", nvml_event_set *set)                                                 \
    X(nvmlEventSetFree, "", nvml_event_set set)                                                    \
    X(nvmlDeviceRegisterEvents, "",                                                                \
      nvml_device device, unsigned long long types, nvml_event_set set)                            \
    X(nvmlEventSetWait, "_v2", nvml_event_set set, struct nvml_event *out, unsigned timeout_ms)
/* clang-format on */

/* A pointer is NULL if the library lacks the function. */
#define POINTER(function, version, ...) nvml_result (*function)(__VA_ARGS__);
#define SYMBOL(function, version, ...)  {offsetof(struct nvml, function), #function version},

struct nvml {
    void *library;
    nvml_device device; /* the GPU that nvml_identify found; NULL if there is none */
    /* nvml_watch sets the members from here to `events`. */
    bool errors_known, events_known;
    unsigned long long errors_before;
    uint64_t last_xid;
    nvml_event_set events;
    NVML_FUNCTIONS(POINTER)
};

static const struct {
    size_t slot;
    const char *name;
} symbols[] = {NVML_FUNCTIONS(SYMBOL)};

/* Returns whether the call succeeded. Returns false without the library or the function. */
#define NVML_CALL(n, function, ...) ((n) && (n)->function && (n)->function(__VA_ARGS__) == NVML_OK)
/* Calls a function for the GPU that nvml_identify found, like NVML_CALL. */
#define NVML_DEVICE(n, function, ...)                                                              \
    ((n) && (n)->device && NVML_CALL(n, function, (n)->device, __VA_ARGS__))

struct nvml *nvml_open(void)
{
    struct nvml *n = calloc(1, sizeof *n);
    if (!n)
        return NULL;
    n->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!n->library)
        goto fail;
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *pointer = dlsym(n->library, symbols[i].name);
        memcpy((char *)n + symbols[i].slot, &pointer, sizeof pointer);
    }
    if (!n->nvmlInit || !n->nvmlShutdown || !n->nvmlDeviceGetHandleByUUID ||
        n->nvmlInit() != NVML_OK)
        goto fail;
    return n;
fail:
    if (n->library)
        dlclose(n->library);
    free(n);
    return NULL;
}

void nvml_close(struct nvml *take)
{
    if (!take)
        return;
    if (take->events)
        take->nvmlEventSetFree(take->events);
    take->nvmlShutdown();
    dlclose(take->library);
    free(take);
}

void nvml_identify(struct nvml *n, struct gpu_identity *io)
{
    unsigned current = 0;
    unsigned pending = 0;
    if (!NVML_CALL(n, nvmlSystemGetDriverVersion, io->driver_version, sizeof io->driver_version))
        io->driver_version[0] = '\0';
    io->driver_version[sizeof io->driver_version - 1] = '\0';
    if (!n)
        return;
    if (!NVML_CALL(n, nvmlDeviceGetHandleByUUID, io->uuid, &n->device)) {
        io->mlopart =
            !io->mig && NVML_CALL(n, nvmlDeviceGetHandleByPciBusId, io->pci_bus_id, &n->device);
        n->device = io->mlopart ? n->device : NULL;
    }
    if (!NVML_DEVICE(n, nvmlDeviceGetSerial, io->serial, sizeof io->serial))
        io->serial[0] = '\0';
    io->serial[sizeof io->serial - 1] = '\0';
    if (NVML_DEVICE(n, nvmlDeviceGetMigMode, &current, &pending))
        io->mig = io->mig || current != 0;
}

/* Reads a text of a device, or "" if NVML does not report it. */
#define NVML_TEXT(n, function, device, out)                                                        \
    do {                                                                                           \
        if (!NVML_CALL(n, function, device, (out), sizeof(out)))                                   \
            (out)[0] = '\0';                                                                       \
        (out)[sizeof(out) - 1] = '\0';                                                             \
    } while (0)

/* Writes NVML's report about a GPU. If the GPU is divided, its SMs are the SMs of its instances. */
static void describe_whole(const struct nvml *n, nvml_device device, struct gpu_identity *out)
{
    struct nvml_memory memory = {0};
    struct nvml_pci pci;

    unsigned current = 0;
    unsigned pending = 0;

    *out = (struct gpu_identity){
        .mig = NVML_CALL(n, nvmlDeviceGetMigMode, device, &current, &pending) && current != 0};
    NVML_TEXT(n, nvmlDeviceGetUUID, device, out->uuid);
    NVML_TEXT(n, nvmlDeviceGetName, device, out->name);
    NVML_TEXT(n, nvmlDeviceGetSerial, device, out->serial);
    if (!NVML_CALL(n, nvmlSystemGetDriverVersion, out->driver_version, sizeof out->driver_version))
        out->driver_version[0] = '\0';
    if (NVML_CALL(n, nvmlDeviceGetMemoryInfo, device, &memory))
        out->memory_bytes = memory.total_bytes;
    if (NVML_CALL(n, nvmlDeviceGetPciInfo, device, &pci))
        (void)snprintf(out->pci_bus_id, sizeof out->pci_bus_id, "%04x:%02x:%02x.0", pci.domain,
                       pci.bus, pci.device);
}

/* Lists the instances of a GPU, up to `max`, and returns their number. An index may be free
 * although a higher index is in use. */
static uint32_t list_instances(const struct nvml *n, nvml_device device,
                               const struct gpu_identity *whole, struct gpu_identity *out,
                               uint32_t max)
{
    unsigned most = 0;
    uint32_t count = 0;
    nvml_device instance;

    if (!NVML_CALL(n, nvmlDeviceGetMaxMigDeviceCount, device, &most))
        return 0;
    for (unsigned i = 0; i < most && count < max; i++) {
        if (!NVML_CALL(n, nvmlDeviceGetMigDeviceHandleByIndex, device, i, &instance))
            continue;
        out[count] = (struct gpu_identity){.mig = true};
        memcpy(out[count].pci_bus_id, whole->pci_bus_id, sizeof out[count].pci_bus_id);
        NVML_TEXT(n, nvmlDeviceGetUUID, instance, out[count].uuid);
        count += out[count].uuid[0] != '\0';
    }
    return count;
}

uint32_t nvml_list(struct nvml *n, struct gpu_identity *out, uint32_t max)
{
    unsigned gpus = 0;
    uint32_t count = 0;

    if (!NVML_CALL(n, nvmlDeviceGetCount, &gpus))
        return 0;
    for (unsigned i = 0; i < gpus && count < max; i++) {
        nvml_device device = NULL;
        if (!NVML_CALL(n, nvmlDeviceGetHandleByIndex, i, &device))
            continue;
        const uint32_t at = count;
        describe_whole(n, device, &out[at]);
        count += out[at].uuid[0] != '\0';
        if (out[at].mig)
            count += list_instances(n, device, &out[at], &out[count], max - count);
    }
    return count;
}

struct maybe_u32 nvml_minor(const struct nvml *n)
{
    unsigned minor = 0;

    if (!NVML_DEVICE(n, nvmlDeviceGetMinorNumber, &minor))
        return UNKNOWN_U32(REASON_NOT_REPORTED);
    return KNOWN_U32(minor);
}

static struct maybe_u32 clock_khz(const struct nvml *n, int type)
{
    unsigned mhz = 0;
    if (!NVML_DEVICE(n, nvmlDeviceGetClockInfo, type, &mhz))
        return UNKNOWN_U32(REASON_NOT_REPORTED);
    return KNOWN_U32(mhz * 1000);
}

struct maybe_u32 nvml_sm_clock_khz(const struct nvml *n)
{
    return clock_khz(n, NVML_CLOCK_SM);
}

/* Defines a function that reads a number above 0. NVML reports 0 for a GPU without a PCIe link. */
#define NVML_NUMBER(name, function)                                                                \
    struct maybe_u32 name(const struct nvml *n)                                                    \
    {                                                                                              \
        unsigned number = 0;                                                                       \
                                                                                                   \
        if (!NVML_DEVICE(n, function, &number) || number == 0)                                     \
            return UNKNOWN_U32(REASON_NOT_REPORTED);                                               \
        return KNOWN_U32(number);                                                                  \
    }

NVML_NUMBER(nvml_pcie_generation, nvmlDeviceGetMaxPcieLinkGeneration)
NVML_NUMBER(nvml_pcie_lanes_supported, nvmlDeviceGetMaxPcieLinkWidth)
NVML_NUMBER(nvml_pcie_generation_used, nvmlDeviceGetCurrPcieLinkGeneration)
NVML_NUMBER(nvml_pcie_lanes, nvmlDeviceGetCurrPcieLinkWidth)

static struct maybe_u32 count_processes(const struct nvml *n,
                                        nvml_processes_function list_processes)
{
    struct nvml_process list[NVML_MAX_PROCESSES];
    unsigned count = NVML_MAX_PROCESSES;
    if (!n || !n->device || !list_processes)
        return UNKNOWN_U32(REASON_NOT_REPORTED);
    const nvml_result r = list_processes(n->device, &count, list);
    if (r != NVML_OK && r != NVML_INSUFFICIENT_SIZE)
        return UNKNOWN_U32(REASON_NOT_REPORTED);
    return KNOWN_U32(count);
}

/* Counts the listed processes other than this process. */
static struct maybe_u32 count_others(const struct nvml *n, nvml_processes_function list_processes)
{
    struct maybe_u32 count = count_processes(n, list_processes);

    count.v -= count.v > 0;
    return count;
}

struct maybe_u32 nvml_processes(const struct nvml *n)
{
    return count_processes(n, n ? n->nvmlDeviceGetComputeRunningProcesses : NULL);
}

struct maybe_u32 nvml_other_processes(const struct nvml *n)
{
    return count_others(n, n ? n->nvmlDeviceGetComputeRunningProcesses : NULL);
}

struct maybe_u32 nvml_other_mps_clients(const struct nvml *n)
{
    return count_others(n, n ? n->nvmlDeviceGetMPSComputeRunningProcesses : NULL);
}

struct maybe_u64 nvml_free_bytes(const struct nvml *n)
{
    struct nvml_memory memory = {0};
    if (!NVML_DEVICE(n, nvmlDeviceGetMemoryInfo, &memory))
        return UNKNOWN_U64(REASON_NOT_REPORTED);
    return KNOWN_U64(memory.free_bytes);
}

struct maybe_u32 nvml_busy_percent(const struct nvml *n)
{
    struct nvml_utilization u = {0};
    if (!NVML_DEVICE(n, nvmlDeviceGetUtilizationRates, &u))
        return UNKNOWN_U32(REASON_NOT_REPORTED);
    return KNOWN_U32(u.gpu);
}

static bool count_errors(const struct nvml *n, unsigned long long *out)
{
    return NVML_DEVICE(n, nvmlDeviceGetTotalEccErrors, NVML_ERROR_UNCORRECTED,
                       NVML_COUNTER_VOLATILE, out);
}

void nvml_watch(struct nvml *n)
{
    if (!n || !n->device)
        return;
    n->errors_known = count_errors(n, &n->errors_before);
    if (!n->nvmlEventSetFree || !n->nvmlEventSetWait || n->events)
        return;
    if (!NVML_CALL(n, nvmlEventSetCreate, &n->events))
        n->events = NULL;
    else
        n->events_known = NVML_DEVICE(n, nvmlDeviceRegisterEvents, NVML_EVENT_XID, n->events);
}

void nvml_read_conditions(struct nvml *n, struct probe_conditions *out)
{
    unsigned celsius = 0;
    unsigned long long mask = 0;
    unsigned long long now = 0;
    struct nvml_event event;

    out->sm_clock_khz = clock_khz(n, NVML_CLOCK_SM);
    out->memory_clock_khz = clock_khz(n, NVML_CLOCK_MEMORY);
    if (NVML_DEVICE(n, nvmlDeviceGetTemperature, NVML_TEMPERATURE_GPU, &celsius))
        out->temperature_celsius = KNOWN_U32(celsius);
    if (NVML_DEVICE(n, nvmlDeviceGetCurrentClocksThrottleReasons, &mask))
        out->throttle_reasons = KNOWN_U64((uint64_t)mask);
    if (n && n->errors_known && count_errors(n, &now))
        out->uncorrected_errors =
            KNOWN_U64(now > n->errors_before ? (uint64_t)(now - n->errors_before) : 0);
    if (!n || !n->events_known)
        return;
    for (int i = 0; i < NVML_MOST_EVENTS && NVML_CALL(n, nvmlEventSetWait, n->events, &event, 0);
         i++)
        n->last_xid = event.data;
    out->xid = KNOWN_U64(n->last_xid);
}
