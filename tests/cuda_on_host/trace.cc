/* trace.cc: the recorder of reach_trace.cuh on the CPU: what is recorded, what is lost, and that
 * the same work gives the same file. With REACH_TRACE_OUT it leaves the file there, for reach-lab
 * to read. Prints TAP. TEST_SEED repeats a run. */
#include "reach_trace.cuh"

#include <ctime>
#include <fstream>
#include <sstream>
#include <unistd.h>

enum { BLOCKS = 6, THREADS = 128, STEPS = 50 };

static int point, failed;

static void ok(bool right, const char *name)
{
    printf("%sok %d - %s\n", right ? "" : "not ", ++point, name);
    failed += !right;
}

/* A load that is coalesced, and an atomic that goes anywhere. */
static void kernel(reach_trace trace, const char *memory)
{
    const uint32_t at = blockIdx.x * THREADS + threadIdx.x;
    for (uint32_t step = 0; step < STEPS; step++) {
        reach_trace_access(trace, memory + 4ull * (step * BLOCKS * THREADS + at), REACH_TRACE_LOAD,
                           4);
        reach_trace_access(trace, memory + 128ull * (at * 7919 + step), REACH_TRACE_ATOMIC, 8);
    }
}

static std::string contents(const std::string &path)
{
    std::ifstream in(path, std::ios::binary);
    std::stringstream all;
    all << in.rdbuf();
    return all.str();
}

/* Records one launch to `path`; the entries that were used. */
static unsigned long long record(const std::string &path, uint64_t room, uint32_t every,
                                 uint64_t *lost)
{
    const char *const memory = (const char *)0x7f0000000000;
    const cudaLaunchConfig_t config = {dim3(BLOCKS), dim3(THREADS), 0, nullptr};
    reach_trace trace;
    reach_trace_open(&trace, room, every);
    cudaLaunchKernelEx(&config, kernel, trace, memory);
    const unsigned long long used = *trace.used;
    reach_trace_file file(path.c_str(), "a job");
    file.allocation("memory", memory, 1ull << 30);
    file.kernel(&trace, "kernel", dim3(BLOCKS), dim3(THREADS));
    *lost = file.lost;
    ok(file.end(), "the file is written");
    reach_trace_close(&trace);
    return used;
}

int main()
{
    const char *const seed = getenv("TEST_SEED"), *const out = getenv("REACH_TRACE_OUT");
    const unsigned long long all = 2ull * STEPS * BLOCKS * THREADS / 32;
    char folder[] = "/tmp/reach-trace-XXXXXX";
    uint64_t lost = 0;
    cuda_on_host::random_state = seed ? strtoull(seed, nullptr, 0) : (uint64_t)time(nullptr);
    printf("# TEST_SEED=%llu\n", (unsigned long long)cuda_on_host::random_state);
    if (!mkdtemp(folder))
        return 1;
    const std::string one = std::string(folder) + "/one", two = std::string(folder) + "/two";
    ok(record(one, all, 1, &lost) == all && lost == 0, "every access of every warp is recorded");
    record(two, all, 1, &lost);
    ok(contents(one) == contents(two) && !contents(one).empty(), "the same bytes twice");
    if (out)
        std::ofstream(out, std::ios::binary) << contents(one);
    record(two, 10, 1, &lost);
    ok(lost == all - 10, "what finds no room is lost, and counted");
    const unsigned long long some = record(two, all, 4, &lost);
    ok(some > 0 && some < all / 2 && some % (2 * STEPS) == 0, "warps are sampled as a whole");
    const cudaLaunchConfig_t config = {dim3(1), dim3(32), 0, nullptr};
    cudaLaunchKernelEx(&config, kernel, reach_trace{}, (const char *)nullptr);
    ok(true, "a trace without a buffer records nothing");
    ok(!reach_trace_file("/no/such/folder/file", "").end(), "a file that cannot be is reported");
    unlink(one.c_str());
    unlink(two.c_str());
    rmdir(folder);
    printf("1..%d\n", point);
    return failed != 0;
}
