/* alloc_driver.c: loads the functions of the driver by a table of symbols, and converts results to
 * messages. See alloc_driver.h. */
#include "clients/cuda/alloc/alloc_driver.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SYMBOL(function, version, ...) {offsetof(struct alloc_driver, function), #function version},

static const struct {
    size_t slot;
    const char *name;
} symbols[] = {DRV_FUNCTIONS(SYMBOL)};

void alloc_fail_text(struct reach_alloc_error *error, enum reach_alloc_status status,
                     const char *format, ...)
{
    va_list args;

    if (!error)
        return;
    *error = (struct reach_alloc_error){.status = status};
    va_start(args, format);
    (void)vsnprintf(error->text, sizeof(error->text), format, args);
    va_end(args);
}

/* The meaning of each CUresult. The last row, which has none, applies to all others. */
static const struct {
    int result;
    enum reach_alloc_status status;
    const char *hint;
} meanings[] = {
    {2, REACH_ALLOC_NO_MEMORY, "Free memory, or ask for less."},
    {3, REACH_ALLOC_NO_DRIVER, "Check the installation of the driver with nvidia-smi."},
    {100, REACH_ALLOC_NO_DRIVER, "Check CUDA_VISIBLE_DEVICES, and nvidia-smi."},
    {101, REACH_ALLOC_NO_DRIVER, "Check the device's number, and CUDA_VISIBLE_DEVICES."},
    {712, REACH_ALLOC_INVALID_ARGUMENT,
     "These pages, or the first or the last page that other memory shares, are already pinned."},
    {800, REACH_ALLOC_NOT_SUPPORTED, "Use another kind of memory."},
    {801, REACH_ALLOC_NOT_SUPPORTED, "Use another kind of memory."},
    {0, REACH_ALLOC_DRIVER_FAILED, "After an error of a kernel every call of the process fails."},
};

enum reach_alloc_status alloc_driver_check(const struct alloc_driver *driver, int result,
                                           const char *call, struct reach_alloc_error *error)
{
    const char *name = NULL;
    const char *text = NULL;
    size_t i = 0;

    if (result == 0)
        return REACH_ALLOC_OK;
    while (meanings[i].result != 0 && meanings[i].result != result)
        i++;
    if (driver->cuGetErrorName(result, &name) != 0)
        name = NULL;
    if (driver->cuGetErrorString(result, &text) != 0)
        text = NULL;
    alloc_fail_text(error, meanings[i].status, "%s failed: %s (%d): %s. %s", call,
                    name ? name : "unknown error", result, text ? text : "no text",
                    meanings[i].hint);
    if (error) {
        error->driver_result = result;
        (void)snprintf(error->call, sizeof(error->call), "%s", call);
    }
    return meanings[i].status;
}

enum reach_alloc_status alloc_driver_open(const char *name, struct alloc_driver *out,
                                          struct reach_alloc_error *error)
{
    enum reach_alloc_status s;
    struct alloc_driver driver = {.library = NULL};

    name = name ? name : "libcuda.so.1";
    driver.library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!driver.library)
        return alloc_fail(error, REACH_ALLOC_NO_DRIVER,
                          "cannot load %s: %s. Install the NVIDIA driver.", name, dlerror());
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *pointer = dlsym(driver.library, symbols[i].name);
        if (!pointer) {
            s = alloc_fail(error, REACH_ALLOC_NO_DRIVER,
                           "%s lacks %s. Install a driver of CUDA 11.2 or later.", name,
                           symbols[i].name);
            goto out;
        }
        /* POSIX guarantees that an object pointer fits a function pointer. */
        memcpy((char *)&driver + symbols[i].slot, &pointer, sizeof pointer);
    }
    s = alloc_driver_check(&driver, driver.cuInit(0), "cuInit", error);
out:
    if (s != REACH_ALLOC_OK)
        alloc_driver_close(&driver);
    *out = driver;
    return s;
}

void alloc_driver_close(struct alloc_driver *driver)
{
    if (driver->library)
        (void)dlclose(driver->library);
    driver->library = NULL;
}
