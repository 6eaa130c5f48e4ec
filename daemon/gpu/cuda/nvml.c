/* nvml.c: see nvml.h. The types mirror the public ABI of libnvidia-ml.so.1. */
#include "gpu/cuda/nvml.h"

#include <dlfcn.h>
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
    NVML_COUNTER_VOLATILE = 0, /* since the driver was loaded */
    NVML_EVENT_XID = 8,
    NVML_MOST_EVENTS = 16 /* taken at once */
};

struct nvml_utilization {
    unsigned gpu;
    unsigned memory;
};

struct nvml_event {
    nvml_device device;
    unsigned long long type;
    unsigned long long data; /* of an Xid event: its number */
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

typedef struct nvml_event_set_st *nvml_event_set;

struct nvml {
    void *library;
    char uuid[64]; /* of the cached handle */
    nvml_device device;
    /* Since nvml_watch. */
    bool errors_known, events_known;
    unsigned long long errors_before;
    uint64_t last_xid;
    nvml_event_set events;
    nvml_result (*init)(void);
    nvml_result (*shutdown)(void);
    nvml_result (*driver_version)(char *out, unsigned size);
    nvml_result (*handle_by_uuid)(const char *uuid, nvml_device *device);
    nvml_result (*serial)(nvml_device device, char *out, unsigned size);
    nvml_result (*mig_mode)(nvml_device device, unsigned *current, unsigned *pending);
    nvml_result (*clock)(nvml_device device, int type, unsigned *mhz);
    nvml_result (*temperature)(nvml_device device, int sensor, unsigned *celsius);
    nvml_result (*throttle_reasons)(nvml_device device, unsigned long long *mask);
    nvml_result (*memory)(nvml_device device, struct nvml_memory *out);
    nvml_result (*processes)(nvml_device device, unsigned *count, struct nvml_process *out);
    nvml_result (*utilization)(nvml_device device, struct nvml_utilization *out);
    nvml_result (*errors)(nvml_device device, int type, int counter, unsigned long long *count);
    nvml_result (*events_new)(nvml_event_set *set);
    nvml_result (*events_free)(nvml_event_set set);
    nvml_result (*events_register)(nvml_device device, unsigned long long types,
                                   nvml_event_set set);
    nvml_result (*events_wait)(nvml_event_set set, struct nvml_event *out, unsigned timeout_ms);
};

#define SLOT(member) offsetof(struct nvml, member)

static const struct {
    size_t slot;
    const char *name;
} symbols[] = {
    {SLOT(init), "nvmlInit_v2"},
    {SLOT(shutdown), "nvmlShutdown"},
    {SLOT(driver_version), "nvmlSystemGetDriverVersion"},
    {SLOT(handle_by_uuid), "nvmlDeviceGetHandleByUUID"},
    {SLOT(serial), "nvmlDeviceGetSerial"},
    {SLOT(mig_mode), "nvmlDeviceGetMigMode"},
    {SLOT(clock), "nvmlDeviceGetClockInfo"},
    {SLOT(temperature), "nvmlDeviceGetTemperature"},
    {SLOT(throttle_reasons), "nvmlDeviceGetCurrentClocksThrottleReasons"},
    {SLOT(memory), "nvmlDeviceGetMemoryInfo"},
    {SLOT(processes), "nvmlDeviceGetComputeRunningProcesses_v3"},
    {SLOT(utilization), "nvmlDeviceGetUtilizationRates"},
    {SLOT(errors), "nvmlDeviceGetTotalEccErrors"},
    {SLOT(events_new), "nvmlEventSetCreate"},
    {SLOT(events_free), "nvmlEventSetFree"},
    {SLOT(events_register), "nvmlDeviceRegisterEvents"},
    {SLOT(events_wait), "nvmlEventSetWait_v2"},
};

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
    if (!n->init || !n->shutdown || !n->handle_by_uuid || n->init() != NVML_OK)
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
        take->events_free(take->events);
    take->shutdown();
    dlclose(take->library);
    free(take);
}

void nvml_driver_version(struct nvml *n, char *out, unsigned out_size)
{
    if (!n || !n->driver_version || n->driver_version(out, out_size) != NVML_OK)
        out[0] = '\0';
    out[out_size - 1] = '\0';
}

/* The handle of this UUID, cached: looking it up costs milliseconds. */
static nvml_device device_of(struct nvml *n, const char *uuid)
{
    if (!n)
        return NULL;
    if (n->device && strcmp(n->uuid, uuid) == 0)
        return n->device;
    n->device = NULL;
    if (strlen(uuid) >= sizeof n->uuid || n->handle_by_uuid(uuid, &n->device) != NVML_OK)
        return NULL;
    strcpy(n->uuid, uuid);
    return n->device;
}

void nvml_identify(struct nvml *n, struct gpu_identity *io)
{
    unsigned current = 0;
    unsigned pending = 0;
    nvml_device device = device_of(n, io->uuid);
    if (!device)
        return;
    if (!n->serial || n->serial(device, io->serial, sizeof io->serial) != NVML_OK)
        io->serial[0] = '\0';
    io->serial[sizeof io->serial - 1] = '\0';
    if (n->mig_mode && n->mig_mode(device, &current, &pending) == NVML_OK)
        io->mig = io->mig || current != 0;
}

static struct maybe_u32 clock_khz(const struct nvml *n, nvml_device device, int type)
{
    unsigned mhz = 0;
    if (!device || !n->clock || n->clock(device, type, &mhz) != NVML_OK)
        return UNKNOWN_U32(REASON_NOT_REPORTED);
    return KNOWN_U32(mhz * 1000);
}

void nvml_read_clocks(struct nvml *n, const char *uuid, struct probe_conditions *out)
{
    nvml_device device = device_of(n, uuid);
    unsigned celsius = 0;
    unsigned long long mask = 0;
    out->sm_clock_khz = clock_khz(n, device, NVML_CLOCK_SM);
    out->memory_clock_khz = clock_khz(n, device, NVML_CLOCK_MEMORY);
    out->temperature_celsius = UNKNOWN_U32(REASON_NOT_REPORTED);
    out->throttle_reasons = UNKNOWN_U64(REASON_NOT_REPORTED);
    if (!device)
        return;
    if (n->temperature && n->temperature(device, NVML_TEMPERATURE_GPU, &celsius) == NVML_OK)
        out->temperature_celsius = KNOWN_U32(celsius);
    if (n->throttle_reasons && n->throttle_reasons(device, &mask) == NVML_OK)
        out->throttle_reasons = KNOWN_U64((uint64_t)mask);
}

struct maybe_u32 nvml_other_processes(struct nvml *n, const char *uuid)
{
    struct nvml_process list[NVML_MAX_PROCESSES];
    unsigned count = NVML_MAX_PROCESSES;
    nvml_device device = device_of(n, uuid);
    nvml_result r;
    if (!device || !n->processes)
        return UNKNOWN_U32(REASON_NOT_REPORTED);
    r = n->processes(device, &count, list);
    if (r != NVML_OK && r != NVML_INSUFFICIENT_SIZE)
        return UNKNOWN_U32(REASON_NOT_REPORTED);
    return KNOWN_U32(count > 0 ? count - 1 : 0);
}

struct maybe_u64 nvml_free_bytes(struct nvml *n, const char *uuid)
{
    struct nvml_memory memory = {0};
    nvml_device device = device_of(n, uuid);
    if (!device || !n->memory || n->memory(device, &memory) != NVML_OK)
        return UNKNOWN_U64(REASON_NOT_REPORTED);
    return KNOWN_U64(memory.free_bytes);
}

struct maybe_u32 nvml_sm_clock_khz(struct nvml *n, const char *uuid)
{
    return clock_khz(n, device_of(n, uuid), NVML_CLOCK_SM);
}

struct maybe_u32 nvml_busy_percent(struct nvml *n, const char *uuid)
{
    struct nvml_utilization u = {0};
    nvml_device device = device_of(n, uuid);
    if (!device || !n->utilization || n->utilization(device, &u) != NVML_OK)
        return UNKNOWN_U32(REASON_NOT_REPORTED);
    return KNOWN_U32(u.gpu);
}

static bool count_errors(const struct nvml *n, nvml_device device, unsigned long long *out)
{
    return device && n->errors &&
           n->errors(device, NVML_ERROR_UNCORRECTED, NVML_COUNTER_VOLATILE, out) == NVML_OK;
}

void nvml_watch(struct nvml *n, const char *uuid)
{
    nvml_device device = device_of(n, uuid);
    if (!device)
        return;
    n->errors_known = count_errors(n, device, &n->errors_before);
    if (!n->events_new || !n->events_free || !n->events_register || !n->events_wait || n->events)
        return;
    if (n->events_new(&n->events) != NVML_OK) {
        n->events = NULL;
        return;
    }
    n->events_known = n->events_register(device, NVML_EVENT_XID, n->events) == NVML_OK;
}

void nvml_read_faults(struct nvml *n, const char *uuid, struct probe_conditions *out)
{
    nvml_device device = device_of(n, uuid);
    unsigned long long now = 0;
    struct nvml_event event;

    out->uncorrected_errors = UNKNOWN_U64(REASON_NOT_REPORTED);
    out->xid = UNKNOWN_U64(REASON_NOT_REPORTED);
    if (!device)
        return;
    if (n->errors_known && count_errors(n, device, &now))
        out->uncorrected_errors =
            KNOWN_U64(now > n->errors_before ? (uint64_t)(now - n->errors_before) : 0);
    if (!n->events_known)
        return;
    for (int i = 0; i < NVML_MOST_EVENTS && n->events_wait(n->events, &event, 0) == NVML_OK; i++)
        n->last_xid = event.data;
    out->xid = KNOWN_U64(n->last_xid);
}
