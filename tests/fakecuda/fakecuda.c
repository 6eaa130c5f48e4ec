/* fakecuda.c: a stand-in libcuda.so.1 over the MMU model, so that the code of the cuda source runs
 * without a GPU. This file has the devices, their contexts, and the faults. Memory, modules and
 * launches are in fake_driver.c.
 *
 * It answers the calls of reachd, counts all resources, and runs kernels by name on the model, with
 * the parameter structs of kernels/abi.h. It ignores the device code. A text controls the
 * library. It comes from the environment when the library is loaded, or from fakecuda_start():
 *
 *     FAKECUDA="gpu=h200,fail=cuMemCreate@2=2"
 *
 * Items are separated by commas. If the text contains a bar, bars separate them, because
 * descriptions have commas:
 *
 *   gpu=<profile or description>   one GPU, described like in sim_desc.h. The item can be repeated
 *                                  for more GPUs, in the order of PCI addresses. Default: h200
 *   bus=<n>                        the bus of the last GPU's PCI address; default: its place, from
 *                                  1
 *   minor=<n>                      N of the device file /dev/nvidiaN of the last GPU; default: its
 *                                  place, from 0. NVML lists the GPUs in this order
 *   fail=<call>[/<gpu>][@<n>[+]]=<result>
 *                                  the nth use of this call, from 1, returns this CUresult.
 *                                  With "+" all later uses return it too; without @ each use
 *                                  does. The name is a name of the API without its version:
 *                                  cuMemAlloc. "*" counts all calls except cuGetErrorName and
 *                                  cuGetErrorString. With /<gpu> only calls about this GPU
 *                                  count, by its place among the GPUs, from 0. After 214, 226
 *                                  and 700 to 719 all calls fail, like after the loss of a
 *                                  context
 *   hang=<call>[/<gpu>][@<n>[+]][=<ms>]
 *                                  the call returns only after this time, or never. With the
 *                                  name of a kernel (reach_round) its launch never ends
 *   giveup=<kernel>[@<n>[+]]       the blocks of this launch do not meet, and report it
 *   crash=<call>[/<gpu>][@<n>]     the process aborts
 *   driver=<version>               the result of cuDriverGetVersion; default 13000
 *   mode=<n>                       compute mode: 0 default, 2 prohibited, 3 exclusive process
 *   others=<size>                  device memory that other processes hold
 *   processes=<n>                  other processes with a context, which NVML reports
 *   busy=<n>                       percentage of the time with kernels, which NVML reports
 *   mute                           NVML reports only which GPUs there are: all other questions
 *                                  about a GPU are not supported
 *   mps=<n>                        the process is one of this many clients of MPS
 *   novmm                          the GPUs cannot do the virtual memory API
 *   ats                            the GPUs use the page tables of the host
 *   unified                        the memory of the GPUs is memory of the host, and NVML does not
 *                                  report it
 *   nohints                        the driver ignores the carveout that a kernel requests
 *   mig                            the GPUs are MIG instances, and NVML does not report it
 *   mig=<profile or description>   an instance of the GPU before it; without a description the GPU
 *                                  is in MIG mode and has none
 *   mlopart=<profile or description>  an MLOPart device of the GPU before it, which CUDA then does
 *                                  not show; NVML shows only the GPU
 *
 * fakecuda_script.h describes kernels with accesses that a test chooses. CUDA_INJECTION64_PATH
 * names a library that cuInit loads.
 *
 * CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER select and order the GPUs and instances that are
 * visible to a process, like with a real driver (control_see).
 *
 * With FAKECUDA=@<path> a file contains the items. Each process reads the file anew, so the GPUs of
 * a node can change. If the file names no GPU, there is no device.
 *
 * The library also has the name libnvidia-ml.so.1; fake_nvml.c has the answers of NVML.
 *
 * When the library is unloaded, it appends one line to the file in FAKECUDA_REPORT, with the
 * resources that are still held and the misuses. fakecuda.h declares its functions for tests.
 *
 * A call that releases something counts as done even if it was made to fail, because the caller can
 * only continue.
 */
#include "tests/fakecuda/fakecuda.h"

#include "base/units.h"
#include "gpu/sim/sim_desc.h"
#include "tests/fakecuda/fake_driver.h"
#include "tests/fakecuda/fake_state.h"
#include "tests/fakecuda/fakecuda_script.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CONTROL_BYTES = 1 << 16 };

#define BASE_VA   ((uint64_t)1 << 44)
#define DEVICE_VA ((uint64_t)1 << 45) /* distance between the bases of two GPUs */

struct fake fake = {.current = -1};

/* ---- control ---- */

int fakecuda_start(const char *control)
{
    const char *const visible = getenv("CUDA_VISIBLE_DEVICES");
    const char *const order = getenv("CUDA_DEVICE_ORDER");

    fake_free_all();
    if (control_parse(control, &fake.control) != 0)
        return -1;
    if (!fake.control.mig)
        control_see(&fake.control, visible, order);
    for (uint32_t i = 0; i < fake.control.gpu_count; i++) {
        struct fake_device *d = &fake.devices[i];
        d->base_va = BASE_VA + i * DEVICE_VA;
        d->next_va = d->base_va;
        d->machine = sim_machine_new(&fake.control.gpus[i]);
        if (!d->machine)
            abort();
    }
    return 0;
}

void fakecuda_report(struct fakecuda_report *out)
{
    const struct fake_handle *handles = fake.handles.items;
    *out = fake.report;
    for (uint32_t i = 0; i < fake.control.gpu_count; i++)
        out->contexts += fake.devices[i].retains > 0;
    out->modules = fake.modules;
    out->streams = (uint32_t)fake.streams.count;
    out->allocations = (uint32_t)fake.allocs.count;
    out->reservations = (uint32_t)fake.ranges.count;
    out->mappings = (uint32_t)fake.maps.count;
    out->events = (uint32_t)fake.events.count;
    for (size_t i = 0; i < fake.handles.count; i++)
        out->handles += !handles[i].released || handles[i].maps > 0;
}

uint64_t fakecuda_uses(const char *call)
{
    for (uint32_t i = 0; i < fake.use_count; i++) {
        if (strcmp(fake.uses[i].call, call) == 0)
            return fake.uses[i].count;
    }
    return 0;
}

static const char *read_control(const char *path)
{
    static char text[CONTROL_BYTES];
    FILE *const f = fopen(path, "re");
    const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;

    if (f)
        (void)fclose(f);
    text[n] = '\0';
    return n > 0 ? text : "fail=cuInit=100";
}

static pid_t loaded_by;

static void __attribute__((constructor)) load(void)
{
    loaded_by = getpid();
    const char *control = getenv("FAKECUDA");
    if (control && control[0] == '@')
        control = read_control(control + 1);
    if (fakecuda_start(control ? control : "") != 0)
        abort();
}

static void __attribute__((destructor)) unload(void)
{
    const char *path = getenv("FAKECUDA_REPORT");
    FILE *f = path ? fopen(path, "ae") : NULL;
    if (getpid() == loaded_by) /* the child of a fork has no thread that runs launches */
        fakecuda_drain();
    if (f) {
        struct fakecuda_report r;
        fakecuda_report(&r);
        (void)fprintf(f,
                      "pid=%d calls=%llu launches=%u contexts=%u modules=%u streams=%u "
                      "allocations=%u handles=%u reservations=%u mappings=%u bytes=%llu "
                      "most_bytes=%llu misuses=%u %s\n",
                      (int)getpid(), (unsigned long long)r.calls, r.launches, r.contexts, r.modules,
                      r.streams, r.allocations, r.handles, r.reservations, r.mappings,
                      (unsigned long long)r.device_bytes, (unsigned long long)r.most_device_bytes,
                      r.misuses, r.first_misuse);
        (void)fclose(f);
    }
    fake_free_all();
}

/* ---- first steps of every call ---- */

cu_result fake_misuse(cu_result r, const char *format, ...)
{
    if (fake.report.misuses++ == 0) {
        va_list args;
        va_start(args, format);
        (void)vsnprintf(fake.report.first_misuse, sizeof fake.report.first_misuse, format, args);
        va_end(args);
    }
    return r;
}

/* A tool may call functions about devices on another thread. */
uint64_t fake_count_use(const char *call)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    uint64_t count;
    uint32_t i = 0;

    pthread_mutex_lock(&lock);
    while (i < fake.use_count && strcmp(fake.uses[i].call, call) != 0)
        i++;
    if (i == fake.use_count) {
        if (fake.use_count == FAKE_MAX_CALLS)
            abort();
        fake.uses[fake.use_count++] = (struct fake_use){.call = call};
    }
    count = ++fake.uses[i].count;
    pthread_mutex_unlock(&lock);
    return count;
}

static void hang(int ms)
{
    if (ms > 0) {
        (void)nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L},
                        NULL);
        return;
    }
    for (;;)
        (void)pause();
}

static bool loses_context(cu_result r)
{
    return (r >= CU_ERROR_ILLEGAL_ADDRESS && r <= CU_ERROR_LAUNCH_FAILED) ||
           r == CU_ERROR_ECC_UNCORRECTABLE || r == CU_ERROR_CONTAINED;
}

static const struct fault *find_fault(enum fault_kind kind, const char *call, int gpu, uint64_t use)
{
    const struct fault *f = control_fault(&fake.control, kind, call, -1, use);
    if (!f)
        f = control_fault(&fake.control, kind, "*", -1, fake.report.calls);
    if (!f && gpu >= 0)
        f = control_fault(&fake.control, kind, call, gpu, use);
    return f || gpu < 0 ? f : control_fault(&fake.control, kind, "*", gpu, fake.report.calls);
}

/* Returns the number of the GPU of a device, by PCI address. */
static int number_of(cu_device device)
{
    int number = -1;
    for (int i = 0; i <= fake.control.board_of[device]; i++)
        number += fake.control.boards[i].parent < 0;
    return number;
}

static cu_result enter(const char *call, int gpu)
{
    uint64_t use = fake_count_use(call);
    (void)__atomic_add_fetch(&fake.report.calls, 1, __ATOMIC_RELAXED);
    if (find_fault(FAULT_CRASH, call, gpu, use))
        abort();
    const struct fault *f = find_fault(FAULT_HANG, call, gpu, use);
    if (f)
        hang(f->value);
    if (fake.sticky != CU_SUCCESS)
        return fake.sticky;
    f = find_fault(FAULT_FAIL, call, gpu, use);
    if (!f)
        return CU_SUCCESS;
    fake.report.faults++;
    if (loses_context(f->value))
        fake.sticky = f->value;
    return f->value;
}

cu_result fake_enter(const char *call)
{
    return enter(call, fake.current >= 0 ? number_of(fake.current) : -1);
}

/* ---- the driver and its devices ---- */

cu_result cuInit(unsigned flags)
{
    cu_result r = fake_enter("cuInit");
    if (r != CU_SUCCESS)
        return r;
    if (flags != 0)
        return fake_misuse(CU_ERROR_INVALID_VALUE, "cuInit with flags");
    fake.initialised = true;
    fake_inject();
    return CU_SUCCESS;
}

cu_result cuDriverGetVersion(int *version)
{
    cu_result r = fake_enter("cuDriverGetVersion");
    *version = fake.control.driver_version;
    return r;
}

cu_result cuGetErrorName(cu_result r, const char **name)
{
    switch (r) {
    case CU_ERROR_OUT_OF_MEMORY:
        *name = "CUDA_ERROR_OUT_OF_MEMORY";
        return CU_SUCCESS;
    case CU_ERROR_LAUNCH_FAILED:
        *name = "CUDA_ERROR_LAUNCH_FAILED";
        return CU_SUCCESS;
    case CU_ERROR_ILLEGAL_ADDRESS:
        *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
        return CU_SUCCESS;
    default:
        *name = NULL;
        return CU_ERROR_INVALID_VALUE;
    }
}

cu_result cuGetErrorString(cu_result r, const char **text)
{
    *text = r == CU_SUCCESS ? "no error" : "told to fail, by the stand-in driver";
    return CU_SUCCESS;
}

/* This is the first step of every call that needs cuInit. */
static cu_result enter_initialised(const char *call)
{
    cu_result r = fake_enter(call);
    if (r == CU_SUCCESS && !fake.initialised)
        r = fake_misuse(CU_ERROR_NOT_INITIALIZED, "%s before cuInit", call);
    return r;
}

static cu_result enter_device(const char *call, cu_device device)
{
    const bool is_there = device >= 0 && (uint32_t)device < fake.control.gpu_count;
    cu_result r = enter(call, is_there ? number_of(device) : -1);
    if (r == CU_SUCCESS && !fake.initialised)
        r = fake_misuse(CU_ERROR_NOT_INITIALIZED, "%s before cuInit", call);
    if (r == CU_SUCCESS && !is_there)
        r = fake_misuse(CU_ERROR_INVALID_DEVICE, "%s for device %d", call, device);
    return r;
}

cu_result cuDeviceGetCount(int *count)
{
    cu_result r = enter_initialised("cuDeviceGetCount");
    if (r == CU_SUCCESS)
        *count = (int)fake.control.gpu_count;
    return r;
}

cu_result cuDeviceGet(cu_device *device, int ordinal)
{
    cu_result r = enter_device("cuDeviceGet", ordinal);
    if (r == CU_SUCCESS)
        *device = ordinal;
    return r;
}

/* The stand-in has the same identity as the simulated source has for the same description. */
static struct gpu_identity identity_of(cu_device device)
{
    struct gpu_identity id;

    sim_gpu_identity(&fake.control.gpus[device], 0, &id);
    return id;
}

cu_result cuDeviceGetName(char *name, int length, cu_device device)
{
    cu_result r = enter_device("cuDeviceGetName", device);
    if (r == CU_SUCCESS && length > 0)
        (void)snprintf(name, (size_t)length, "%s", identity_of(device).name);
    return r;
}

/* Returns the name of a GPU; an instance has the name of its GPU. */
static void make_uuid(int board, struct cu_uuid *out)
{
    char text[64];

    control_uuid(&fake.control, (uint32_t)board, out->bytes, text);
}

static int whole_of(cu_device device)
{
    const int board = fake.control.board_of[device];
    const int parent = fake.control.boards[board].parent;

    return parent >= 0 ? parent : board;
}

cu_result cuDeviceGetUuid(struct cu_uuid *uuid, cu_device device)
{
    cu_result r = enter_device("cuDeviceGetUuid", device);
    if (r == CU_SUCCESS)
        make_uuid(fake.control.boards[fake.control.board_of[device]].is_part
                      ? fake.control.board_of[device]
                      : whole_of(device),
                  uuid);
    return r;
}

cu_result cuDeviceGetUuid_v2(struct cu_uuid *uuid, cu_device device)
{
    cu_result r = enter_device("cuDeviceGetUuid_v2", device);
    if (r == CU_SUCCESS)
        make_uuid(fake.control.board_of[device], uuid);
    uuid->bytes[0] ^= fake.control.mig;
    return r;
}

cu_result cuDeviceTotalMem_v2(size_t *bytes, cu_device device)
{
    cu_result r = enter_device("cuDeviceTotalMem", device);
    if (r == CU_SUCCESS)
        *bytes = fake.control.gpus[device].memory_bytes;
    return r;
}

static int attribute_of(const struct sim_desc *d, int attribute)
{
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_INTEGRATED:
        return fake.control.unified;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
        return fake.control.compute_mode;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        return (int)d->sm_count;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
        return (int)d->l2_cache_bytes;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        return (int)d->cc_major;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        return (int)d->cc_minor;
    case CU_DEVICE_ATTRIBUTE_SHARED_MEMORY_PER_MULTIPROCESSOR:
        return FAKE_SHARED_PER_SM;
    case CU_DEVICE_ATTRIBUTE_SHARED_MEMORY_PER_BLOCK_OPTIN:
        return FAKE_SHARED_PER_BLOCK;
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
        return d->clusters.largest > 0;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT:
        return !fake.control.no_vmm;
    case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS:
        return d->kinds[MEMORY_HOST_PAGEABLE].gbps > 0;
    case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES:
        return fake.control.ats;
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
        return d->kinds[MEMORY_MANAGED_HOST].gbps > 0;
    case CU_DEVICE_ATTRIBUTE_MPS_ENABLED:
        return fake.control.mps_clients > 0;
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
        return 0;
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT:
        return d->kinds[MEMORY_HOST_VIRTUAL].gbps > 0;
    case CU_DEVICE_ATTRIBUTE_LOCALITY_DOMAIN_COUNT:
        return (int)d->domains;
    case CU_DEVICE_ATTRIBUTE_LOCALITY_DOMAIN_MULTIPROCESSOR_COUNT:
        return (int)d->domain_sms;
    default:
        return -1;
    }
}

cu_result cuDeviceGetAttribute(int *value, int attribute, cu_device device)
{
    cu_result r = enter_device("cuDeviceGetAttribute", device);
    if (r != CU_SUCCESS)
        return r;
    *value = attribute_of(&fake.control.gpus[device], attribute);
    if (attribute >= CU_DEVICE_ATTRIBUTE_LOCALITY_DOMAIN_COUNT && *value == 0)
        return CU_ERROR_INVALID_VALUE; /* like a driver before CUDA 13.4 */
    if (*value < 0)
        return fake_misuse(CU_ERROR_INVALID_VALUE, "attribute %d is not known here", attribute);
    return CU_SUCCESS;
}

cu_result cuDeviceGetPCIBusId(char *id, int length, cu_device device)
{
    cu_result r = enter_device("cuDeviceGetPCIBusId", device);
    if (r == CU_SUCCESS && length > 0)
        (void)snprintf(id, (size_t)length, "0000:%02x:00.0",
                       (unsigned)fake.control.boards[whole_of(device)].bus);
    return r;
}

/* ---- contexts ---- */

cu_result cuDevicePrimaryCtxRetain(cu_context *context, cu_device device)
{
    cu_result r = enter_device("cuDevicePrimaryCtxRetain", device);
    if (r != CU_SUCCESS)
        return r;
    if (fake.devices[device].retains++ == 0)
        fake_report_context(true, device);
    *context = (cu_context)(void *)&fake.devices[device];
    return CU_SUCCESS;
}

cu_result cuDevicePrimaryCtxRelease_v2(cu_device device)
{
    cu_result r = fake_enter("cuDevicePrimaryCtxRelease");
    if (device < 0 || (uint32_t)device >= fake.control.gpu_count ||
        fake.devices[device].retains == 0)
        return fake_misuse(CU_ERROR_INVALID_CONTEXT, "a context is released that is not there");
    if (--fake.devices[device].retains > 0)
        return r;
    fakecuda_drain();
    fake_report_context(false, device);
    if (fake.current == device)
        fake.current = -1;
    return r;
}

/* Everything in the context is lost; the next call makes another context. */
cu_result cuDevicePrimaryCtxReset_v2(cu_device device)
{
    FAKE_CALL("cuDevicePrimaryCtxReset_v2");
    cu_result r = enter_device("cuDevicePrimaryCtxReset", device);
    if (r != CU_SUCCESS)
        return r;
    fake_report_context(false, device);
    fake_script_reset();
    fake_forget_allocs(device);
    fake.sticky = CU_SUCCESS;
    fake_report_context(true, device);
    return CU_SUCCESS;
}

cu_result cuCtxSetCurrent(cu_context context)
{
    cu_result r = enter_initialised("cuCtxSetCurrent");
    if (r != CU_SUCCESS)
        return r;
    if (!context) {
        fake.current = -1;
        return CU_SUCCESS;
    }
    for (uint32_t i = 0; i < fake.control.gpu_count; i++) {
        if ((void *)context == (void *)&fake.devices[i] && fake.devices[i].retains > 0) {
            fake.current = (int)i;
            return CU_SUCCESS;
        }
    }
    return fake_misuse(CU_ERROR_INVALID_CONTEXT, "a context is made current that is not there");
}
