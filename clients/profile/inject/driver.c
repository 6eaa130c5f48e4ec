/* driver.c: queries of the driver, which is never loaded here: the program has loaded it. */
#include "clients/profile/inject/driver.h"

#include "clients/profile/inject/abi.h"
#include "clients/profile/inject/huge_pages.h"
#include "clients/profile/inject/memory.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* CUdevice_attribute, CUpointer_attribute, CUmem_range_attribute, CUmemorytype */
enum { MULTIPROCESSOR_COUNT = 16 };
enum {
    POINTER_MEMORY_TYPE = 2,
    POINTER_IS_MANAGED = 8,
    POINTER_DEVICE = 9,
    POINTER_RANGE_START = 11,
    POINTER_RANGE_SIZE = 12
};
enum { RANGE_PREFERRED_LOCATION = 2, RANGE_LAST_PREFETCH_LOCATION = 4 };
enum { MEMORY_IS_HOST = 1 };
enum { AT_HOST = -1 }; /* CU_DEVICE_CPU */

static struct {
    int (*get_count)(int *);
    int (*get)(int *, int);
    int (*get_name)(char *, int, int);
    int (*get_uuid)(unsigned char *, int);
    int (*get_attribute)(int *, int, int);
    int (*set_context)(void *);
    int (*pointer)(void *, int, uint64_t);
    int (*range)(void *, size_t, int, uint64_t, size_t);
} cu;

static bool load(void)
{
    static const struct {
        void *at;
        const char *name;
    } functions[] = {
        {&cu.get_count, "cuDeviceGetCount"},         {&cu.get, "cuDeviceGet"},
        {&cu.get_name, "cuDeviceGetName"},           {&cu.get_uuid, "cuDeviceGetUuid_v2"},
        {&cu.get_attribute, "cuDeviceGetAttribute"}, {&cu.set_context, "cuCtxSetCurrent"},
        {&cu.pointer, "cuPointerGetAttribute"},      {&cu.range, "cuMemRangeGetAttribute"}};
    void *const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    for (size_t i = 0; library && i < sizeof functions / sizeof functions[0]; i++) {
        void *const found = dlsym(library, functions[i].name);
        memcpy(functions[i].at, &found, sizeof found);
    }
    return library && cu.get_count && cu.get && cu.get_name && cu.get_uuid && cu.get_attribute;
}

static void describe(int device, FILE *out)
{
    char name[128] = "";
    unsigned char id[16] = {0};
    int sms = 0;
    (void)cu.get_name(name, sizeof name, device);
    (void)cu.get_uuid(id, device);
    (void)cu.get_attribute(&sms, MULTIPROCESSOR_COUNT, device);
    (void)fprintf(out, "{\"uuid\":\"GPU-");
    for (int i = 0; i < 16; i++)
        (void)fprintf(out, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", id[i]);
    (void)fprintf(out, "\",\"name\":\"%s\",\"sms\":%d}", name, sms);
}

char *driver_describe_gpus(void)
{
    char *text = NULL;
    size_t bytes;
    int count = 0, device;
    if (!load() || cu.get_count(&count) != 0)
        return NULL;
    FILE *const out = open_memstream(&text, &bytes);
    if (!out)
        return NULL;
    (void)fprintf(out, "[");
    for (int i = 0; i < count && cu.get(&device, i) == 0; i++) {
        (void)fprintf(out, "%s", i ? "," : "");
        describe(device, out);
    }
    (void)fprintf(out, "]");
    (void)fclose(out);
    return text;
}

static void find_allocation(uint64_t address)
{
    uint64_t start = 0;
    size_t bytes = 0;
    uint32_t type = 0, is_managed = 0;
    int device = 0;
    if (cu.pointer(&start, POINTER_RANGE_START, address) != 0 ||
        cu.pointer(&bytes, POINTER_RANGE_SIZE, address) != 0 || bytes == 0)
        return;
    (void)cu.pointer(&type, POINTER_MEMORY_TYPE, address);
    (void)cu.pointer(&is_managed, POINTER_IS_MANAGED, address);
    (void)cu.pointer(&device, POINTER_DEVICE, address);
    memory_allocated(device, start, bytes,
                     is_managed               ? "managed"
                     : type == MEMORY_IS_HOST ? "registered"
                                              : "virtual");
}

static const char *location(const struct allocation *a)
{
    int32_t at = 0;
    if (cu.range(&at, sizeof at, RANGE_PREFERRED_LOCATION, a->address, a->bytes) == 0 &&
        at >= AT_HOST)
        return at == AT_HOST ? "host" : "device";
    if (cu.range(&at, sizeof at, RANGE_LAST_PREFETCH_LOCATION, a->address, a->bytes) == 0 &&
        at >= AT_HOST)
        return at == AT_HOST ? "host" : "device";
    return "unknown";
}

/* Returns whether an allocation contains a part of one of the sorted pages. */
static bool is_touched(const struct allocation *a, const uint64_t *pages, size_t count)
{
    const uint64_t first = a->address >> PROFILE_PAGE_SHIFT;
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (pages[middle] < first)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && pages[low] <= (a->address + a->bytes - 1) >> PROFILE_PAGE_SHIFT;
}

static bool is_in_huge_pages(const struct allocation *a)
{
    FILE *const smaps = fopen("/proc/self/smaps", "re");
    const double share = smaps ? huge_pages_share(smaps, a->address, a->bytes) : 0;
    if (smaps)
        (void)fclose(smaps);
    return share >= 0.5;
}

void driver_locate(void *context, const uint64_t *pages, size_t count)
{
    struct allocation a;
    if ((!cu.pointer && !load()) || !cu.set_context || cu.set_context(context) != 0)
        return;
    for (size_t i = 0; cu.pointer && i < count; i++) {
        /* An allocation may begin in the middle of a page: its first byte is not known, so the
         * page's last byte is tried as well. */
        const uint64_t address = pages[i] << PROFILE_PAGE_SHIFT,
                       last = address + (1u << PROFILE_PAGE_SHIFT) - 1;
        if (!memory_is_known(address) && !memory_is_known(last))
            find_allocation(address);
        if (!memory_is_known(address) && !memory_is_known(last))
            find_allocation(last);
    }
    for (uint32_t i = 0; memory_get(i, &a); i++) {
        if (!a.freed && cu.range && strcmp(a.kind, "managed") == 0)
            memory_locate(a.address, a.kind, location(&a));
        else if (!a.freed && strcmp(a.kind, "registered") == 0 && strcmp(a.at, "unknown") == 0 &&
                 is_touched(&a, pages, count)) /* smaps is long */
            memory_locate(a.address, is_in_huge_pages(&a) ? "registered-huge" : a.kind, "host");
    }
}
