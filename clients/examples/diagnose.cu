/* diagnose.cu: allocates memory of each kind in turn and diagnoses it with reach_diagnose: an
 * example of the call, and its test on a real GPU.
 *
 *     diagnose [--reachd URI] [--gpu N] [--json]
 *
 * If there is a source of answers (a daemon, or file:/path/fingerprint.json), the diagnosis gets
 * the fingerprint's numbers, and the program prints the planner's prediction. Every word of the
 * memory is written before and compared after the diagnosis. The exit status is 1 if a word has
 * changed, or if a call failed. Missing memory, or a missing kind of memory, is not a failure. */
#include "diagnose.h"
#include "job.h"
#include "reach.cuh"

#include <algorithm>
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <getopt.h>
#include <stdexcept>
#include <stdlib.h>
#include <string>
#include <sys/mman.h>
#include <vector>

typedef uint64_t u64;
static const u64 MIB = 1 << 20, GIB = 1 << 30, FRAME = 32 * MIB, PAGE = 2 * MIB;
static const u64 SPARE = 2 * GIB; /* bytes left free on the device */
static const u64 HOST_WITHIN = 512 * MIB, HOST_BEYOND = 2 * GIB;

/* ---- calls -------------------------------------------------------------------------------- */

static void check(int result, const char *call)
{
    if (result != 0)
        throw std::runtime_error(std::string(call) + ": error " + std::to_string(result));
}
#define TRY(call) check((int)(call), #call)

/* Loads a function of the driver, which the build machine need not have. */
static void *driver_symbol(const char *name)
{
    static void *const library = dlopen("libcuda.so.1", RTLD_NOW);
    void *const symbol = library ? dlsym(library, name) : NULL;
    if (!symbol)
        throw std::runtime_error(std::string("the driver has no ") + name);
    return symbol;
}
#define DRIVER(name) ((decltype(&name))driver_symbol(#name))
/* Signatures of functions of every driver. Later headers declare these functions differently. */
typedef int advise_fn(CUdeviceptr, size_t, int, CUdevice);
typedef int prefetch_fn(CUdeviceptr, size_t, CUdevice, CUstream);

/* ---- memory ------------------------------------------------------------------------------- */

struct memory {
    char *address = NULL;
    u64 bytes = 0;
    void (*release)(struct memory *) = NULL;
};

static struct memory take_plain(u64 bytes)
{
    struct memory m = {NULL, bytes, [](struct memory *t) { TRY(cudaFree(t->address)); }};
    TRY(cudaMalloc((void **)&m.address, bytes));
    return m;
}

static struct memory take_managed(u64 bytes, bool at_host)
{
    struct memory m = {NULL, bytes, [](struct memory *t) { TRY(cudaFree(t->address)); }};
    int device;
    TRY(cudaGetDevice(&device));
    TRY(cudaMallocManaged((void **)&m.address, bytes));
    const CUdeviceptr p = (CUdeviceptr)m.address;
    advise_fn *const advise = (advise_fn *)driver_symbol("cuMemAdvise");
    TRY(advise(p, bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, at_host ? CU_DEVICE_CPU : device));
    if (at_host) {
        TRY(advise(p, bytes, CU_MEM_ADVISE_SET_ACCESSED_BY, device));
        memset(m.address, 0, bytes);
    } else {
        TRY(((prefetch_fn *)driver_symbol("cuMemPrefetchAsync"))(p, bytes, device, 0));
    }
    return m;
}

static struct memory take_pinned(u64 bytes)
{
    struct memory m = {NULL, bytes, [](struct memory *t) { TRY(cudaFreeHost(t->address)); }};
    TRY(cudaMallocHost((void **)&m.address, bytes));
    return m;
}

static struct memory take_registered(u64 bytes)
{
    struct memory m = {NULL, bytes, [](struct memory *t) {
                           TRY(cudaHostUnregister(t->address));
                           munmap(t->address, t->bytes);
                       }};
    m.address =
        (char *)mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m.address == MAP_FAILED)
        throw std::runtime_error("cannot map host memory");
    madvise(m.address, bytes, MADV_HUGEPAGE);
    TRY(cudaHostRegister(m.address, bytes, cudaHostRegisterMapped));
    return m;
}

/* Maps handles of `handle_bytes` in random order. */
static struct memory take_virtual(u64 bytes, u64 handle_bytes, CUmemLocationType where, int id,
                                  bool compressible)
{
    struct memory m = {NULL, bytes, [](struct memory *t) {
                           TRY(DRIVER(cuMemUnmap)((CUdeviceptr)t->address, t->bytes));
                           TRY(DRIVER(cuMemAddressFree)((CUdeviceptr)t->address, t->bytes));
                       }};
    CUmemAllocationProp prop = {};
    CUmemAccessDesc access = {};
    std::vector<CUmemGenericAllocationHandle> handles;
    u64 x = 88172645463325252ull;
    CUdeviceptr base;

    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = where;
    prop.location.id = id;
    prop.allocFlags.compressionType = compressible;
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    TRY(cudaGetDevice(&access.location.id));
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    TRY(DRIVER(cuMemAddressReserve)(&base, bytes, FRAME, 0, 0));
    int result = 0;
    for (u64 at = 0; at < bytes && result == 0; at += handle_bytes) {
        CUmemGenericAllocationHandle h;
        result = DRIVER(cuMemCreate)(&h, handle_bytes, &prop, 0);
        if (result == 0)
            handles.push_back(h);
    }
    for (size_t i = handles.size(); i > 1; i--) {
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        std::swap(handles[i - 1], handles[(x >> 33) % i]);
    }
    for (size_t i = 0; i < handles.size(); i++) {
        if (result == 0)
            TRY(DRIVER(cuMemMap)(base + i * handle_bytes, handle_bytes, 0, handles[i], 0));
        TRY(DRIVER(cuMemRelease)(handles[i]));
    }
    if (result != 0)
        TRY(DRIVER(cuMemAddressFree)(base, bytes));
    check(result, "cuMemCreate");
    TRY(DRIVER(cuMemSetAccess)(base, bytes, &access, 1));
    m.address = (char *)base;
    return m;
}

/* ---- checks of the contents --------------------------------------------------------------- */

static __device__ u64 word_of(u64 i)
{
    return (i + 1) * 0x9E3779B97F4A7C15ull;
}

__global__ void fill(u64 *words, u64 count)
{
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count;
         i += (u64)gridDim.x * blockDim.x)
        words[i] = word_of(i);
}

__global__ void compare(const u64 *words, u64 count, unsigned long long *changed)
{
    unsigned long long n = 0;
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count;
         i += (u64)gridDim.x * blockDim.x)
        n += words[i] != word_of(i);
    if (n)
        atomicAdd(changed, n);
}

/* ---- one case ----------------------------------------------------------------------------- */

struct session {
    struct reach_diagnose_options options;
    struct reach *reach; /* NULL if there is no fingerprint */
    char gpu[REACH_UUID_BYTES];
    bool json;
    unsigned long long *changed; /* one counter on the device */
    int status;
};

static u64 count_changed(const struct session *s, const struct memory *m)
{
    unsigned long long changed;
    TRY(cudaMemset(s->changed, 0, sizeof *s->changed));
    compare<<<1024, 512>>>((const u64 *)m->address, m->bytes / 8, s->changed);
    TRY(cudaMemcpy(&changed, s->changed, sizeof changed, cudaMemcpyDeviceToHost));
    return changed;
}

static void diagnose(struct session *s, const char *name, struct memory m)
{
    struct reach_diagnosis found = {.size = sizeof found};
    struct reach_alloc_error why;
    fill<<<1024, 512>>>((u64 *)m.address, m.bytes / 8);
    TRY(cudaDeviceSynchronize());
    if (reach_diagnose(m.address, m.bytes, &s->options, &found, &why) != REACH_ALLOC_OK)
        throw std::runtime_error(why.text);
    const u64 changed = count_changed(s, &m);
    m.release(&m);
    s->status |= changed > 0;
    if (s->json) {
        diagnose_print_json(stdout, name, &found, changed);
        return;
    }
    printf("%s (%.1f ms, %llu words changed)\n  %s\n", name, (double)found.ns / 1e6,
           (unsigned long long)changed, found.text);
    if (s->reach) {
        printf("  ");
        diagnose_print_plan(stdout, s->reach, s->gpu, &found);
    }
    fflush(stdout);
}

/* A kind that this machine lacks, or has too little of, is reported in a line and is not a
 * failure. */
template <class Take> static void try_case(struct session *s, const char *name, Take take)
{
    struct memory m;
    try {
        m = take();
    } catch (const std::exception &e) {
        (void)cudaGetLastError();
        fprintf(s->json ? stderr : stdout, "%s: not to be had: %s\n", name, e.what());
        return;
    }
    try {
        diagnose(s, name, m);
    } catch (const std::exception &e) {
        fprintf(stderr, "diagnose: %s: %s\n", name, e.what());
        s->status = 1;
    }
}

/* ---- all cases ---------------------------------------------------------------------------- */

static void device_cases(struct session *s, int device)
{
    size_t free_bytes, total_bytes;
    TRY(cudaMemGetInfo(&free_bytes, &total_bytes));
    const u64 reach = s->options.reach_bytes[REACH_MEMORY_DEVICE];
    const u64 most = (free_bytes - SPARE) / FRAME * FRAME;
    const u64 beyond = reach > 0 ? std::min(reach / 4 * 7, most) / FRAME * FRAME : most;
    const u64 within = (reach > 0 ? std::min(reach, most) / 2 : most / 8) / FRAME * FRAME;
    const CUmemLocationType here = CU_MEM_LOCATION_TYPE_DEVICE;

    try_case(s, "device within", [=] { return take_plain(within); });
    try_case(s, "device out of reach", [=] { return take_plain(beyond); });
    try_case(s, "managed at the device", [=] { return take_managed(beyond, false); });
    try_case(s, "virtual, frames",
             [=] { return take_virtual(beyond, FRAME, here, device, false); });
    try_case(s, "virtual, shuffled pages",
             [=] { return take_virtual(beyond, PAGE, here, device, false); });
    try_case(s, "compressible", [=] { return take_virtual(beyond, FRAME, here, device, true); });
    int count = 0;
    TRY(cudaGetDeviceCount(&count));
    for (int peer = 0; peer < count; peer++) {
        int can = 0;
        if (peer != device && cudaDeviceCanAccessPeer(&can, device, peer) == cudaSuccess && can)
            try_case(s, "peer", [=] { return take_virtual(beyond, FRAME, here, peer, false); });
    }
}

static void host_cases(struct session *s)
{
    const CUmemLocationType host = CU_MEM_LOCATION_TYPE_HOST_NUMA;

    try_case(s, "host pinned within", [=] { return take_pinned(HOST_WITHIN); });
    try_case(s, "host pinned out of reach", [=] { return take_pinned(HOST_BEYOND); });
    try_case(s, "host registered", [=] { return take_registered(HOST_BEYOND); });
    try_case(s, "host virtual", [=] { return take_virtual(HOST_BEYOND, FRAME, host, 0, false); });
    try_case(s, "managed at the host", [=] { return take_managed(HOST_BEYOND, true); });
}

static void open_source(struct session *s, const char *uri)
{
    struct reach_error why;
    if (reach_open(uri, &s->reach, &why) == REACH_OK &&
        diagnose_numbers(s->reach, s->gpu, &s->options, &why) == REACH_OK)
        return;
    fprintf(stderr, "diagnose: without a fingerprint: %s\n", why.text);
    reach_close(s->reach);
    s->reach = NULL;
}

int main(int argc, char **argv)
{
    static const struct option long_options[] = {{"reachd", required_argument, NULL, 'r'},
                                                 {"gpu", required_argument, NULL, 'g'},
                                                 {"json", no_argument, NULL, 'j'},
                                                 {NULL, 0, NULL, 0}};
    struct session s = {};
    const char *uri = NULL;
    int device = 0;

    for (int c; (c = getopt_long(argc, argv, "", long_options, NULL)) != -1;) {
        if (c == 'r')
            uri = optarg;
        else if (c == 'g')
            device = atoi(optarg);
        else if (c == 'j')
            s.json = true;
        else
            return 2;
    }
    try {
        cudaDeviceProp properties;
        TRY(cudaSetDevice(device));
        TRY(cudaGetDeviceProperties(&properties, device));
        reach_uuid_text((const unsigned char *)properties.uuid.bytes, false, s.gpu);
        TRY(cudaMalloc((void **)&s.changed, sizeof *s.changed));
        s.options.size = sizeof s.options;
        s.options.device = device;
        open_source(&s, uri);
        device_cases(&s, device);
        host_cases(&s);
        reach_close(s.reach);
    } catch (const std::exception &e) {
        fprintf(stderr, "diagnose: %s\n", e.what());
        return 1;
    }
    return job_exit("diagnose", s.status == 0);
}
