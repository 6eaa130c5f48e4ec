/* random_read.cu: a job that asks reachd where its SMs should work, and what it gains.
 *
 * A GPU translates addresses with small tables. As long as what an SM touches at random fits the
 * table that its group of SMs shares, memory sets the speed; beyond it, translation does. So a job
 * over a larger allocation should send each group into a window of its own. Which SMs make a group,
 * and how long a window may be, differs from chip to chip: the daemon has measured it.
 *
 * The recipe, for a job of your own:
 *   1. allocate                                            allocate_largest()
 *   2. ask for the placement of that many bytes            ask_placement()
 *   3. launch one block an SM; each block asks for its     read_windows(), by reach.cuh
 *      window and takes work from that window's queue
 *      until the queue is empty
 *
 * To show what this is worth, the same kernel runs four times, with four different tables (see
 * strategies.h). Each strategy reads the same number of lines, each window in proportion to its
 * length, every line of a window with the same probability. What counts is the time until the last
 * SM has finished. Memory holds a known function of the address, and every word that is read is
 * compared with it.
 */
#include "ask_daemon.h"
#include "options.h"
#include "reach.cuh"
#include "report.h"
#include "strategies.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

typedef uint32_t u32;
typedef uint64_t u64;

#define WARP           32u
#define THREADS        1024u /* of a block: all that an SM runs with 64 registers each */
#define IN_FLIGHT      8u    /* loads that each warp has under way */
#define CHUNK_LINES    512u  /* a warp takes from the queue at a time: some 90 us of work */
#define WORDS_PER_LINE (LINE_BYTES / 4u)

#define CHECK(call) check((call), #call, __LINE__)

static void check(cudaError_t result, const char *call, int line)
{
    if (result == cudaSuccess)
        return;
    fprintf(stderr, "random_read: line %d: %s: %s\n", line, call, cudaGetErrorString(result));
    exit(EXIT_FAILURE);
}

static void give_up(const char *why)
{
    fprintf(stderr, "random_read: %s\n", why);
    exit(EXIT_FAILURE);
}

/* ---- on the device -------------------------------------------------------------------------- */

/* What the kernel counts. */
struct tally {
    u64 chunks_done;
    u64 mismatches;
    u32 blocks_on_sm[ASK_MAX_SMS];
};

/* A load that the SM's own cache cannot answer. */
static __device__ __forceinline__ u32 load(const u32 *address)
{
    u32 v;
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
    return v;
}

/* What memory holds: different in every line, and in every word of a line. */
static __device__ __forceinline__ u32 word_at(u32 line, u32 word)
{
    return line * 0x9e3779b1u + word * 0x85ebca6bu + 1;
}

/* Spreads i over 32 bits (Murmur3's finaliser): one to one, so no value comes twice. */
static __device__ __forceinline__ u32 mix(u32 i)
{
    i = (i ^ (i >> 16)) * 0x85ebca6bu;
    i = (i ^ (i >> 13)) * 0xc2b2ae35u;
    return i ^ (i >> 16);
}

__global__ void fill(u32 *memory, u64 lines)
{
    const u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < lines * WORDS_PER_LINE; i += step)
        memory[i] = word_at((u32)(i / WORDS_PER_LINE), (u32)(i % WORDS_PER_LINE));
}

/* A warp reads the lines of one chunk, all 32 lanes one line at a time. Each lane works out one
 * line of a batch of 32 and tells the others. Returns how many words of this lane were wrong. */
static __device__ u32 read_chunk(const u32 *memory, const reach_me &me, u32 seed, u32 chunk)
{
    const u32 first_line = (u32)(me.first_byte / LINE_BYTES);
    const u32 lines = (u32)(me.length_bytes / LINE_BYTES);
    const u32 key = (seed * ASK_MAX_WINDOWS + me.window) * 0x632be5abu;
    const u32 lane = threadIdx.x % WARP;
    u32 wrong = 0;
    for (u32 batch = 0; batch < CHUNK_LINES; batch += WARP) {
        const u32 i = chunk * CHUNK_LINES + batch + lane;
        const u32 mine = first_line + __umulhi(mix(i * 0x9e3779b9u + key), lines);
#pragma unroll 1
        for (u32 k = 0; k < WARP; k += IN_FLIGHT) {
            u32 line[IN_FLIGHT], v[IN_FLIGHT];
#pragma unroll
            for (u32 j = 0; j < IN_FLIGHT; j++) {
                line[j] = __shfl_sync(~0u, mine, k + j);
                v[j] = load(memory + (u64)line[j] * WORDS_PER_LINE + lane);
            }
#pragma unroll
            for (u32 j = 0; j < IN_FLIGHT; j++)
                wrong += v[j] != word_at(line[j], lane);
        }
    }
    return wrong;
}

/* One block an SM. The SM's id says which window; the window's queue says what is left to do. The
 * next chunk is asked for before the current one is read, so that nobody waits for the queue. */
__global__ void __launch_bounds__(THREADS, 1)
    read_windows(reach_table table, const u32 *memory, const u32 *chunks, u32 seed, tally *out)
{
    const u32 lane = threadIdx.x % WARP;
    reach_me me;
    if (threadIdx.x == 0)
        atomicAdd(&out->blocks_on_sm[min(reach_sm_id(), ASK_MAX_SMS - 1u)], 1u);
    if (!reach_enter(table, &me))
        return;
    u32 wrong = 0, done = 0, next = reach_ask(table, me);
    for (u32 chunk = reach_take(next); chunk < chunks[me.window]; chunk = reach_take(next)) {
        next = reach_ask(table, me);
        wrong += read_chunk(memory, me, seed, chunk);
        done++;
    }
    if (wrong)
        atomicAdd((unsigned long long *)&out->mismatches, (unsigned long long)wrong);
    if (lane == 0 && done)
        atomicAdd((unsigned long long *)&out->chunks_done, (unsigned long long)done);
}

/* ---- on the host ---------------------------------------------------------------------------- */

/* What all launches share. */
struct device {
    u32 *memory;
    reach_table table;
    u32 *chunks; /* [ASK_MAX_WINDOWS]: of work in each window */
    tally *counted;
    int sm_count;
    int shared_bytes; /* dynamic shared memory that keeps a second block off an SM */
    cudaEvent_t before, after;
};

/* "GPU-" and the UUID in the usual five groups: the name that the daemon knows it by. */
static void name_gpu(int index, char *out, size_t size)
{
    static const int dashes_before[] = {4, 6, 8, 10};
    cudaDeviceProp properties;
    size_t n = (size_t)snprintf(out, size, "GPU-");
    int dash = 0;
    CHECK(cudaGetDeviceProperties(&properties, index));
    for (int i = 0; i < 16; i++) {
        const bool here = dash < 4 && dashes_before[dash] == i;
        dash += here ? 1 : 0;
        n += (size_t)snprintf(out + n, size - n, "%s%02x", here ? "-" : "",
                              (unsigned char)properties.uuid.bytes[i]);
    }
}

/* All that is free, or as much of it as one allocation can have. */
static u32 *allocate_largest(u64 *bytes)
{
    const u64 step = 32ull << 20;
    size_t free_bytes, total_bytes;
    void *memory = NULL;
    CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    for (u64 size = free_bytes / step * step; size >= step; size -= step) {
        const cudaError_t result = cudaMalloc(&memory, size);
        if (result == cudaSuccess) {
            *bytes = size;
            return (u32 *)memory;
        }
        if (result != cudaErrorMemoryAllocation)
            CHECK(result);
        (void)cudaGetLastError(); /* "out of memory" was an answer, not a fault */
    }
    give_up("there is no free memory on this GPU");
    return NULL;
}

static void open_device(const struct options *options, int index, u64 *bytes, device *out)
{
    int shared_per_sm = 0;
    memset(out, 0, sizeof *out);
    CHECK(cudaDeviceGetAttribute(&out->sm_count, cudaDevAttrMultiProcessorCount, index));
    CHECK(
        cudaDeviceGetAttribute(&shared_per_sm, cudaDevAttrMaxSharedMemoryPerMultiprocessor, index));
    out->shared_bytes = shared_per_sm / 2 + 1024;
    CHECK(cudaFuncSetAttribute(read_windows, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               out->shared_bytes));
    CHECK(reach_table_make(&out->table));
    CHECK(cudaMalloc((void **)&out->chunks, ASK_MAX_WINDOWS * sizeof(u32)));
    CHECK(cudaMalloc((void **)&out->counted, sizeof(tally)));
    CHECK(cudaEventCreate(&out->before));
    CHECK(cudaEventCreate(&out->after));
    *bytes = options->bytes / LINE_BYTES * LINE_BYTES;
    if (*bytes)
        CHECK(cudaMalloc((void **)&out->memory, *bytes));
    else
        out->memory = allocate_largest(bytes);
    fill<<<out->sm_count * 8, 256>>>(out->memory, *bytes / LINE_BYTES);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
}

static void close_device(device *d)
{
    CHECK(cudaFree(d->memory));
    reach_table_free(&d->table);
    CHECK(cudaFree(d->chunks));
    CHECK(cudaFree(d->counted));
    CHECK(cudaEventDestroy(d->before));
    CHECK(cudaEventDestroy(d->after));
}

/* Puts the tables of one strategy on the device. Each window's share of the work is its share of
 * the bytes. Returns the chunks of all windows together. */
static u64 load_strategy(device *d, const strategy *s, const struct options *options)
{
    static reach_window list[ASK_MAX_WINDOWS];
    const reach_windows windows = {s->window_count, s->sm_slots, list, s->window_of_sm};
    static u32 chunks[ASK_MAX_WINDOWS];
    const double all = (double)(options->lines / CHUNK_LINES);
    u64 total = 0;
    for (u32 w = 0; w < s->window_count; w++) {
        const double share = (double)s->windows[w].length_bytes / (double)s->region_bytes;
        list[w].first_byte = s->windows[w].first_byte;
        list[w].length_bytes = s->windows[w].length_bytes;
        chunks[w] = (u32)(all * share + 0.5);
        total += chunks[w];
    }
    CHECK(cudaMemcpy(d->chunks, chunks, sizeof chunks, cudaMemcpyHostToDevice));
    CHECK(reach_table_load(&d->table, &windows));
    return total;
}

/* The speed is only that of the strategy if every block had an SM of its own and all was read. */
static void check_tally(const device *d, const tally *t, const strategy *s, u64 chunks)
{
    char why[ASK_TEXT_BYTES];
    if (!reach_table_check(&d->table, why, sizeof why))
        give_up(why);
    for (int sm = 0; sm < ASK_MAX_SMS; sm++) {
        if (t->blocks_on_sm[sm] > 1)
            give_up("two blocks have run on one SM: is another job on this GPU?");
    }
    if (t->chunks_done != chunks) {
        snprintf(why, sizeof why, "%s: %llu of %llu chunks were read; a window has no SM", s->name,
                 (unsigned long long)t->chunks_done, (unsigned long long)chunks);
        give_up(why);
    }
}

/* One timed launch. */
static double run_strategy(device *d, const strategy *s, const struct options *options, timing *out)
{
    const u64 chunks = load_strategy(d, s, options);
    float milliseconds = 0;
    tally t;
    CHECK(reach_table_start(&d->table, 0));
    CHECK(cudaMemset(d->counted, 0, sizeof *d->counted));
    CHECK(cudaEventRecord(d->before));
    read_windows<<<d->sm_count, THREADS, d->shared_bytes>>>(d->table, d->memory, d->chunks,
                                                            options->seed, d->counted);
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(d->after));
    CHECK(cudaEventSynchronize(d->after));
    CHECK(cudaEventElapsedTime(&milliseconds, d->before, d->after));
    CHECK(cudaMemcpy(&t, d->counted, sizeof t, cudaMemcpyDeviceToHost));
    check_tally(d, &t, s, chunks);
    out->lines = chunks * CHUNK_LINES;
    out->mismatches += t.mismatches;
    return milliseconds;
}

/* Round by round, all strategies in each, so that a clock that drifts is fair to all. The first
 * round warms up. */
static void measure(device *d, const strategy *strategies, const struct options *options,
                    timing *timings)
{
    for (u32 round = 0; round <= options->repeats; round++) {
        for (int i = 0; i < STRATEGY_COUNT; i++) {
            const double ms = run_strategy(d, &strategies[i], options, &timings[i]);
            if (round > 0)
                timings[i].milliseconds[round - 1] = ms;
        }
    }
    for (int i = 0; i < STRATEGY_COUNT; i++) {
        timing *t = &timings[i];
        t->median_milliseconds = report_median(t->milliseconds, options->repeats);
        t->gbps = (double)t->lines * LINE_BYTES / (t->median_milliseconds * 1e6);
    }
}

/* What to do with so many bytes. */
static void ask(const char *uri, const char *gpu, u64 bytes, struct ask_scope *scope,
                struct ask_placement *placement)
{
    char why[ASK_TEXT_BYTES];
    if (!ask_scope(uri, gpu, bytes, scope, why) || !ask_placement(uri, gpu, bytes, placement, why))
        give_up(why);
}

int main(int argc, char **argv)
{
    static struct ask_chip chip;
    static struct ask_scope scope;
    static struct ask_placement placement;
    static strategy strategies[STRATEGY_COUNT];
    static timing timings[STRATEGY_COUNT];
    struct options options;
    char why[ASK_TEXT_BYTES], gpu[ASK_WORD_BYTES];
    device d;

    if (!options_parse(argc, argv, &options, why)) {
        fprintf(stderr, "random_read: %s\n", why);
        return 2;
    }
    if (options.help) {
        fputs(options_help, stdout);
        return EXIT_SUCCESS;
    }
    const int index = atoi(options.gpu);
    snprintf(gpu, sizeof gpu, "%s", options.gpu);
    if (!options.dry_run) {
        const cudaError_t result = cudaSetDevice(index);
        if (result != cudaSuccess) {
            snprintf(why, sizeof why, "CUDA's GPU %d cannot be used: %s", index,
                     cudaGetErrorString(result));
            give_up(why);
        }
        name_gpu(index, gpu, sizeof gpu);
    }
    if (!ask_chip(options.reachd, gpu, &chip, why))
        give_up(why);
    u64 bytes = (options.bytes ? options.bytes : chip.memory_bytes) / LINE_BYTES * LINE_BYTES;
    if (!options.dry_run)
        open_device(&options, index, &bytes, &d);
    ask(options.reachd, gpu, bytes, &scope, &placement);
    strategies_make(&placement, &chip, bytes, strategies);
    if (!options.dry_run) {
        measure(&d, strategies, &options, timings);
        close_device(&d);
    }
    const struct report report = {
        &placement, &chip,           &scope,      strategies, options.dry_run ? NULL : timings,
        bytes,      options.repeats, options.seed};
    report_print(stdout, &report);
    if (options.json && !report_write_json(options.json, &report, why))
        give_up(why);
    u64 mismatches = 0;
    for (int i = 0; i < STRATEGY_COUNT; i++)
        mismatches += timings[i].mismatches;
    return mismatches ? EXIT_FAILURE : EXIT_SUCCESS;
}
