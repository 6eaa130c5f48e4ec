/* sampling.cu: random sampling (Karnagel 2017, sections 2.1 and 5.2): reads 4-byte words at random
 * positions and adds them up. Position i is a hash of i, over all of the memory, and the order of
 * the sum does not matter: so any strategy may read the samples in any order.
 *
 *   naive                 any SM reads any sample
 *   scopes                all SMs go over all samples once a scope and read those inside it
 *   filtered windows      the SMs of each window go over all samples and read those in it
 *   partitioned windows   samples are dealt to the windows first
 */
#include "deal.cuh"
#include "element.h"

enum {
    IN_FLIGHT = 8,                     /* loads that each thread has under way */
    STEPS = 16,                        /* of as many loads, in a piece of work */
    PIECE = 32 * IN_FLIGHT * STEPS,    /* samples that a warp draws at a time */
    DEALT_AT_A_TIME = 1 << 26,         /* samples */
    DEAL_ROOM = DEALT_AT_A_TIME * 4ull * 5 / 4
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

/* A sample is looked at by its position, and read if it lies in my window. */
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
        for (u32 step = 0; step < STEPS; step++) {
            const u64 i = (u64)piece * PIECE + step * (32 * IN_FLIGHT) + threadIdx.x % 32;
            u32 v[IN_FLIGHT];
#pragma unroll
            for (u32 k = 0; k < IN_FLIGHT; k++) {
                const u64 at = element_random(i + k * 32, seed, words);
                v[k] = load_if(memory + at, element_inside(at, first, length));
            }
#pragma unroll
            for (u32 k = 0; k < IN_FLIGHT; k++)
                sum += v[k];
        }
    }
    add_up(sum, total);
}

/* The samples of my window's list. */
__global__ void __launch_bounds__(JOB_THREADS, 1)
    sample_listed(reach_table table, const u32 *memory, u64 words, deal_lists lists, u64 base,
                  u32 seed, u64 *total)
{
    reach_me me;
    if (!reach_enter(table, &me))
        return;
    const u32 *numbers = lists.numbers + me.window * lists.capacity;
    const u32 count = lists.counts[me.window];
    u64 sum = 0;
    REACH_PIECES(table, me, (count + PIECE - 1) / PIECE, piece)
    {
        for (u32 step = 0; step < STEPS; step++) {
            const u32 i = piece * PIECE + step * (32 * IN_FLIGHT) + threadIdx.x % 32;
            u32 v[IN_FLIGHT];
#pragma unroll
            for (u32 k = 0; k < IN_FLIGHT; k++) {
                const bool there = i + k * 32 < count;
                const u32 number = there ? __ldcs(numbers + i + k * 32) : 0;
                v[k] = load_if(memory + element_random(base + number, seed, words), there);
            }
#pragma unroll
            for (u32 k = 0; k < IN_FLIGHT; k++)
                sum += v[k];
        }
    }
    add_up(sum, total);
}

/* For deal(): sample `base + i`, by its i. */
struct sample_number {
    u64 base, words;
    u32 seed;
    __device__ u32 number(u32 i) const
    {
        return i;
    }
    __device__ u64 byte(u32 i) const
    {
        return element_random(base + i, seed, words) * 4;
    }
};

/* ---- on the host ---------------------------------------------------------------------------- */

struct state {
    job_device device;
    u64 samples;
    u32 seed;
    u64 bytes, inside_bytes;
    u64 *total; /* on the device */
    deal_lists lists;
};

static bool open_job(void *user, const job_options *options, int index, char *uuid, char *why)
{
    state *s = (state *)user;
    s->samples = options->count / PIECE * PIECE;
    s->seed = options->seed;
    if (!s->samples) {
        snprintf(why, JOB_TEXT_BYTES, "--samples must be at least %u", (unsigned)PIECE);
        return false;
    }
    if (!job_device_open(&s->device, index, uuid, why))
        return false;
    TRY(cudaMalloc((void **)&s->total, sizeof *s->total));
    return deal_make(&s->lists, DEAL_ROOM, why);
}

static bool prepare(void *user, u64 *bytes, u64 reach_bytes, job_run *run, char *why)
{
    state *s = (state *)user;
    const u64 spare = 768ull << 20; /* what the driver takes when kernels are loaded */
    if (!job_device_take_memory(&s->device, spare, why) || !job_device_size(&s->device, bytes, why))
        return false;
    s->bytes = *bytes = *bytes / 512 * 512;
    s->inside_bytes = s->bytes < reach_bytes / 2 ? s->bytes : reach_bytes / 2 / 512 * 512;
    fill<<<job_blocks(&s->device) * 8, 256>>>((u32 *)s->device.memory, s->bytes / 4);
    TRY(cudaGetLastError());
    for (u64 i = 0; i < s->samples; i++)
        run->reference.number[0] += element_word(element_random(i, s->seed, s->bytes / 4));
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

/* Once to warm up, once for the clock. */
static bool time_one(state *s, u64 first_byte, u64 window_bytes, u64 words, double *ms, char *why)
{
    for (int i = 0; i < 2; i++) {
        if (!job_device_load_one(&s->device, first_byte, window_bytes, why) ||
            !job_device_begin(&s->device, why) || !launch(s, 0, words, why) ||
            !job_device_end(&s->device, ms, why))
            return false;
    }
    return true;
}

static bool inside(void *user, double *ms, char *why)
{
    state *s = (state *)user;
    return time_one(s, 0, s->inside_bytes, s->inside_bytes / 4, ms, why);
}

/* A window that no sample lies in. */
static bool look(void *user, double *ms, char *why)
{
    state *s = (state *)user;
    return time_one(s, s->bytes, 0, s->bytes / 4, ms, why);
}

static bool run_dealt(state *s, char *why)
{
    const reach_table &table = s->device.tables[0];
    const u64 words = s->bytes / 4;
    for (u64 base = 0; base < s->samples; base += DEALT_AT_A_TIME) {
        const u64 left = s->samples - base;
        const u32 count = (u32)(left < DEALT_AT_A_TIME ? left : DEALT_AT_A_TIME);
        const sample_number numbers = {base, words, s->seed};
        if (!deal_run(&s->device, table, numbers, count, DEAL_ROOM, &s->lists, 0, why))
            return false;
        TRY(reach_table_start(&table, 0));
        sample_listed<<<job_blocks(&s->device), JOB_THREADS>>>(
            table, (const u32 *)s->device.memory, words, s->lists, base, s->seed, s->total);
        TRY(cudaGetLastError());
    }
    return true;
}

static bool run_way(void *user, const job_way *way, const job_pass *passes, double *ms,
                    job_result *out, char *why)
{
    state *s = (state *)user;
    const bool dealt = way->strategy == REACH_PARTITIONED_WINDOWS;
    if (!job_device_load(&s->device, passes, way->pass_count, why))
        return false;
    TRY(cudaMemset(s->total, 0, sizeof *s->total));
    if (!job_device_begin(&s->device, why))
        return false;
    for (u32 p = 0; p < way->pass_count && !dealt; p++) {
        if (!launch(s, p, s->bytes / 4, why))
            return false;
    }
    if ((dealt && !run_dealt(s, why)) || !job_device_end(&s->device, ms, why) ||
        (dealt && !deal_check(&s->lists, s->device.tables[0].window_count, why)))
        return false;
    TRY(cudaMemcpy(&out->number[0], s->total, sizeof(u64), cudaMemcpyDeviceToHost));
    return true;
}

static void close_job(void *user)
{
    state *s = (state *)user;
    deal_free(&s->lists);
    cudaFree(s->total);
    job_device_close(&s->device);
}

static void describe(void *, const job_options *options, reach_job *out)
{
    out->access = REACH_READ;
    out->element_bytes = 4;
    out->transaction_bytes = 32;
    out->partition_bytes = sizeof(u32);
    out->accesses = options->count / PIECE * PIECE;
}

static const job_variant *variants(const job_options *)
{
    static const job_variant all[] = {
        {REACH_NAIVE, 0, "naive"},
        {REACH_SCOPES, 0, "scopes"},
        {REACH_FILTERED_WINDOWS, 0, "filtered windows"},
        {REACH_PARTITIONED_WINDOWS, 0, "partitioned windows"},
        {REACH_NAIVE, 0, NULL},
    };
    return all;
}

int main(int argc, char **argv)
{
    static state s;
    static job job;
    job.name = "sampling";
    job.title = "random sampling, 4-byte reads";
    job.help = "  --samples N      to read, in whole pieces of 4096; default 256M\n";
    job.unit = "samples";
    job.result_names[0] = "sum";
    job.default_count = 1ull << 28;
    job.state = &s;
    job.variants = variants;
    job.open = open_job;
    job.prepare = prepare;
    job.inside = inside;
    job.look = look;
    job.run = run_way;
    job.describe = describe;
    job.close = close_job;
    return job_main(argc, argv, &job);
}
