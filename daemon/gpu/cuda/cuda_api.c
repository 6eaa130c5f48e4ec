/* cuda_api.c: loads the driver's library and resolves its symbols. See cuda_api.h. */
#include "gpu/cuda/cuda_api.h"

#include "base/assert.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* The version of the oldest driver that has every required symbol and supports sm_75: CUDA 10.2. */
enum { OLDEST_DRIVER = 10020 };

#define SYMBOL(need, function, version, ...)                                                       \
    {offsetof(struct cuda_api, function), #function version, need},

static const struct {
    size_t slot; /* offset of the pointer in struct cuda_api */
    const char *name;
    enum cuda_need need;
} symbols[] = {CUDA_FUNCTIONS(SYMBOL)};

static enum status resolve(struct cuda_api *api, struct err *err)
{
    api->has_vmm = 1;
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *pointer = dlsym(api->library, symbols[i].name);
        if (!pointer && symbols[i].need == CUDA_REQUIRED)
            return err_set(err, STATUS_DRIVER_TOO_OLD,
                           "the driver library lacks %s; CUDA %d.%d or later is needed",
                           symbols[i].name, OLDEST_DRIVER / 1000, OLDEST_DRIVER % 1000 / 10);
        if (!pointer && symbols[i].need == CUDA_VMM)
            api->has_vmm = 0;
        /* dlsym returns an object pointer. POSIX guarantees that it can hold a function pointer. */
        memcpy((char *)api + symbols[i].slot, &pointer, sizeof pointer);
    }
    return STATUS_OK;
}

enum status cuda_api_open(const char *name, struct cuda_api *out, struct err *err)
{
    enum status s;
    struct cuda_api api = {.library = NULL};

    name = name ? name : "libcuda.so.1";
    api.library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!api.library) {
        s = err_set(err, STATUS_NO_DRIVER, "cannot load the driver library: %s", dlerror());
        goto out;
    }
    api.is_stand_in = dlsym(api.library, "fakecuda_start") != NULL;
    s = resolve(&api, err);
    if (s != STATUS_OK)
        goto out;
    REACH_ASSERT(api.cuDriverGetVersion && api.cuInit);
    s = CUDA_CALL(&api, err, cuDriverGetVersion, &api.driver_version);
    if (s != STATUS_OK)
        goto out;
    if (api.driver_version < OLDEST_DRIVER) {
        s = err_set(err, STATUS_DRIVER_TOO_OLD,
                    "the driver offers CUDA %d.%d; %d.%d or later is needed",
                    api.driver_version / 1000, api.driver_version % 1000 / 10, OLDEST_DRIVER / 1000,
                    OLDEST_DRIVER % 1000 / 10);
        goto out;
    }
    s = CUDA_CALL(&api, err, cuInit, 0);
out:
    if (s != STATUS_OK)
        cuda_api_close(&api);
    *out = api;
    return s;
}

void cuda_api_close(struct cuda_api *api)
{
    if (api->library)
        dlclose(api->library);
    *api = (struct cuda_api){.library = NULL};
}

static enum status status_of(cu_result r)
{
    switch (r) {
    case CU_SUCCESS:
        return STATUS_OK;
    case CU_ERROR_OUT_OF_MEMORY:
        return STATUS_GPU_NO_MEMORY;
    case CU_ERROR_NO_DEVICE:
    case CU_ERROR_NOT_INITIALIZED:
    case CU_ERROR_SYSTEM_NOT_READY:
    case CU_ERROR_SYSTEM_DRIVER_MISMATCH:
        return STATUS_NO_DRIVER;
    case CU_ERROR_DEVICE_UNAVAILABLE:
        return STATUS_GPU_BUSY;
    case CU_ERROR_NO_BINARY_FOR_GPU:
    case CU_ERROR_UNSUPPORTED_PTX_VERSION:
    case CU_ERROR_NOT_SUPPORTED:
    case CU_ERROR_PEER_ACCESS_UNSUPPORTED:
        return STATUS_NOT_SUPPORTED;
    case CU_ERROR_NOT_PERMITTED:
    case CU_ERROR_OPERATING_SYSTEM:
        return STATUS_NOT_PERMITTED;
    case CU_ERROR_ECC_UNCORRECTABLE:
    case CU_ERROR_CONTAINED:
        return STATUS_GPU_LOST;
    default:
        /* After an error from 700 to 719 the context is corrupt, and every later call of this
         * process fails too. */
        return r >= CU_ERROR_ILLEGAL_ADDRESS && r <= CU_ERROR_LAUNCH_FAILED ? STATUS_GPU_LOST
                                                                            : STATUS_GPU_FAULT;
    }
}

enum status cuda_api_check(const struct cuda_api *api, cu_result r, const char *call,
                           struct err *err)
{
    const char *const hides = r == CU_ERROR_NO_DEVICE ? getenv("CUDA_VISIBLE_DEVICES") : NULL;
    const char *name = NULL;
    const char *text = NULL;
    if (r == CU_SUCCESS)
        return STATUS_OK;
    if (api->cuGetErrorName && api->cuGetErrorName(r, &name) != CU_SUCCESS)
        name = NULL;
    if (api->cuGetErrorString && api->cuGetErrorString(r, &text) != CU_SUCCESS)
        text = NULL;
    return err_set(err, status_of(r), "%s: %s (%d): %s%s%s%s", call, name ? name : "unknown error",
                   r, text ? text : "no text", hides ? "; CUDA_VISIBLE_DEVICES is \"" : "",
                   hides ? hides : "", hides ? "\"" : "");
}
