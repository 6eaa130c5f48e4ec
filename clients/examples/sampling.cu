/* sampling.cu: random sampling (Karnagel 2017, sections 2.1 and 5.2): reads 4-byte words at random
 * positions and adds them up. Position i is a hash of i, over all of the memory. The order of a sum
 * does not matter, so a strategy may read the samples in any order.
 *
 *   naive                 any SM reads any sample
 *   scopes                for each scope all SMs scan all samples and read those in it
 *   filtered windows      the SMs of each window scan all samples and read those in it
 *   partitioned windows   samples are partitioned by window first
 */
#include "element.h"
#include "partition.cuh"

enum {
    IN_FLIGHT = 8,                  /* loads in flight per thread */
    STEPS = 16,                     /* batches of IN_FLIGHT loads in a piece of work */
    PIECE = 32 * IN_FLIGHT * STEPS, /* samples that a warp draws at a time */
    BATCH = 1 << 26                 /* samples that are partitioned at a time */
};

/* ---- on the device -------------------------------------------------------------------------- */

__global__ void fill(u32 *memory, u64 words)
{
    const u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < words; i += step)
        memory[i] = element_word(i);
}

static __device__ __forceinline__ void add_up(u64 sum, u64 *total)
{
    for (int lanes = 16; lanes; lanes /= 2)
        sum += __shfl_xor_sync(~0u, sum, lanes);
    if (threadIdx.x % 32 == 0)
        atomicAdd((unsigned long long *)total, (unsigned long long)sum);
}

/* Returns the sum of this thread's samples of the piece that begins with sample `first`.
 * position(i, &word) returns whether to read sample i, and its word. */
template <class Index, class Position>
static __device__ __forceinline__ u64 read_piece(const u32 *memory, Index first, Position position)
{
    u64 sum = 0;
    for (u32 step = 0; step < STEPS; step++) {
        const Index i = first + step * (32 * IN_FLIGHT) + threadIdx.x % 32;
        u32 v[IN_FLIGHT];
#pragma unroll
        for (u32 k = 0; k < IN_FLIGHT; k++) {
            u64 word;
            const bool wanted = position(i + k * 32, &word);
            v[k] = load_if(memory + word, wanted);
        }
#pragma unroll
        for (u32 k = 0; k < IN_FLIGHT; k++)
            sum += v[k];
    }
    return sum;
}

/* Scans all samples, and reads the ones in the window of this SM. */
__global__ void __launch_bounds__(JOB_THREADS, 1)
    sample(reach_table table, const u32 *memory, u64 words, u64 samples, u32 seed, u64 *total)
{
    reach_me me;
    if (!reach_enter(table, &me))
        return;
    const u64 first = me.first_byte / 4, length = me.length_bytes / 4;
    u64 sum = 0;
    REACH_PIECES(table, me, samples / PIECE, piece)
    {
        sum += read_piece(memory, (u64)piece * PIECE, [=](u64 i, u64 *word) {
            *word = element_random(i, seed, words);
            return element_inside(*word, first, length);
        });
    }
    add_up(sum, total);
}

/* Reads the samples in the list of this SM's window. */
__global__ void __launch_bounds__(JOB_THREADS, 1)
    sample_listed(reach_table table, const u32 *memory, u64 words, partition_lists lists, u64 base,
                  u32 seed, u64 *total)
{
    reach_me me;
    if (!reach_enter(table, &me))
        return;
    const u64 begin = lists.offsets[me.window];
    const u32 *numbers = lists.numbers + begin;
    const u32 count = (u32)(lists.offsets[me.window + 1] - begin);
    u64 sum = 0;
    REACH_PIECES(table, me, (count + PIECE - 1) / PIECE, piece)
    {
        sum += read_piece(memory, piece * PIECE, [=](u32 i, u64 *word) {
            const bool listed = i < count;
            *word = element_random(base + (listed ? __ldcs(numbers + i) : 0), seed, words);
            return listed;
        });
    }
    add_up(sum, total);
}

/* The functors for partition_run(). Sample `base + i` has number i. */
struct sample_number {
    __device__ u32 operator()(u64 i) const
    {
        return (u32)i;
    }
};
struct sample_byte {
    u64 base, words;
    u32 seed;
    __device__ u64 operator()(u32 i) const
    {
        return element_random(base + i, seed, words) * 4;
    }
};

/* ---- on the host ---------------------------------------------------------------------------- */

struct state {
    job_device device;
    u64 samples;
    u32 seed;
    u64 *total; /* on the device */
    partition_lists lists;
};

static bool open_job(void *user, const job_options *options, int index, char *uuid, char *why)
{
    state *s = (state *)user;
    s->samples = options->count / PIECE * PIECE;
    s->seed = options->seed;
    if (!s->samples)
        return job_fail(why, "--samples must be at least %u", (unsigned)PIECE);
    return job_device_open(&s->device, index, uuid, why) &&
           job_device_allocate(&s->device, &s->total, sizeof *s->total, why) &&
           partition_make<sample_number, sample_byte>(&s->device, &s->lists, BATCH, why);
}

static bool prepare(void *user, u64 *bytes, u64 reach_bytes, job_run *run, char *why)
{
    state *s = (state *)user;
    if (!job_device_prepare(&s->device, bytes, reach_bytes, why))
        return false;
    fill<<<job_blocks(&s->device) * 8, 256>>>((u32 *)s->device.memory, *bytes / 4);
    TRY(cudaGetLastError());
    for (u64 i = 0; i < s->samples; i++)
        run->reference.number[0] += element_word(element_random(i, s->seed, *bytes / 4));
    run->reference_known = 1;
    return true;
}

static bool launch(state *s, u32 pass, u64 words, char *why)
{
    const reach_table &table = s->device.tables[pass];
    TRY(reach_table_start(&table, 0));
    sample<<<job_blocks(&s->device), JOB_THREADS>>>(table, (const u32 *)s->device.memory, words,
                                                    s->samples, s->seed, s->total);
    TRY(cudaGetLastError());
    return true;
}

/* Measures the reads within the reach, and the scan with an empty window, which contains no
 * sample. */
static bool calibrate(void *user, double *in_reach_ms, double *scan_ms, char *why)
{
    state *s = (state *)user;
    job_device *d = &s->device;
    const auto in_reach = [=] { return launch(s, 0, d->in_reach_bytes / 4, why); };
    const auto scan = [=] { return launch(s, 0, d->bytes / 4, why); };
    return job_device_time(d, 0, d->in_reach_bytes, in_reach, in_reach_ms, why) &&
           job_device_time(d, 0, 0, scan, scan_ms, why);
}

static bool run_partitioned(state *s, const reach_windows &windows, char *why)
{
    const reach_table &table = s->device.tables[0];
    const u64 words = s->device.bytes / 4;
    for (u64 base = 0; base < s->samples; base += BATCH) {
        const u64 left = s->samples - base;
        const u32 count = (u32)(left < BATCH ? left : BATCH);
        const sample_byte bytes = {base, words, s->seed};
        if (!partition_run(&s->lists, windows, sample_number(), bytes, count, 0, why))
            return false;
        TRY(reach_table_start(&table, 0));
        sample_listed<<<job_blocks(&s->device), JOB_THREADS>>>(
            table, (const u32 *)s->device.memory, words, s->lists, base, s->seed, s->total);
        TRY(cudaGetLastError());
    }
    return true;
}

static bool run_choice(void *user, const job_choice *choice, const job_pass *passes, double *ms,
                       job_result *out, char *why)
{
    state *s = (state *)user;
    const bool partitioned = choice->strategy == REACH_PARTITIONED_WINDOWS;
    const auto all = [=] {
        for (u32 p = 0; p < choice->pass_count && !partitioned; p++) {
            if (!launch(s, p, s->device.bytes / 4, why))
                return false;
        }
        return !partitioned || run_partitioned(s, passes[0].windows, why);
    };
    TRY(cudaMemset(s->total, 0, sizeof *s->total));
    if (!job_device_run(&s->device, passes, choice->pass_count, all, ms, why))
        return false;
    TRY(cudaMemcpy(&out->number[0], s->total, sizeof(u64), cudaMemcpyDeviceToHost));
    return true;
}

static void describe(void *, const job_options *options, reach_job *out)
{
    out->access = REACH_READ;
    out->element_bytes = 4;
    out->transaction_bytes = 32;
    out->partition_bytes = sizeof(u32);
    out->accesses = options->count / PIECE * PIECE;
}

int main(int argc, char **argv)
{
    static state s;
    static const job sampling = {
        .name = "sampling",
        .title = "random sampling, 4-byte reads",
        .help = "  --samples N      to read, in whole pieces of 4096; default 256M\n",
        .unit = "samples",
        .result_names = {"sum"},
        .default_count = 1ull << 28,
        .state = &s,
        .open = open_job,
        .prepare = prepare,
        .calibrate = calibrate,
        .run = run_choice,
        .describe = describe,
        .close = job_device_close,
    };
    return job_main(argc, argv, &sampling);
}
