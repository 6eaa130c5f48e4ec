/* For docs/methods.md. */
/* driver_costs.cu: measures the driver calls that a measurement makes often or with much memory. It
 * prints one line per call: its name, the number of calls, and the median and the maximum of the
 * microseconds per call. With them the times of `reachd --log-level debug` can be attributed. It
 * needs 2 GiB of device memory and 4 GiB of host memory. */
#include "tests/gpu/common.cuh"
#include <cuda.h>

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

/* Returns a function of the driver. In cuda.h the name is a macro for the name with the version, so
 * the argument has to be expanded. */
#define VERSIONED(name) DRIVER(name)

static const size_t MIB = 1 << 20;
static const size_t GIB = 1 << 30;
static const size_t HOST_BYTES = 768 * MIB; /* host memory that reachd allocates of one kind at depth full */
enum { OFTEN = 200, SLOTS = 1024 };

static CUdevice device;

static double now_us()
{
    using namespace std::chrono;
    return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

/* Prints the line of one driver function after `count` calls. */
static void report(const char *name, std::vector<double> us)
{
    std::sort(us.begin(), us.end());
    printf("%-58s %5zu calls, us: median %10.1f, most %10.1f, all %10.1f\n", name, us.size(),
           us[us.size() / 2], us.back(), [&] {
               double sum = 0;
               for (double u : us)
                   sum += u;
               return sum;
           }());
}

static void measure(const char *name, int count, const std::function<void(int)> &call)
{
    std::vector<double> us;

    for (int i = 0; i < count; i++) {
        const double start = now_us();
        call(i);
        us.push_back(now_us() - start);
    }
    report(name, us);
}

static CUmemAllocationProp device_memory()
{
    CUmemAllocationProp prop;

    memset(&prop, 0, sizeof prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = device;
    return prop;
}

static CUmemAccessDesc device_access()
{
    CUmemAccessDesc access;

    memset(&access, 0, sizeof access);
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return access;
}

/* ---- opening ---- */

static CUcontext open_context()
{
    CUcontext context = NULL;

    measure("cuInit", 1, [](int) { CHECK(DRIVER(cuInit)(0)); });
    CHECK(DRIVER(cuDeviceGet)(&device, 0));
    measure("cuDevicePrimaryCtxRetain", 1,
            [&](int) { CHECK(DRIVER(cuDevicePrimaryCtxRetain)(&context, device)); });
    CHECK(DRIVER(cuCtxSetCurrent)(context));
    return context;
}

/* ---- the virtual memory API ---- */

static void map_one_by_one(CUmemGenericAllocationHandle handle, size_t slot, CUdeviceptr base,
                           size_t distance)
{
    const auto map = DRIVER(cuMemMap);
    const auto set = DRIVER(cuMemSetAccess);
    const CUmemAccessDesc access = device_access();

    measure("  cuMemMap", OFTEN,
            [&](int i) { CHECK(map(base + i * distance, slot, 0, handle, 0)); });
    measure("  cuMemSetAccess of one slot", OFTEN,
            [&](int i) { CHECK(set(base + i * distance, slot, &access, 1)); });
    measure("  cuMemUnmap of one slot", OFTEN,
            [&](int i) { CHECK(DRIVER(cuMemUnmap)(base + i * distance, slot)); });
}

static void map_side_by_side(CUmemGenericAllocationHandle handle, size_t slot, CUdeviceptr base)
{
    const auto map = DRIVER(cuMemMap);
    const CUmemAccessDesc access = device_access();

    measure("  cuMemMap, slots side by side", SLOTS,
            [&](int i) { CHECK(map(base + i * slot, slot, 0, handle, 0)); });
    measure("  cuMemSetAccess of 1024 slots", 1,
            [&](int) { CHECK(DRIVER(cuMemSetAccess)(base, SLOTS * slot, &access, 1)); });
    measure("  cuMemUnmap of 1024 slots", 1,
            [&](int) { CHECK(DRIVER(cuMemUnmap)(base, SLOTS * slot)); });
}

static void mapping(size_t slot)
{
    const CUmemAllocationProp prop = device_memory();
    const size_t distance = 32 * MIB > slot ? 32 * MIB : slot;
    const size_t range = SLOTS * distance;
    CUmemGenericAllocationHandle handle;
    CUdeviceptr base;

    printf("a handle of %zu MiB\n", slot / MIB);
    measure("  cuMemCreate", 1, [&](int) { CHECK(DRIVER(cuMemCreate)(&handle, slot, &prop, 0)); });
    measure("  cuMemAddressReserve", 1,
            [&](int) { CHECK(DRIVER(cuMemAddressReserve)(&base, range, 0, 0, 0)); });
    map_one_by_one(handle, slot, base, distance);
    map_side_by_side(handle, slot, base);
    measure("  cuMemAddressFree", 1, [&](int) { CHECK(DRIVER(cuMemAddressFree)(base, range)); });
    measure("  cuMemRelease", 1, [&](int) { CHECK(DRIVER(cuMemRelease)(handle)); });
}

/* Tests whether a part of a handle may be mapped. If so, one handle serves runs of all lengths. */
static void partial_mapping()
{
    const CUmemAllocationProp prop = device_memory();
    const CUmemAccessDesc access = device_access();
    const size_t parts[][2] = {{0, 2 * MIB}, {2 * MIB, 2 * MIB}};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr base;

    CHECK(DRIVER(cuMemCreate)(&handle, 64 * MIB, &prop, 0));
    CHECK(DRIVER(cuMemAddressReserve)(&base, 64 * MIB, 0, 0, 0));
    for (const auto &part : parts) {
        const CUresult mapped = DRIVER(cuMemMap)(base, part[1], part[0], handle, 0);
        const CUresult set = mapped ? mapped : DRIVER(cuMemSetAccess)(base, part[1], &access, 1);
        printf("2 of 64 MiB of a handle from %zu MiB on: cuMemMap %d, cuMemSetAccess %d\n",
               part[0] / MIB, mapped, set);
        if (!mapped)
            CHECK(DRIVER(cuMemUnmap)(base, part[1]));
    }
    CHECK(DRIVER(cuMemAddressFree)(base, 64 * MIB));
    CHECK(DRIVER(cuMemRelease)(handle));
}

/* ---- launches and copies ---- */

static __global__ void nothing()
{
}

static __global__ void wait_a_little(uint64_t ns)
{
    uint64_t first, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(first));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - first < ns);
}

static void launches()
{
    static char copy[64 << 10];
    CUdeviceptr p;
    const auto synchronize = DRIVER(cuStreamSynchronize);

    CHECK(VERSIONED(cuMemAlloc)(&p, MIB));
    nothing<<<1, 32>>>();
    CHECK(synchronize(NULL));
    printf("launches and copies\n");
    measure("  launch and wait", OFTEN, [&](int) {
        nothing<<<132, 32>>>();
        CHECK(synchronize(NULL));
    });
    measure("  launch alone", OFTEN, [&](int) { nothing<<<132, 32>>>(); });
    CHECK(synchronize(NULL));
    measure("  cuStreamQuery", OFTEN, [&](int) { DRIVER(cuStreamQuery)(NULL); });
    measure("  cuMemsetD8 of 4 KiB", OFTEN, [&](int) { CHECK(VERSIONED(cuMemsetD8)(p, 0, 4096)); });
    measure("  cuMemcpyHtoD of 4 KiB", OFTEN,
            [&](int) { CHECK(VERSIONED(cuMemcpyHtoD)(p, copy, 4096)); });
    measure("  cuMemcpyDtoH of 4 bytes", OFTEN,
            [&](int) { CHECK(VERSIONED(cuMemcpyDtoH)(copy, p, 4)); });
    measure("  cuMemcpyDtoH of 64 KiB", OFTEN,
            [&](int) { CHECK(VERSIONED(cuMemcpyDtoH)(copy, p, sizeof copy)); });
    CHECK(VERSIONED(cuMemFree)(p));
}

/* ---- memory of the host ---- */

static void touch(void *p, size_t bytes)
{
    std::vector<std::thread> threads;
    const size_t each = bytes / 8;

    for (int t = 0; t < 8; t++)
        threads.emplace_back([=] {
            for (size_t at = 0; at < each; at += 4096)
                ((volatile char *)p)[t * each + at] = 0;
        });
    for (auto &t : threads)
        t.join();
}

static void pinned()
{
    void *p = NULL;

    measure("  cuMemHostAlloc", 1,
            [&](int) { CHECK(DRIVER(cuMemHostAlloc)(&p, HOST_BYTES, CU_MEMHOSTALLOC_DEVICEMAP)); });
    measure("  cuMemsetD8 of it", 1,
            [&](int) { CHECK(VERSIONED(cuMemsetD8)((CUdeviceptr)p, 0, HOST_BYTES)); });
    measure("  cuMemFreeHost", 1, [&](int) { CHECK(DRIVER(cuMemFreeHost)(p)); });
}

static void registered(bool huge)
{
    char *const p =
        (char *)mmap(NULL, HOST_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    printf(" pages that are %s\n", huge ? "huge" : "ordinary");
    if (p == MAP_FAILED)
        return;
    madvise(p, HOST_BYTES, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    measure("  first access, by 8 threads", 1, [&](int) { touch(p, HOST_BYTES); });
    measure("  cuMemHostRegister", 1, [&](int) {
        CHECK(VERSIONED(cuMemHostRegister)(p, HOST_BYTES, CU_MEMHOSTREGISTER_DEVICEMAP));
    });
    measure("  cuMemHostUnregister", 1, [&](int) { CHECK(DRIVER(cuMemHostUnregister)(p)); });
    measure("  munmap", 1, [&](int) { munmap(p, HOST_BYTES); });
}

static void managed()
{
    CUdeviceptr p;

    measure("  cuMemAllocManaged", 1,
            [&](int) { CHECK(DRIVER(cuMemAllocManaged)(&p, HOST_BYTES, CU_MEM_ATTACH_GLOBAL)); });
    measure("  first access, by 8 threads", 1, [&](int) { touch((void *)p, HOST_BYTES); });
    measure("  cuMemFree", 1, [&](int) { CHECK(VERSIONED(cuMemFree)(p)); });
}

/* ---- at the same time ---- */

/* Launches a kernel of 300 us while another thread makes `call`. If the driver delays the launches,
 * the call cannot be made beside probes. */
static void beside(const char *name, CUcontext context, const std::function<void()> &call)
{
    std::atomic<bool> ended(false);
    std::vector<double> us;
    double took = 0;
    std::thread other([&] {
        CHECK(DRIVER(cuCtxSetCurrent)(context));
        const double start = now_us();
        call();
        took = now_us() - start;
        ended = true;
    });

    while (!ended) {
        const double start = now_us();
        wait_a_little<<<132, 32>>>(300000);
        CHECK(DRIVER(cuStreamSynchronize)(NULL));
        us.push_back(now_us() - start);
    }
    other.join();
    printf("%s took %.1f us beside\n", name, took);
    report("  kernels of 300 us meanwhile", us);
}

static void together(CUcontext context)
{
    void *p = NULL;

    beside("nothing for 100 ms", context,
           [] { std::this_thread::sleep_for(std::chrono::milliseconds(100)); });
    beside("cuMemHostAlloc of 768 MiB", context,
           [&] { CHECK(DRIVER(cuMemHostAlloc)(&p, HOST_BYTES, CU_MEMHOSTALLOC_DEVICEMAP)); });
    beside("cuMemFreeHost", context, [&] { CHECK(DRIVER(cuMemFreeHost)(p)); });
    beside("2000 x cuMemMap of 2 MiB", context, [&] {
        const CUmemAllocationProp prop = device_memory();
        const CUmemAccessDesc access = device_access();
        CUmemGenericAllocationHandle handle;
        CUdeviceptr base;
        CHECK(DRIVER(cuMemCreate)(&handle, 2 * MIB, &prop, 0));
        CHECK(DRIVER(cuMemAddressReserve)(&base, 2000 * 2 * MIB, 0, 0, 0));
        for (size_t i = 0; i < 2000; i++)
            CHECK(DRIVER(cuMemMap)(base + i * 2 * MIB, 2 * MIB, 0, handle, 0));
        CHECK(DRIVER(cuMemSetAccess)(base, 2000 * 2 * MIB, &access, 1));
    });
}

int main()
{
    const CUcontext context = open_context();

    launches();
    mapping(2 * MIB);
    mapping(64 * MIB);
    mapping(GIB);
    partial_mapping();
    printf("768 MiB of host memory\n pinned\n");
    pinned();
    registered(false);
    registered(true);
    printf(" managed\n");
    managed();
    together(context);
    return 0;
}
