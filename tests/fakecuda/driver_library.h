/* driver_library.h: opens the stand-in driver in the folder of a test program, for its control
 * functions (fakecuda.h). */
#pragma once

#include "tests/fakecuda/fakecuda.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

static char driver_library[4096]; /* its path */
static fakecuda_start_fn *driver_start;
static fakecuda_report_fn *driver_report;
static fakecuda_uses_fn *driver_uses;

static inline void driver_resolve(void *handle, const char *name, void *slot)
{
    void *const symbol = dlsym(handle, name);
    if (!symbol)
        fail_msg("%s", dlerror());
    memcpy(slot, &symbol, sizeof symbol);
}

/* Group setup of a test: `*state` is the handle of the library, or -1 if it cannot be opened. The
 * handle is held for the whole test, so that the counters of the driver are kept between the
 * openings by the code under test. */
static inline int driver_load(void **state)
{
    const ssize_t n = readlink("/proc/self/exe", driver_library, sizeof driver_library - 32);
    void *handle;

    if (n <= 0)
        return -1;
    driver_library[n] = '\0';
    strcpy(strrchr(driver_library, '/'), "/libcuda.so.1");
    handle = dlopen(driver_library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        print_error("%s\n", dlerror());
        return -1;
    }
    driver_resolve(handle, "fakecuda_start", &driver_start);
    driver_resolve(handle, "fakecuda_report", &driver_report);
    driver_resolve(handle, "fakecuda_uses", &driver_uses);
    *state = handle;
    return 0;
}

static inline int driver_unload(void **state)
{
    return dlclose(*state);
}
