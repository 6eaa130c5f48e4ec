/* cuda_list.c: which GPUs the node has.
 *
 * A process sees at most one MIG instance, the one that CUDA_VISIBLE_DEVICES names when it first
 * calls the driver. So instances are enumerated by NVML, and each is identified in a process of its
 * own, made before this one calls the driver. Without NVML, or where CUDA_VISIBLE_DEVICES is set
 * already, the list is what the driver shows.
 */
#include "gpu/cuda/cuda_list.h"

#include "base/log.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define VISIBLE_DEVICES "CUDA_VISIBLE_DEVICES"

static void print_uuid(const struct cu_uuid *uuid, bool mig, char *out, size_t out_size)
{
    const unsigned char *b = uuid->bytes;
    snprintf(out, out_size,
             "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             mig ? "MIG" : "GPU", b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10],
             b[11], b[12], b[13], b[14], b[15]);
}

enum status cuda_identify_uuid(const struct cuda_api *api, cu_device device,
                               struct gpu_identity *out, struct err *err)
{
    struct cu_uuid uuid;
    struct cu_uuid instance;
    enum status s = CUDA_CALL(api, err, cuDeviceGetUuid, &uuid, device);
    if (s != STATUS_OK)
        return s;
    if (!api->cuDeviceGetUuid_v2 || api->cuDeviceGetUuid_v2(&instance, device) != CU_SUCCESS)
        instance = uuid;
    out->mig = memcmp(&uuid, &instance, sizeof uuid) != 0;
    print_uuid(&instance, out->mig, out->uuid, sizeof out->uuid);
    return STATUS_OK;
}

static enum status identify_attributes(const struct cuda_api *api, cu_device device,
                                       struct gpu_identity *out, struct err *err)
{
    static const int attributes[] = {
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE};
    int values[sizeof attributes / sizeof attributes[0]] = {0};
    enum status s = STATUS_OK;

    for (size_t i = 0; s == STATUS_OK && i < sizeof attributes / sizeof attributes[0]; i++)
        s = CUDA_CALL(api, err, cuDeviceGetAttribute, &values[i], attributes[i], device);
    out->compute_major = (uint32_t)values[0];
    out->compute_minor = (uint32_t)values[1];
    out->sm_count = (uint32_t)values[2];
    out->l2_cache_bytes = (uint64_t)values[3];
    return s;
}

enum status cuda_identify(const struct cuda_api *api, struct nvml *nvml, cu_device device,
                          struct gpu_identity *out, struct err *err)
{
    size_t bytes = 0;
    enum status s;

    memset(out, 0, sizeof *out);
    out->origin = api->is_stand_in ? ORIGIN_SIMULATED : ORIGIN_MEASURED;
    s = cuda_identify_uuid(api, device, out, err);
    if (s == STATUS_OK)
        s = identify_attributes(api, device, out, err);
    if (s == STATUS_OK)
        s = CUDA_CALL(api, err, cuDeviceGetName, out->name, sizeof out->name, device);
    if (s == STATUS_OK)
        s = CUDA_CALL(api, err, cuDeviceTotalMem, &bytes, device);
    if (s == STATUS_OK)
        s = CUDA_CALL(api, err, cuDeviceGetPCIBusId, out->pci_bus_id, sizeof out->pci_bus_id,
                      device);
    if (s != STATUS_OK)
        return s;
    out->name[sizeof out->name - 1] = '\0';
    out->memory_bytes = bytes;
    snprintf(out->cuda_version, sizeof out->cuda_version, "%d.%d", api->driver_version / 1000,
             api->driver_version % 1000 / 10);
    nvml_identify(nvml, out);
    if (out->driver_version[0] == '\0')
        snprintf(out->driver_version, sizeof out->driver_version, "CUDA %s", out->cuda_version);
    return STATUS_OK;
}

/* ---- MIG ---- */

static bool is_instance(const char *uuid)
{
    return strncmp(uuid, "MIG-", 4) == 0;
}

void cuda_show_instance(const char *uuid)
{
    if (is_instance(uuid) && !getenv(VISIBLE_DEVICES))
        (void)setenv(VISIBLE_DEVICES, uuid, 1);
}

/* What the driver of this process shows as its first device. */
static enum status identify_first(const struct gpu_options *options, struct gpu_identity *out,
                                  struct err *err)
{
    struct cuda_api api;
    struct nvml *nvml = NULL;
    cu_device device = 0;
    enum status s = cuda_api_open(options->libcuda, &api, err);

    if (s != STATUS_OK)
        return s;
    nvml = nvml_open();
    s = CUDA_CALL(&api, err, cuDeviceGet, &device, 0);
    if (s == STATUS_OK)
        s = cuda_identify(&api, nvml, device, out, err);
    nvml_close(nvml);
    cuda_api_close(&api);
    return s;
}

/* The process that sees one instance: writes its identity and ends. It ends with the worker, too.
 */
static _Noreturn void identify_and_exit(const struct gpu_options *options, const char *uuid, int fd)
{
    struct gpu_identity id = {.uuid = ""};
    struct err err = {0};
    sigset_t none;

    sigemptyset(&none);
    (void)signal(SIGTERM, SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    cuda_show_instance(uuid);
    if (identify_first(options, &id, &err) != STATUS_OK)
        log_warning("gpu %s cannot be used: %s", uuid, err.text);
    else if (write(fd, &id, sizeof id) == (ssize_t)sizeof id)
        _exit(0);
    _exit(1);
}

/* Identifies a MIG instance in a process of its own. False: the driver does not show it. */
static bool identify_instance(const struct gpu_options *options, const char *uuid,
                              struct gpu_identity *out)
{
    int ends[2];
    size_t n = 0;

    if (pipe(ends) != 0)
        return false;
    const pid_t pid = fork(); /* a worker has one thread */
    if (pid == 0) {
        close(ends[0]);
        identify_and_exit(options, uuid, ends[1]);
    }
    close(ends[1]);
    while (pid > 0 && n < sizeof *out) {
        const ssize_t r = read(ends[0], (char *)out + n, sizeof *out - n);
        if (r > 0)
            n += (size_t)r;
        else if (r == 0 || errno != EINTR)
            break;
    }
    close(ends[0]);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
    return n == sizeof *out && strcasecmp(out->uuid, uuid) == 0;
}

/* The instances, then the GPUs that are divided into them: nobody can use these as a whole. `io` is
 * closed and opened again if processes are made: they have a copy of what it holds. */
static uint32_t list_mig(const struct gpu_options *options, struct nvml **io,
                         struct gpu_identity *out, uint32_t max)
{
    struct gpu_identity all[REACH_MAX_GPUS];
    const uint32_t count = getenv(VISIBLE_DEVICES) ? 0 : nvml_list_mig(*io, all, REACH_MAX_GPUS);
    uint32_t n = 0;

    if (count == 0)
        return 0;
    if (count == REACH_MAX_GPUS)
        log_warning("of GPUs in MIG mode and their instances, only %d are looked at",
                    REACH_MAX_GPUS);
    nvml_close(*io);
    for (uint32_t i = 0; i < count && n < max; i++)
        n += is_instance(all[i].uuid) && identify_instance(options, all[i].uuid, &out[n]);
    for (uint32_t i = 0; i < count && n < max; i++) {
        if (!is_instance(all[i].uuid))
            out[n++] = all[i];
    }
    *io = nvml_open();
    return n;
}

/* ---- the list ---- */

/* What the driver of this process shows; one instance among it is in the other list. */
static enum status list_whole(const struct gpu_options *options, struct nvml *nvml,
                              struct gpu_identity *out, uint32_t max, uint32_t *out_count,
                              struct err *err)
{
    struct cuda_api api;
    int count = 0;
    enum status s = cuda_api_open(options->libcuda, &api, err);

    *out_count = 0;
    if (s != STATUS_OK)
        return s;
    s = CUDA_CALL(&api, err, cuDeviceGetCount, &count);
    if (s == STATUS_OK && count == 0)
        s = err_set(err, STATUS_NO_DRIVER, "the driver shows no device");
    for (int i = 0; i < count && *out_count < max && s == STATUS_OK; i++) {
        cu_device device = 0;
        s = CUDA_CALL(&api, err, cuDeviceGet, &device, i);
        if (s == STATUS_OK)
            s = cuda_identify(&api, nvml, device, &out[*out_count], err);
        if (s == STATUS_OK)
            *out_count += 1;
    }
    cuda_api_close(&api);
    return s;
}

static bool is_among(const struct gpu_identity *gpus, uint32_t count, const char *uuid)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcasecmp(gpus[i].uuid, uuid) == 0)
            return true;
    }
    return false;
}

enum status cuda_list(const struct gpu_options *options, struct gpu_identity *out, uint32_t max,
                      uint32_t *out_count, struct err *err)
{
    struct gpu_identity mig[REACH_MAX_GPUS];
    struct nvml *nvml = nvml_open();
    const uint32_t mig_count = list_mig(options, &nvml, mig, REACH_MAX_GPUS);
    enum status s = list_whole(options, nvml, out, max, out_count, err);

    nvml_close(nvml);
    /* A node that is divided as a whole may have no device of its own. */
    if (s != STATUS_OK && !(s == STATUS_NO_DRIVER && mig_count > 0))
        return s;
    for (uint32_t i = 0; i < mig_count && *out_count < max; i++) {
        if (!is_among(out, *out_count, mig[i].uuid))
            out[(*out_count)++] = mig[i];
    }
    return STATUS_OK;
}
