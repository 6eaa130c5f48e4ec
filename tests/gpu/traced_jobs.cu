/* traced_jobs.cu: traces and times a gather of rows and a grouping, for comparison with the
 * predictions of what-if.
 *
 *     traced_jobs BYTES RUN
 *
 * The program takes BYTES of device memory in handles of RUN bytes, maps them side by side in
 * random order, and prints "ready". Then it answers input lines:
 *
 *     trace JOB FILE EVERY    writes the .rlt of a naive run, of one warp in EVERY; prints the
 *                             number of records and of lost records
 *     time JOB BYTES BUFFER   prints 10^9 items/s of all SMs anywhere in the first BYTES, the
 *                             median of three. The items of each buffer of BUFFER items are sorted
 *                             by 32 MiB; 0 means not sorted.
 *     windows JOB BYTES N FIRST LENGTH .. W..
 *                             prints the same rate in N windows. FIRST and LENGTH are the first
 *                             byte and the length of a window. W is the window of each SM by its
 *                             id, or -1 for none.
 *
 * An item of `gather` is a row of 128 bytes that 8 lanes read. An item of `grouping` is a value
 * that a lane inserts and counts in a bucket of 16 bytes. Warps take the items from a list.
 */
#include "clients/examples/element.h"

#include "common.cuh"
#include "scattered.cuh"
#include "reach_trace.cuh"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <sstream>

enum { WARP = 32, THREADS = 1024, MAX_SMS = 512, PIECE = 32, ROW = 128, ROW_LANES = 8, TIMES = 8 };
enum { IN_FLIGHT = PIECE / (WARP / ROW_LANES) };
enum { ITEMS = 1 << 24, TRACED_ITEMS = 1 << 21, TRACE_ROOM = 1 << 19, RUNS = 3 };
enum { SEED = 1, ROUND = 1, FRAME_SHIFT = 25, MAX_WINDOWS = 64 };

/* The items of each window, in consecutive lists, and the window of each worker. Pieces of 32 items
 * go to the SMs of a window in turn, in the way in which what-if deals them. */
struct work {
    const uint64_t *items; /* byte offsets of rows or buckets */
    uint64_t first[MAX_WINDOWS + 1];
    uint32_t sms_of_window[MAX_WINDOWS]; /* 0 means that any SM works on the first window */
    int16_t window_of_sm[MAX_SMS];
    uint16_t rank_of_sm[MAX_SMS]; /* rank in its window */
};

/* Range of a warp: the items of [at, end), [at + step, ..), .. */
struct share {
    uint64_t at, end, step;
};

static __device__ share share_of(const work &w)
{
    const uint32_t sm = sm_id(), warp = threadIdx.x / WARP;
    const bool any = w.sms_of_window[0] == 0;
    const int window = any ? 0 : w.window_of_sm[sm];
    if (window < 0)
        return {0, 0, 1};
    const uint64_t sms = any ? gridDim.x : w.sms_of_window[window];
    const uint64_t rank = any ? blockIdx.x : w.rank_of_sm[sm];
    return {w.first[window] + (warp * sms + rank) * PIECE, w.first[window + 1],
            sms * (THREADS / WARP) * PIECE};
}

__global__ void __launch_bounds__(THREADS, 1)
    gather(__grid_constant__ const work w, const char *memory, reach_trace trace, uint32_t *sink)
{
    const uint32_t octet = threadIdx.x % WARP / ROW_LANES, lane = threadIdx.x % ROW_LANES;
    share s = share_of(w);
    float sum = 0;
    for (; s.at < s.end; s.at += s.step) {
        const float4 *rows[IN_FLIGHT];
        float4 v[IN_FLIGHT];
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; k++) {
            const uint64_t i = s.at + k * (WARP / ROW_LANES) + octet;
            rows[k] = NULL;
            if (i < s.end)
                rows[k] = (const float4 *)(memory + __ldcg(w.items + i)) + lane;
        }
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; k++) {
            const float4 *row = rows[k];
            v[k] = make_float4(0, 0, 0, 0);
            if (row == NULL)
                continue;
            reach_trace_access(trace, row, REACH_TRACE_LOAD, sizeof *row);
            v[k] = __ldcg(row);
        }
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; k++)
            sum += v[k].x + v[k].y + v[k].z + v[k].w;
    }
    if (sum == 1.5f)
        *sink = 1;
}

__global__ void __launch_bounds__(THREADS, 1)
    grouping(__grid_constant__ const work w, char *memory, reach_trace trace, uint32_t *sink)
{
    unsigned long long seen = 0;
    for (share s = share_of(w); s.at < s.end; s.at += s.step) {
        const uint64_t i = s.at + threadIdx.x % WARP;
        if (i >= s.end)
            break;
        element_bucket *b = (element_bucket *)(memory + w.items[i]);
        reach_trace_access(trace, &b->key, REACH_TRACE_ATOMIC, sizeof b->key);
        seen += atomicCAS(&b->key, 0ull, (unsigned long long)i + 1);
        reach_trace_access(trace, &b->count, REACH_TRACE_ATOMIC, sizeof b->count);
        atomicAdd(&b->count, 1ull);
    }
    if (seen == 1)
        *sink = 1;
}

/* ---- the host ---- */

struct state {
    char *memory;
    uint64_t bytes, *items;
    uint32_t *sink;
    int sms;
};

/* Makes offsets of random rows, or of the buckets of random values. */
static std::vector<uint64_t> items_of(bool is_gather, uint64_t bytes, uint64_t count)
{
    std::vector<uint64_t> items(count);
    const uint64_t buckets = bytes / sizeof(element_bucket);
    for (uint64_t i = 0; i < count; i++) {
        const uint32_t value = (uint32_t)element_random(i, SEED, buckets / 2);
        items[i] = is_gather ? element_random(i, SEED, bytes / ROW) * ROW
                             : element_bucket_of(element_key(value, ROUND), buckets) *
                                   sizeof(element_bucket);
    }
    return items;
}

static void sort_buffers(std::vector<uint64_t> &items, uint64_t buffer)
{
    for (uint64_t at = 0; at < items.size(); at += buffer)
        std::stable_sort(
            items.begin() + at, items.begin() + std::min(at + buffer, items.size()),
            [](uint64_t a, uint64_t b) { return a >> FRAME_SHIFT < b >> FRAME_SHIFT; });
}

/* Pieces that all warps take at a time go to any of them, like in what-if and in a queue. In strict
 * turn, an SM would meet the same frames every few buffers. */
static void shuffle_pieces(std::vector<uint64_t> &items, uint64_t at_a_time)
{
    const uint64_t pieces = items.size() / PIECE;
    for (uint64_t first = 0; first < pieces; first += at_a_time) {
        const uint64_t count = std::min(at_a_time, pieces - first);
        for (uint64_t i = count; i > 1; i--) {
            const uint64_t j = element_random(first + i, SEED, i);
            std::swap_ranges(items.begin() + (first + i - 1) * PIECE,
                             items.begin() + (first + i) * PIECE,
                             items.begin() + (first + j) * PIECE);
        }
    }
}

static void launch(const state &s, bool is_gather, const work &w, const reach_trace &trace)
{
    if (is_gather)
        gather<<<s.sms, THREADS>>>(w, s.memory, trace, s.sink);
    else
        grouping<<<s.sms, THREADS>>>(w, s.memory, trace, s.sink);
    CHECK(cudaGetLastError());
}

static work begin(const state &s, const std::vector<uint64_t> &items)
{
    work w = {};
    CHECK(
        cudaMemcpy(s.items, items.data(), items.size() * sizeof items[0], cudaMemcpyHostToDevice));
    w.items = s.items;
    w.first[1] = items.size();
    return w;
}

/* The first run fills the TLBs. */
static double run_once(const state &s, bool is_gather, const work &w, uint64_t count)
{
    cudaEvent_t before, after;
    float ms = 0;
    CHECK(cudaEventCreate(&before));
    CHECK(cudaEventCreate(&after));
    launch(s, is_gather, w, reach_trace{});
    CHECK(cudaEventRecord(before));
    for (int i = 0; i < TIMES; i++)
        launch(s, is_gather, w, reach_trace{});
    CHECK(cudaEventRecord(after));
    CHECK(cudaEventSynchronize(after));
    CHECK(cudaEventElapsedTime(&ms, before, after));
    CHECK(cudaEventDestroy(before));
    CHECK(cudaEventDestroy(after));
    return (double)count * TIMES / ms * 1e-6;
}

static double run(const state &s, bool is_gather, const work &w, uint64_t count)
{
    double rates[RUNS];
    for (double &rate : rates)
        rate = run_once(s, is_gather, w, count);
    std::sort(rates, rates + RUNS);
    return rates[RUNS / 2];
}

static void trace_job(const state &s, bool is_gather, const std::string &path, uint32_t every)
{
    const std::vector<uint64_t> items = items_of(is_gather, s.bytes, TRACED_ITEMS);
    const work w = begin(s, items);
    reach_trace trace;
    CHECK(reach_trace_open(&trace, TRACE_ROOM, every));
    launch(s, is_gather, w, trace);
    CHECK(cudaDeviceSynchronize());
    const unsigned long long used = *trace.used;
    reach_trace_file file(path.c_str(), is_gather ? "gather" : "grouping");
    file.allocation("memory", s.memory, s.bytes);
    file.kernel(&trace, is_gather ? "gather" : "grouping", dim3(s.sms), dim3(THREADS));
    const uint64_t lost = file.lost;
    if (!file.end())
        exit(EXIT_FAILURE);
    reach_trace_close(&trace);
    printf("%llu %llu\n", used, (unsigned long long)lost);
}

static void time_job(const state &s, bool is_gather, std::istringstream &in)
{
    uint64_t bytes = 0, buffer = 0;
    in >> bytes >> buffer;
    std::vector<uint64_t> items = items_of(is_gather, bytes, ITEMS);
    if (buffer > 0) {
        sort_buffers(items, buffer);
        shuffle_pieces(items, (uint64_t)s.sms * THREADS / WARP);
    }
    printf("%.6f\n", run(s, is_gather, begin(s, items), ITEMS));
}

static void time_windows(const state &s, bool is_gather, std::istringstream &in)
{
    uint64_t bytes = 0;
    size_t count = 0;
    int window;
    in >> bytes >> count;
    if (count > MAX_WINDOWS)
        exit(EXIT_FAILURE);
    std::vector<uint64_t> first(count), length(count), sorted;
    for (size_t i = 0; i < count; i++)
        in >> first[i] >> length[i];
    const std::vector<uint64_t> items = items_of(is_gather, bytes, ITEMS);
    work w = begin(s, items);
    for (size_t i = 0; i < count; i++) {
        w.first[i] = sorted.size();
        for (uint64_t item : items) {
            if (item - first[i] < length[i])
                sorted.push_back(item);
        }
    }
    w.first[count] = sorted.size();
    for (int sm = 0; sm < MAX_SMS; sm++) {
        w.window_of_sm[sm] = (int16_t)(in >> window ? window : -1);
        if (w.window_of_sm[sm] >= 0)
            w.rank_of_sm[sm] = (uint16_t)w.sms_of_window[w.window_of_sm[sm]]++;
    }
    CHECK(cudaMemcpy(s.items, sorted.data(), sorted.size() * sizeof sorted[0],
                     cudaMemcpyHostToDevice));
    printf("%.6f\n", run(s, is_gather, w, sorted.size()));
}

int main(int argc, char **argv)
{
    state s = {};
    std::string line, verb, job, path;
    uint32_t every;

    if (argc != 3)
        return EXIT_FAILURE;
    CHECK(cudaFree(0));
    CHECK(cudaDeviceGetAttribute(&s.sms, cudaDevAttrMultiProcessorCount, 0));
    CHECK(cudaMalloc(&s.items, ITEMS * sizeof *s.items));
    CHECK(cudaMalloc(&s.sink, sizeof *s.sink));
    s.bytes = strtoull(argv[1], NULL, 10);
    s.memory = scattered_memory(s.bytes, strtoull(argv[2], NULL, 10));
    CHECK(cudaMemset(s.memory, 0, s.bytes));
    puts("ready");
    for (fflush(stdout); std::getline(std::cin, line); fflush(stdout)) {
        std::istringstream in(line);
        in >> verb >> job;
        if (verb == "trace" && in >> path >> every)
            trace_job(s, job == "gather", path, every);
        else if (verb == "time")
            time_job(s, job == "gather", in);
        else
            time_windows(s, job == "gather", in);
    }
    return 0;
}
