/* fake_nvml.c: a stand-in for libnvidia-ml.so.1, with the functions for MIG and MPS that reachd
 * calls. It reports the GPUs of the node, their MIG modes, their instances, and the number of
 * clients of MPS. CUDA_VISIBLE_DEVICES does not hide any GPU or instance. All other functions are
 * missing, like in an old library. */
#include "tests/fakecuda/fake_state.h"

#include <stdio.h>
#include <string.h>

enum { NVML_SUCCESS = 0, NVML_INVALID_ARGUMENT = 2, NVML_NOT_SUPPORTED = 3, NVML_NOT_FOUND = 6 };
enum { MOST_INSTANCES = 7 };

typedef const struct board *nvml_device;

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

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlSystemGetDriverVersion(char *out, unsigned size);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetMinorNumber(nvml_device device, unsigned *minor);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device *out);
int nvmlDeviceGetHandleByUUID(const char *uuid, nvml_device *out);
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci_bus_id, nvml_device *out);
int nvmlDeviceGetUUID(nvml_device device, char *out, unsigned size);
int nvmlDeviceGetName(nvml_device device, char *out, unsigned size);
int nvmlDeviceGetMemoryInfo(nvml_device device, struct nvml_memory *out);
int nvmlDeviceGetPciInfo_v3(nvml_device device, struct nvml_pci *out);
int nvmlDeviceGetMigMode(nvml_device device, unsigned *current, unsigned *pending);
int nvmlDeviceGetMaxMigDeviceCount(nvml_device device, unsigned *count);
int nvmlDeviceGetMigDeviceHandleByIndex(nvml_device device, unsigned index, nvml_device *out);

int nvmlDeviceGetMaxPcieLinkGeneration(nvml_device device, unsigned *generation);
int nvmlDeviceGetCurrPcieLinkGeneration(nvml_device device, unsigned *generation);
int nvmlDeviceGetMaxPcieLinkWidth(nvml_device device, unsigned *lanes);
int nvmlDeviceGetCurrPcieLinkWidth(nvml_device device, unsigned *lanes);
int nvmlDeviceGetMPSComputeRunningProcesses_v3(nvml_device device, unsigned *count, void *out);
int nvmlDeviceGetComputeRunningProcesses_v3(nvml_device device, unsigned *count, void *out);
int nvmlDeviceGetUtilizationRates(nvml_device device, unsigned out[2]);

static uint32_t place_of(nvml_device device)
{
    return (uint32_t)(device - fake.control.boards);
}

int nvmlInit_v2(void)
{
    return NVML_SUCCESS;
}

int nvmlShutdown(void)
{
    return NVML_SUCCESS;
}

int nvmlSystemGetDriverVersion(char *out, unsigned size)
{
    struct gpu_identity id;

    sim_gpu_identity(&fake.control.boards[0].desc, 0, &id);
    (void)snprintf(out, size, "%s", id.driver_version);
    return NVML_SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = 0;
    for (uint32_t i = 0; i < fake.control.board_count; i++)
        *count += fake.control.boards[i].parent < 0;
    return NVML_SUCCESS;
}

/* Returns the number of GPUs before `device` in the order of device files. */
static unsigned count_before(nvml_device device)
{
    unsigned n = 0;

    for (uint32_t i = 0; i < fake.control.board_count; i++) {
        const struct board *const b = &fake.control.boards[i];
        n += b->parent < 0 &&
             (b->minor < device->minor || (b->minor == device->minor && b < device));
    }
    return n;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device *out)
{
    for (uint32_t i = 0; i < fake.control.board_count; i++) {
        *out = &fake.control.boards[i];
        if ((*out)->parent < 0 && count_before(*out) == index)
            return NVML_SUCCESS;
    }
    return NVML_INVALID_ARGUMENT;
}

int nvmlDeviceGetMinorNumber(nvml_device device, unsigned *minor)
{
    *minor = (unsigned)device->minor;
    return NVML_SUCCESS;
}

int nvmlDeviceGetUUID(nvml_device device, char *out, unsigned size)
{
    unsigned char bytes[16];
    char text[64];

    control_uuid(&fake.control, place_of(device), bytes, text);
    (void)snprintf(out, size, "%s", text);
    return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, nvml_device *out)
{
    char text[64];

    for (uint32_t i = 0; i < fake.control.board_count; i++) {
        *out = &fake.control.boards[i];
        (void)nvmlDeviceGetUUID(*out, text, sizeof text);
        if (strcmp(text, uuid) == 0 && !(*out)->is_part)
            return NVML_SUCCESS;
    }
    return NVML_NOT_FOUND;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *pci_bus_id, nvml_device *out)
{
    char text[32];

    for (uint32_t i = 0; i < fake.control.board_count; i++) {
        *out = &fake.control.boards[i];
        (void)snprintf(text, sizeof text, "0000:%02x:00.0", (unsigned)(*out)->bus);
        if ((*out)->parent < 0 && strcmp(text, pci_bus_id) == 0)
            return NVML_SUCCESS;
    }
    return NVML_NOT_FOUND;
}

int nvmlDeviceGetName(nvml_device device, char *out, unsigned size)
{
    struct gpu_identity id;

    sim_gpu_identity(&device->desc, 0, &id);
    (void)snprintf(out, size, "%s", id.name);
    return NVML_SUCCESS;
}

int nvmlDeviceGetMemoryInfo(nvml_device device, struct nvml_memory *out)
{
    *out = (struct nvml_memory){device->desc.memory_bytes, device->desc.memory_bytes, 0};
    return fake.control.unified || fake.control.mute ? NVML_NOT_SUPPORTED : NVML_SUCCESS;
}

int nvmlDeviceGetPciInfo_v3(nvml_device device, struct nvml_pci *out)
{
    *out = (struct nvml_pci){.bus = (unsigned)device->bus};
    return NVML_SUCCESS;
}

int nvmlDeviceGetMaxPcieLinkGeneration(nvml_device device, unsigned *generation)
{
    *generation = device->desc.pcie_generation;
    return *generation > 0 && !fake.control.mute ? NVML_SUCCESS : NVML_NOT_SUPPORTED;
}

int nvmlDeviceGetCurrPcieLinkGeneration(nvml_device device, unsigned *generation)
{
    *generation = sim_desc_generation(&device->desc);
    return *generation > 0 && !fake.control.mute ? NVML_SUCCESS : NVML_NOT_SUPPORTED;
}

int nvmlDeviceGetMaxPcieLinkWidth(nvml_device device, unsigned *lanes)
{
    *lanes = device->desc.pcie_lanes;
    return *lanes > 0 && !fake.control.mute ? NVML_SUCCESS : NVML_NOT_SUPPORTED;
}

int nvmlDeviceGetCurrPcieLinkWidth(nvml_device device, unsigned *lanes)
{
    *lanes = sim_desc_lanes(&device->desc);
    return *lanes > 0 && !fake.control.mute ? NVML_SUCCESS : NVML_NOT_SUPPORTED;
}

int nvmlDeviceGetMigMode(nvml_device device, unsigned *current, unsigned *pending)
{
    if (device->parent >= 0)
        return NVML_INVALID_ARGUMENT;
    *current = *pending = device->has_mig;
    return NVML_SUCCESS;
}

int nvmlDeviceGetMaxMigDeviceCount(nvml_device device, unsigned *count)
{
    *count = device->has_mig ? MOST_INSTANCES : 0;
    return NVML_SUCCESS;
}

int nvmlDeviceGetMigDeviceHandleByIndex(nvml_device device, unsigned index, nvml_device *out)
{
    for (uint32_t i = place_of(device) + 1; i < fake.control.board_count; i++) {
        *out = &fake.control.boards[i];
        if ((*out)->parent == (int)place_of(device) && index-- == 0)
            return NVML_SUCCESS;
    }
    return NVML_NOT_FOUND;
}

int nvmlDeviceGetMPSComputeRunningProcesses_v3(nvml_device device, unsigned *count, void *out)
{
    (void)device;
    (void)out;
    *count = (unsigned)fake.control.mps_clients;
    return NVML_SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(nvml_device device, unsigned *count, void *out)
{
    bool own = false;

    (void)device;
    (void)out;
    for (size_t i = 0; i < sizeof fake.devices / sizeof fake.devices[0]; i++)
        own = own || fake.devices[i].retains > 0;
    *count = (unsigned)fake.control.processes + own;
    return fake.control.mute ? NVML_NOT_SUPPORTED : NVML_SUCCESS;
}

int nvmlDeviceGetUtilizationRates(nvml_device device, unsigned out[2])
{
    (void)device;
    out[0] = (unsigned)fake.control.busy_percent;
    out[1] = 0;
    return fake.control.mute ? NVML_NOT_SUPPORTED : NVML_SUCCESS;
}
