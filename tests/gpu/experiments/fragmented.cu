/* For docs/memory-allocation.md. */
/* fragmented.cu: measures the gain of reach_device_alloc and reach_compact in fragmented memory.
 *
 *     fragmented --frame-bytes=N [--gib=97] [--held=0,1,5,25] [--json=FILE]
 *
 * For each percentage of --held, 2 MiB pages at random places hold this share of the memory. All
 * SMs then read 128 bytes at random in an array of --gib GiB. There are four cases: an array from
 * cudaMalloc, from reach_device_alloc, after reach_compact, and after another reach_compact without
 * held pages. Before each compaction the program finds the scattered frames, chunk by chunk. It
 * maps the frames of a chunk several times to span the addresses of the array, so that the same
 * share of reads misses the TLB. A chunk with a low rate is scattered; the base is the rate of
 * memory without held pages. After each compaction every word is verified.
 *
 * Before that, the program tests each kind of host memory of reach_host_alloc. A kernel writes the
 * memory and the host reads it, and the other way around. The program prints one table and writes
 * the table as JSON. The exit status is 1 if a word differs, or if a call fails.
 */
#include "reach_alloc.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <string>
#include <vector>

enum { LINE = 128, CHUNK_FRAMES = 64, BLOCK = 1024 };
static const uint64_t MIB = 1 << 20, GIB = 1 << 30, PAGE = 2 * MIB;
/* A chunk counts as scattered if its rate is below this share of the rate without held memory. */
static const double WHOLE_ENOUGH = 0.95;

/* ---- the driver, loaded at run time --------------------------------------------------------- */

#define DRIVER(X)                                                                                  \
    X(cuMemCreate, cuMemCreate)                                                                    \
    X(cuMemRelease, cuMemRelease)                                                                  \
    X(cuMemRetainAllocationHandle, cuMemRetainAllocationHandle)                                    \
    X(cuMemAddressReserve, cuMemAddressReserve)                                                    \
    X(cuMemAddressFree, cuMemAddressFree)                                                          \
    X(cuMemMap, cuMemMap)                                                                          \
    X(cuMemUnmap, cuMemUnmap)                                                                      \
    X(cuMemSetAccess, cuMemSetAccess)
#define POINTER(member, function) static decltype(&function) p_##member;
DRIVER(POINTER)

static void stop(const char *what, const char *why)
{
    fprintf(stderr, "fragmented: %s: %s\n", what, why);
    exit(EXIT_FAILURE);
}

static void check(cudaError_t r, const char *call)
{
    if (r != cudaSuccess)
        stop(call, cudaGetErrorString(r));
}

static void check(CUresult r, const char *call)
{
    if (r != CUDA_SUCCESS)
        stop(call, ("CUresult " + std::to_string((int)r)).c_str());
}

static reach_alloc_error why;

static void check(reach_alloc_status s, const char *call)
{
    if (s != REACH_ALLOC_OK)
        stop(call, why.text);
}

#define CHECK(call) check(call, #call)

static void load_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
#define LOAD(member, function)                                                                     \
    p_##member = library ? (decltype(p_##member))dlsym(library, #member) : nullptr;                \
    if (!p_##member)                                                                               \
        stop("libcuda.so.1 lacks", #member);
    DRIVER(LOAD)
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* Each warp reads lines in its own random order, with eight loads in flight. */
__global__ void __launch_bounds__(BLOCK) read_lines(const char *base, uint64_t lines, uint32_t rounds,
                                                    uint32_t *sink)
{
    const uint32_t lane = threadIdx.x % 32;
    uint64_t x = (blockIdx.x * (uint64_t)(BLOCK / 32) + threadIdx.x / 32 + 1) * 0x9e3779b97f4a7c15;
    uint32_t sum = 0;
    for (uint32_t r = 0; r < rounds; r++) {
        uint32_t v[8];
#pragma unroll
        for (int i = 0; i < 8; i++) {
            x = x * 6364136223846793005 + 1442695040888963407;
            v[i] = __ldcg((const uint32_t *)(base + __umul64hi(x, lines) * LINE) + lane);
        }
#pragma unroll
        for (int i = 0; i < 8; i++)
            sum += v[i];
    }
    if (sum == 77)
        *sink = sum;
}

__host__ __device__ static uint64_t word_at(uint64_t i)
{
    return (i + 1) * 0x9e3779b97f4a7c15 ^ i >> 7;
}

__global__ void fill(uint64_t *p, uint64_t words)
{
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < words;
         i += (uint64_t)gridDim.x * blockDim.x)
        p[i] = word_at(i);
}

__global__ void count_wrong(const uint64_t *p, uint64_t words, unsigned long long *wrong)
{
    unsigned long long mine = 0;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < words;
         i += (uint64_t)gridDim.x * blockDim.x)
        mine += p[i] != word_at(i);
    if (mine)
        atomicAdd(wrong, mine);
}

/* ---- measuring ------------------------------------------------------------------------------- */

static uint64_t frame_bytes;
static uint64_t bytes;
static int sms;
static uint32_t *sink;
static unsigned long long *wrong_words;
static CUmemAccessDesc access_of_device;

static double seconds(void)
{
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

/* Returns the highest read rate of `repeats` runs in bytes per ns. */
static double read_gbps(const void *base, uint32_t rounds, int repeats)
{
    cudaEvent_t a, b;
    double best = 0;
    CHECK(cudaEventCreate(&a));
    CHECK(cudaEventCreate(&b));
    for (int i = 0; i < repeats; i++) {
        float ms = 0;
        CHECK(cudaEventRecord(a));
        read_lines<<<2 * sms, BLOCK>>>((const char *)base, bytes / LINE, rounds, sink);
        CHECK(cudaEventRecord(b));
        CHECK(cudaEventSynchronize(b));
        CHECK(cudaEventElapsedTime(&ms, a, b));
        best = std::max(best, 2. * sms * (BLOCK / 32) * rounds * 8 * LINE / (ms * 1e6));
    }
    CHECK(cudaEventDestroy(a));
    CHECK(cudaEventDestroy(b));
    return best;
}

static uint64_t verify(const void *array, uint64_t length)
{
    unsigned long long wrong = 0;
    CHECK(cudaMemset(wrong_words, 0, sizeof wrong));
    count_wrong<<<4 * sms, BLOCK>>>((const uint64_t *)array, length / 8, wrong_words);
    CHECK(cudaMemcpy(&wrong, wrong_words, sizeof wrong, cudaMemcpyDeviceToHost));
    return wrong;
}

/* Measures the rate of each chunk of `array`, spread over the addresses of the whole; every
 * `step`th. */
static std::vector<double> chunk_rates(char *array, uint64_t step)
{
    const uint64_t frames = bytes / frame_bytes;
    std::vector<double> rates;
    CUdeviceptr range;
    CHECK(p_cuMemAddressReserve(&range, bytes, GIB, 0, 0));
    for (uint64_t first = 0; first < frames; first += CHUNK_FRAMES * step) {
        const uint64_t n = std::min<uint64_t>(CHUNK_FRAMES, frames - first);
        std::vector<CUmemGenericAllocationHandle> handles(n);
        for (uint64_t i = 0; i < n; i++)
            CHECK(p_cuMemRetainAllocationHandle(&handles[i], array + (first + i) * frame_bytes));
        for (uint64_t i = 0; i < frames; i++)
            CHECK(p_cuMemMap(range + i * frame_bytes, frame_bytes, 0, handles[i % n], 0));
        CHECK(p_cuMemSetAccess(range, bytes, &access_of_device, 1));
        rates.push_back(read_gbps((const void *)range, 256, 2));
        CHECK(p_cuMemUnmap(range, bytes));
        for (CUmemGenericAllocationHandle h : handles)
            CHECK(p_cuMemRelease(h));
    }
    CHECK(p_cuMemAddressFree(range, bytes));
    return rates;
}

/* ---- one share of held memory ---------------------------------------------------------------- */

struct compacted {
    double gbps;
    double chunks_whole; /* share of the chunks that were whole before */
    reach_compaction done;
    uint64_t wrong;
    double break_even_s; /* seconds of reading at the new rate */
};

struct row {
    double held_percent;
    double malloc_gbps, malloc_ms;
    double reach_gbps, reach_ms;
    compacted held, given_back;
};

static double whole_gbps; /* rate of a chunk without held memory */

struct judge {
    const char *array;
    std::vector<double> rates;
};

static bool is_scattered(void *context, const void *frame, uint64_t length)
{
    const judge *j = (const judge *)context;
    const uint64_t i = ((const char *)frame - j->array) / length;
    return i < bytes / length && j->rates[i / CHUNK_FRAMES] < WHOLE_ENOUGH * whole_gbps;
}

static compacted compact(reach_pool *pool, char *array, double before_gbps)
{
    judge j = {array, chunk_rates(array, 1)};
    reach_compact_options o = {};
    compacted c = {};
    o.size = sizeof o;
    o.is_scattered = is_scattered;
    o.context = &j;
    c.done.size = sizeof c.done;
    for (double rate : j.rates)
        c.chunks_whole += (rate >= WHOLE_ENOUGH * whole_gbps) / (double)j.rates.size();
    CHECK(reach_compact(pool, &o, &c.done, &why));
    c.wrong = verify(array, bytes);
    c.gbps = read_gbps(array, 1024, 3);
    /* After this time of reading, the faster reads have saved the time of the compaction. */
    if (c.gbps > 1.02 * before_gbps)
        c.break_even_s = c.done.ns / 1e9 / (c.gbps / before_gbps - 1);
    return c;
}

static std::vector<CUmemGenericAllocationHandle> hold(double percent)
{
    CUmemAllocationProp prop = {};
    std::vector<CUmemGenericAllocationHandle> all, held;
    CUmemGenericAllocationHandle h;
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = access_of_device.location;
    if (percent == 0)
        return held;
    while (p_cuMemCreate(&h, PAGE, &prop, 0) == CUDA_SUCCESS)
        all.push_back(h);
    for (CUmemGenericAllocationHandle x : all) {
        if (rand() < percent / 100 * RAND_MAX)
            held.push_back(x);
        else
            CHECK(p_cuMemRelease(x));
    }
    return held;
}

static row measure(double percent)
{
    row r = {};
    void *array;
    reach_pool *pool;
    reach_pool_options options = {};
    std::vector<CUmemGenericAllocationHandle> held = hold(percent);

    r.held_percent = percent;
    double start = seconds();
    CHECK(cudaMalloc(&array, bytes));
    r.malloc_ms = (seconds() - start) * 1e3;
    r.malloc_gbps = read_gbps(array, 1024, 3);
    CHECK(cudaFree(array));

    options.size = sizeof options;
    options.frame_bytes = frame_bytes;
    CHECK(reach_pool_open(&options, &pool, &why));
    start = seconds();
    CHECK(reach_device_alloc(pool, bytes, NULL, &array, &why));
    r.reach_ms = (seconds() - start) * 1e3;
    r.reach_gbps = read_gbps(array, 1024, 3);
    fill<<<4 * sms, BLOCK>>>((uint64_t *)array, bytes / 8);
    CHECK(cudaDeviceSynchronize());

    if (percent == 0) {
        for (double rate : chunk_rates((char *)array, 8))
            whole_gbps = std::max(whole_gbps, rate);
        r.held.wrong = verify(array, bytes);
    } else {
        r.held = compact(pool, (char *)array, r.reach_gbps);
        for (CUmemGenericAllocationHandle h : held)
            CHECK(p_cuMemRelease(h));
        r.given_back = compact(pool, (char *)array, r.held.gbps);
    }
    CHECK(reach_device_free(pool, array, NULL, &why));
    reach_pool_close(pool);
    return r;
}

/* ---- host memory ----------------------------------------------------------------------------- */

/* Counts for each kind of memory the words in which the host or the GPU reads another value than the
 * other wrote. */
static uint64_t try_host_kinds(void)
{
    static const char *const names[] = {"best", "pinned", "managed", "vmm"};
    const uint64_t length = 64 * MIB;
    reach_pool_options options = {};
    reach_pool *pool;
    uint64_t wrong = 0;
    options.size = sizeof options;
    CHECK(reach_pool_open(&options, &pool, &why));
    for (int kind = REACH_HOST_PINNED; kind <= REACH_HOST_VMM; kind++) {
        reach_host_options host = {};
        void *memory;
        uint64_t bad = 0;
        host.size = sizeof host;
        host.bytes = length;
        host.kind = (reach_host_kind)kind;
        if (reach_host_alloc(pool, &host, &memory, nullptr, &why) != REACH_ALLOC_OK) {
            printf("host memory, %s: %s\n", names[kind], why.text);
            continue;
        }
        uint64_t *words = (uint64_t *)memory;
        fill<<<sms, BLOCK>>>(words, length / 8);
        CHECK(cudaDeviceSynchronize());
        for (uint64_t i = 0; i < length / 8; i++)
            bad += words[i] != word_at(i);
        memset(words, 0, length);
        for (uint64_t i = 0; i < length / 8; i++)
            words[i] = word_at(i);
        bad += verify(words, length);
        CHECK(reach_host_free(pool, memory, NULL, &why));
        printf("host memory, %s: %llu words wrong\n", names[kind], (unsigned long long)bad);
        wrong += bad;
    }
    reach_pool_close(pool);
    return wrong;
}

/* ---- the report ------------------------------------------------------------------------------ */

static void print_compacted(const compacted &c)
{
    if (c.gbps == 0)
        printf(" |      -       -       -       -");
    else
        printf(" | %6.0f %6.0f%% %7llu %7.2f", c.gbps, 100 * c.chunks_whole,
               (unsigned long long)c.done.frames, c.break_even_s);
}

static void print_table(const std::vector<row> &rows)
{
    printf("random reads of %d bytes over %.0f GiB, frames of %llu MiB; GB/s\n", LINE,
           bytes / (double)GIB, (unsigned long long)(frame_bytes / MIB));
    printf("       | cudaMalloc  ms | reach_device_alloc  ms ratio | compacted, pages held        "
           " | pages given back, compacted    | wrong\n");
    printf("  held |                |                              |   GB/s  whole  frames even s"
           " |   GB/s  whole  frames even s | words\n");
    for (const row &r : rows) {
        printf("%5.0f%% | %6.0f   %5.0f | %14.0f %7.0f %6.2f", r.held_percent, r.malloc_gbps,
               r.malloc_ms, r.reach_gbps, r.reach_ms, r.reach_gbps / r.malloc_gbps);
        print_compacted(r.held);
        print_compacted(r.given_back);
        printf(" | %llu\n", (unsigned long long)(r.held.wrong + r.given_back.wrong));
    }
    printf("whole: share of the chunks of %d frames that were at full speed before; even s: seconds of "
           "reading that make up for it\n",
           CHUNK_FRAMES);
}

static void write_compacted(FILE *f, const char *name, const compacted &c)
{
    fprintf(f,
            ",\"%s\":{\"gbps\":%.1f,\"chunks_whole\":%.3f,\"frames\":%llu,\"ns\":%llu,"
            "\"break_even_s\":%.3f,\"wrong_words\":%llu}",
            name, c.gbps, c.chunks_whole, (unsigned long long)c.done.frames,
            (unsigned long long)c.done.ns, c.break_even_s, (unsigned long long)c.wrong);
}

static void write_json(const char *path, const std::vector<row> &rows)
{
    FILE *f = fopen(path, "we");
    if (!f)
        stop(path, strerror(errno));
    fprintf(f, "{\"bytes\":%llu,\"frame_bytes\":%llu,\"rows\":[", (unsigned long long)bytes,
            (unsigned long long)frame_bytes);
    for (size_t i = 0; i < rows.size(); i++) {
        const row &r = rows[i];
        fprintf(f,
                "%s{\"held_percent\":%g,\"malloc_gbps\":%.1f,\"malloc_ms\":%.1f,\"reach_gbps\":%.1f,"
                "\"reach_ms\":%.1f",
                i ? "," : "", r.held_percent, r.malloc_gbps, r.malloc_ms, r.reach_gbps, r.reach_ms);
        if (r.held_percent > 0) {
            write_compacted(f, "compacted", r.held);
            write_compacted(f, "compacted_after_release", r.given_back);
        }
        fprintf(f, "}");
    }
    fprintf(f, "]}\n");
    if (fclose(f) != 0)
        stop(path, strerror(errno));
}

static const char *option(int argc, char **argv, const char *name, const char *otherwise)
{
    const size_t n = strlen(name);
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], name, n) == 0 && argv[i][n] == '=')
            return argv[i] + n + 1;
    }
    return otherwise;
}

int main(int argc, char **argv)
{
    const char *json = option(argc, argv, "--json", nullptr);
    std::vector<row> rows;
    uint64_t wrong = 0;

    frame_bytes = strtoull(option(argc, argv, "--frame-bytes", "0"), nullptr, 10);
    if (frame_bytes == 0)
        stop("--frame-bytes", "needs the frame that reachd has measured");
    bytes = strtoull(option(argc, argv, "--gib", "97"), nullptr, 10) * GIB / frame_bytes * frame_bytes;
    load_driver();
    CHECK(cudaFree(nullptr));
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    CHECK(cudaMalloc(&sink, sizeof *sink));
    CHECK(cudaMalloc(&wrong_words, sizeof *wrong_words));
    access_of_device.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access_of_device.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;

    wrong = try_host_kinds();
    rows.push_back(measure(0)); /* whole chunks, and their rate */
    for (const char *p = option(argc, argv, "--held", "1,5,25"); *p; p += strspn(p, ",")) {
        char *end;
        const double percent = strtod(p, &end);
        if (end == p || percent < 0 || percent > 90)
            stop("--held", "needs percentages, 1,5,25");
        p = end;
        if (percent > 0)
            rows.push_back(measure(percent));
    }
    print_table(rows);
    if (json)
        write_json(json, rows);
    for (const row &r : rows)
        wrong += r.held.wrong + r.given_back.wrong;
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
