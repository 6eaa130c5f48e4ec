/* random_read.cu: a job that asks reachd in which window each SM should work, and what it gains.
 *
 * A GPU translates addresses with small tables. As long as the memory that an SM accesses at random
 * fits the table that its group of SMs shares, memory limits the throughput; out of reach,
 * translation does. So a job over a larger allocation should confine each group to a window of its
 * own. Which SMs form a group, and how long a window may be, differs from chip to chip: the daemon
 * has measured it.
 *
 * The steps, for a job of your own:
 *   1. allocate                                            open_device()
 *   2. get the placement of that many bytes                get_answers()
 *   3. launch one block per SM; each block looks up its    read_windows(), with reach.cuh
 *      window and draws work from that window's queue
 *      until the queue is empty
 *
 * To show the gain, the same kernel runs four times with four different tables (random_read.h).
 * Each strategy reads the same number of lines, each window in proportion to its length, every line
 * of a window with the same probability. The time ends when the last SM has finished. Memory holds
 * a known function of the address, and every word that is read is compared with it.
 */
#include "element.h"
#include "job_device.cuh"
#include "random_read.h"

#include <cstdlib>

#define WARP           32u
#define IN_FLIGHT      8u   /* loads in flight per warp */
#define CHUNK_LINES    512u /* drawn by a warp at a time: some 90 us of work */
#define WORDS_PER_LINE (LINE_BYTES / 4u)

static const char help[] =
    "random_read: reads random 128-byte lines of one large allocation, in four ways: in a region\n"
    "within reach, naively over everything, in windows by SM, and as reachd recommends.\n"
    "\n"
    "  --reachd URI    source of answers: unix:/path, http://host:port, or\n"
    "                  file:/fingerprint.json; default as libreach chooses\n"
    "  --gpu N         CUDA's index of the GPU, default 0\n"
    "  --bytes SIZE    of the allocation, such as 79GiB; default: the largest possible\n"
    "  --lines N       lines that each strategy reads, default 2^30\n"
    "  --repeats N     timed repeats, default 5\n"
    "  --seed N        of the random lines, default 1\n"
    "  --json FILE     also write the result as JSON\n"
    "  --dry-run       print which SM would read where and stop; needs no GPU. --gpu is then the\n"
    "                  daemon's index or a UUID\n"
    "\n"
    "Exit status: 0 measured, 1 failed, 2 wrong options.\n";
static const job_limits limits = {1, 1ull << 39, 1ull << 31, JOB_MAX_REPEATS, UINT32_MAX};

/* ---- on the device -------------------------------------------------------------------------- */

/* Counted by the kernel. */
struct tally {
    u64 chunks_done;
    u64 mismatches;
    u32 blocks_on_sm[REACH_SM_MAX];
};

/* The contents of memory: different in every line, and in every word of a line. */
static __device__ __forceinline__ u32 word_at(u32 line, u32 word)
{
    return line * 0x9e3779b1u + word * 0x85ebca6bu + 1;
}

__global__ void fill(u32 *memory, u64 lines)
{
    const u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < lines * WORDS_PER_LINE; i += step)
        memory[i] = word_at((u32)(i / WORDS_PER_LINE), (u32)(i % WORDS_PER_LINE));
}

/* A warp reads the lines of one chunk, one line at a time with all 32 lanes. Each lane computes one
 * line of a batch of 32 and shares it. Returns the number of wrong words of this lane. */
static __device__ u32 read_chunk(const u32 *memory, const reach_me &me, u32 seed, u32 chunk)
{
    const u32 first_line = (u32)(me.first_byte / LINE_BYTES);
    const u32 lines = (u32)(me.length_bytes / LINE_BYTES);
    const u32 key = (seed * REACH_WINDOW_MAX + me.window) * 0x632be5abu;
    const u32 lane = threadIdx.x % WARP;
    u32 wrong = 0;
    for (u32 batch = 0; batch < CHUNK_LINES; batch += WARP) {
        const u32 i = chunk * CHUNK_LINES + batch + lane;
        const u32 mine = first_line + __umulhi(element_mix32(i * 0x9e3779b9u + key), lines);
#pragma unroll 1
        for (u32 k = 0; k < WARP; k += IN_FLIGHT) {
            u32 line[IN_FLIGHT], v[IN_FLIGHT];
#pragma unroll
            for (u32 j = 0; j < IN_FLIGHT; j++) {
                line[j] = __shfl_sync(~0u, mine, k + j);
                v[j] = load_if(memory + (u64)line[j] * WORDS_PER_LINE + lane, true);
            }
#pragma unroll
            for (u32 j = 0; j < IN_FLIGHT; j++)
                wrong += v[j] != word_at(line[j], lane);
        }
    }
    return wrong;
}

/* One block per SM. The SM's id gives the window, the window's queue the remaining work. The next
 * chunk is requested before the current one is read, so that no warp waits for the queue. */
__global__ void __launch_bounds__(JOB_THREADS, 1)
    read_windows(reach_table table, const u32 *memory, const u32 *chunks, u32 seed, tally *out)
{
    const u32 lane = threadIdx.x % WARP;
    reach_me me;
    if (threadIdx.x == 0)
        atomicAdd(&out->blocks_on_sm[min(reach_sm_id(), REACH_SM_MAX - 1u)], 1u);
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

/* Shared by all launches. */
struct device {
    job_device base;
    u32 *memory;
    u32 *chunks; /* [REACH_WINDOW_MAX]: of work in each window */
    tally *counted;
    int shared_bytes; /* dynamic shared memory that keeps a second block off an SM */
};

/* Allocates and fills `*bytes`; 0: the largest allocation. Nothing is allocated after that. */
static bool open_device(device *d, int index, u64 *bytes, char *why)
{
    int shared_per_sm = 0;
    TRY(cudaDeviceGetAttribute(&shared_per_sm, cudaDevAttrMaxSharedMemoryPerMultiprocessor, index));
    d->shared_bytes = shared_per_sm / 2 + 1024;
    TRY(cudaFuncSetAttribute(read_windows, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             d->shared_bytes));
    if (!job_device_make_tables(&d->base, 1, why) ||
        !job_device_allocate(&d->base, &d->chunks, REACH_WINDOW_MAX * sizeof(u32), why) ||
        !job_device_allocate(&d->base, &d->counted, sizeof(tally), why))
        return false;
    if (*bytes ? !job_device_allocate(&d->base, &d->memory, *bytes, why)
               : !job_device_allocate_largest(&d->base, 0, why))
        return false;
    if (*bytes == 0) {
        d->memory = (u32 *)d->base.memory;
        *bytes = d->base.memory_bytes;
    }
    fill<<<job_blocks(&d->base) * 8, 256>>>(d->memory, *bytes / LINE_BYTES);
    TRY(cudaGetLastError());
    TRY(cudaDeviceSynchronize());
    return true;
}

/* Copies the windows and the work of one strategy to the device. The share of a window in the work
 * is its share in the bytes. `*out_chunks`: of all windows together. */
static bool load_strategy(device *d, const strategy *s, u64 lines, u64 *out_chunks, char *why)
{
    static u32 chunks[REACH_WINDOW_MAX];
    const double all = (double)(lines / CHUNK_LINES);
    *out_chunks = 0;
    for (u32 w = 0; w < s->windows.window_count; w++) {
        const double share = (double)s->windows.window[w].length_bytes / (double)s->region_bytes;
        chunks[w] = (u32)(all * share + 0.5);
        *out_chunks += chunks[w];
    }
    TRY(cudaMemcpy(d->chunks, chunks, sizeof chunks, cudaMemcpyHostToDevice));
    TRY(reach_table_load(&d->base.tables[0], &s->windows));
    TRY(reach_table_start(&d->base.tables[0], 0));
    TRY(cudaMemset(d->counted, 0, sizeof *d->counted));
    return true;
}

/* The time is that of the strategy only if every block had an SM of its own and read everything. */
static bool check_tally(const tally *t, const strategy *s, u64 chunks, char *why)
{
    for (int sm = 0; sm < REACH_SM_MAX; sm++) {
        if (t->blocks_on_sm[sm] > 1)
            return job_fail(why, "two blocks ran on one SM: is another job on this GPU?");
    }
    return t->chunks_done == chunks ||
           job_fail(why, "%s: %llu of %llu chunks were read; a window has no SM", s->name,
                    (unsigned long long)t->chunks_done, (unsigned long long)chunks);
}

/* One timed launch. */
static bool run_strategy(device *d, const strategy *s, const job_options *options, double *out_ms,
                         timing *out, char *why)
{
    u64 chunks = 0;
    tally t;
    if (!load_strategy(d, s, options->count, &chunks, why) || !job_device_begin(&d->base, why))
        return false;
    read_windows<<<job_blocks(&d->base), JOB_THREADS, d->shared_bytes>>>(
        d->base.tables[0], d->memory, d->chunks, options->seed, d->counted);
    if (!job_device_end(&d->base, out_ms, why))
        return false;
    TRY(cudaMemcpy(&t, d->counted, sizeof t, cudaMemcpyDeviceToHost));
    out->lines = chunks * CHUNK_LINES;
    out->mismatches += t.mismatches;
    return check_tally(&t, s, chunks, why);
}

/* Round by round with all strategies in each, so that a drifting clock affects all equally. The
 * first round warms up. */
static bool measure(device *d, const strategy *strategies, const job_options *options,
                    timing *timings, char *why)
{
    for (u32 round = 0; round <= options->repeats; round++) {
        for (int i = 0; i < STRATEGY_COUNT; i++) {
            double ms = 0;
            if (!run_strategy(d, &strategies[i], options, &ms, &timings[i], why))
                return false;
            if (round > 0)
                timings[i].milliseconds[round - 1] = ms;
        }
    }
    for (int i = 0; i < STRATEGY_COUNT; i++)
        timing_derive(&timings[i], options->repeats);
    return true;
}

/* Scope and placement of `bytes`. */
static bool get_answers(struct reach *reach, const char *gpu, u64 bytes, answers *out, char *why)
{
    const reach_scope_request scope = {sizeof scope, bytes};
    const reach_placement_request request = {sizeof request, bytes};
    reach_error error;
    if (reach_get_scope(reach, gpu, &scope, &out->scope, &error) != REACH_OK ||
        reach_get_placement(reach, gpu, &request, &out->placement, &error) != REACH_OK)
        return job_fail(why, "%s", error.text);
    const reach_placement *placement = reach_answer_placement(out->placement);
    return placement->windows.window_count != 0 ||
           job_fail(why, "there are no windows (%s): %.400s", reach_advice_name(placement->advice),
                    placement->reason);
}

/* Everything after the options. False also if words were read wrong. */
static bool run(device *d, const job_options *options, struct reach **reach, answers *found,
                char *why)
{
    static strategy strategies[STRATEGY_COUNT];
    static timing timings[STRATEGY_COUNT];
    const bool dry = options->dry_run;
    const int index = atoi(options->gpu);
    u64 bytes = options->bytes[0] / LINE_BYTES * LINE_BYTES, mismatches = 0;
    char gpu[REACH_UUID_BYTES];
    reach_error error;
    snprintf(gpu, sizeof gpu, "%s", options->gpu);
    if (!dry && !job_device_open(&d->base, index, gpu, why))
        return false;
    if (reach_open(options->uri, reach, &error) != REACH_OK ||
        reach_get_fingerprint(*reach, gpu, &found->fingerprint, &error) != REACH_OK)
        return job_fail(why, "%s", error.text);
    if (dry && bytes == 0)
        bytes =
            reach_answer_fingerprint(found->fingerprint)->memory_bytes / LINE_BYTES * LINE_BYTES;
    if ((!dry && !open_device(d, index, &bytes, why)) ||
        !get_answers(*reach, gpu, bytes, found, why))
        return false;
    strategies_make(found, bytes, strategies);
    if (!dry && !measure(d, strategies, options, timings, why))
        return false;
    const report report = {found, strategies, dry ? NULL : timings, bytes, options};
    report_print(stdout, &report);
    if (options->json && !report_write_json(options->json, &report, why))
        return false;
    for (const timing &t : timings)
        mismatches += t.mismatches;
    return mismatches == 0 ||
           job_fail(why, "%llu words were read wrong", (unsigned long long)mismatches);
}

int main(int argc, char **argv)
{
    static device d;
    static const job job = {
        .name = "random_read",
        .help = help,
        .unit = "lines",
        .default_count = 1ull << 30, /* 128 GiB of reads: some 45 ms at 3 TB/s */
        .limits = &limits,
    };
    job_options options;
    char why[JOB_TEXT_BYTES];
    struct reach *reach = NULL;
    answers found = {};
    if (!job_options_parse(argc, argv, &job, &options, why)) {
        fprintf(stderr, "random_read: %s\n", why);
        return 2;
    }
    if (options.help) {
        fputs(help, stdout);
        return EXIT_SUCCESS;
    }
    const bool good = run(&d, &options, &reach, &found, why);
    if (!good)
        fprintf(stderr, "random_read: %s\n", why);
    for (struct reach_answer *answer : {found.fingerprint, found.scope, found.placement})
        reach_answer_free(answer);
    reach_close(reach);
    if (!options.dry_run)
        job_device_close(&d.base);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
