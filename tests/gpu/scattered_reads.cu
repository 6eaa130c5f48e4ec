/* scattered_reads.cu: measures random 128-byte reads over memory that consists of short physical
 * runs, like in a job whose allocator maps small handles.
 *
 *     scattered_reads BYTES RUN
 *
 * The program takes BYTES of device memory in handles of RUN bytes each, maps them side by side in
 * random order, and prints "ready". Then it answers each input line with a rate in GB/s:
 *
 *     BYTES                        all SMs read anywhere in the first BYTES
 *     BYTES N FIRST LENGTH .. W..  each SM reads in one of N windows. FIRST and LENGTH are the
 *                                  first byte and the length of a window. W is the window of each
 *                                  SM by its id, or -1 for none.
 */
#include "common.cuh"
#include "scattered.cuh"

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <sstream>
#include <stdint.h>
#include <string>
#include <vector>

enum { WARP = 32, THREADS = 1024, BLOCKS_PER_SM = 2, IN_FLIGHT = 16, LINE = 128, MAX_SMS = 512 };
static const uint64_t MEASURE_NS = 20000000;

struct window {
    uint64_t first;
    uint64_t lines; /* 0 if this SM does not read */
};

static __device__ uint64_t now_ns()
{
    uint64_t t;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
    return t;
}

/* Reads for half of the time to fill the TLBs, then counts. */
__global__ void __launch_bounds__(THREADS)
    reads(const char *base, const struct window *windows, uint64_t ns, unsigned long long *lines,
          uint32_t *sink)
{
    uint32_t sm;
    asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
    const struct window w = windows[sm];
    const uint32_t lane = threadIdx.x % WARP;
    uint64_t x =
        (blockIdx.x * (uint64_t)(THREADS / WARP) + threadIdx.x / WARP + 1) * 0x9E3779B97F4A7C15ull;
    unsigned long long count = 0;
    uint32_t sum = 0;

    if (w.lines == 0)
        return;
    const uint64_t start = now_ns() + ns / 2;
    for (uint64_t t = 0; t < start + ns; t = now_ns()) {
        uint32_t v[IN_FLIGHT];
#pragma unroll
        for (int j = 0; j < IN_FLIGHT; j++) {
            x = x * 6364136223846793005ull + 1442695040888963407ull;
            v[j] =
                __ldcg((const uint32_t *)(base + w.first + __umul64hi(x, w.lines) * LINE) + lane);
        }
#pragma unroll
        for (int j = 0; j < IN_FLIGHT; j++)
            sum += v[j];
        count += t >= start ? IN_FLIGHT : 0;
    }
    if (lane == 0)
        atomicAdd(lines, count);
    if (sum == 1)
        *sink = sum;
}

static int sm_count()
{
    int count = 0;
    CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
    return count;
}

static double gbps_of(const char *base, const std::vector<struct window> &windows, char *scratch)
{
    struct window *const table = (struct window *)(scratch + LINE);
    unsigned long long lines = 0;

    CHECK(cudaMemset(scratch, 0, LINE));
    CHECK(cudaMemcpy(table, windows.data(), windows.size() * sizeof windows[0],
                     cudaMemcpyHostToDevice));
    reads<<<sm_count() * BLOCKS_PER_SM, THREADS>>>(base, table, MEASURE_NS,
                                                   (unsigned long long *)scratch,
                                                   (uint32_t *)(scratch + sizeof lines));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(&lines, scratch, sizeof lines, cudaMemcpyDeviceToHost));
    return (double)lines * LINE / MEASURE_NS;
}

static std::vector<struct window> windows_of(const char *line)
{
    std::vector<struct window> windows(MAX_SMS);
    std::vector<struct window> named;
    std::istringstream in(line);
    uint64_t bytes = 0;
    size_t count = 0;
    int w;

    in >> bytes >> count;
    named.resize(count);
    for (size_t i = 0; i < count; i++) {
        in >> named[i].first >> named[i].lines;
        named[i].lines /= LINE;
    }
    for (size_t sm = 0; sm < windows.size(); sm++) {
        if (count == 0)
            windows[sm].lines = bytes / LINE;
        else if (in >> w && w >= 0)
            windows[sm] = named[(size_t)w];
    }
    return windows;
}

int main(int argc, char **argv)
{
    static char line[1 << 16];
    char *scratch;

    if (argc != 3)
        return EXIT_FAILURE;
    CHECK(cudaFree(0));
    CHECK(cudaMalloc(&scratch, LINE + MAX_SMS * sizeof(struct window)));
    const char *const base =
        scattered_memory(strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10));
    puts("ready");
    for (fflush(stdout); fgets(line, sizeof line, stdin); fflush(stdout))
        printf("%.3f\n", gbps_of(base, windows_of(line), scratch));
    return 0;
}
