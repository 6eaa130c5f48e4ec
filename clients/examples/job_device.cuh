/* job_device.cuh: the device side that the example jobs share: opening a GPU, its memory, tables of
 * windows for the passes, timing, predicated loads. */
#pragma once

#include "job.h"
#include "reach.cuh"

#include <vector>

typedef uint32_t u32;
typedef uint64_t u64;

/* Checks a CUDA call in a function or lambda that returns false with a message in `why`. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        const cudaError_t result_ = (call);                                                        \
        if (result_ != cudaSuccess)                                                                \
            return job_fail(why, "%s: %s", #call, cudaGetErrorString(result_));                    \
    } while (0)

/* One block per SM keeps 32 warps with 64 registers each; more warps gain nothing. */
enum { JOB_THREADS = 1024 };

/* ---- on the device -------------------------------------------------------------------------- */

/* Loads a word without a branch and without the SM's own cache. Returns 0 if `wanted` is false. */
static __device__ __forceinline__ u32 load_if(const u32 *address, bool wanted)
{
    u32 v;
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; mov.u32 %0, 0;"
                 " @p ld.global.cg.u32 %0, [%1]; }"
                 : "=r"(v)
                 : "l"(address), "r"((u32)wanted)
                 : "memory");
    return v;
}

/* ---- on the host ---------------------------------------------------------------------------- */

/* An open GPU and all allocations of a job on it. It must be the first member of a job's state. */
struct job_device {
    int sm_count;
    char *memory; /* the job's data: the largest allocation */
    u64 memory_bytes;
    u64 bytes;                       /* bytes that the current size uses */
    u64 in_reach_bytes;              /* bytes that a calibration within the reach uses */
    std::vector<void *> owned;       /* other allocations */
    std::vector<reach_table> tables; /* one table per pass */
    cudaEvent_t before, after;
};

/* Returns the number of blocks that the GPU holds at a time. */
static inline u32 job_blocks(const job_device *d)
{
    return (u32)d->sm_count;
}

static inline bool job_device_open(job_device *d, int index, char uuid[REACH_UUID_BYTES], char *why)
{
    cudaDeviceProp properties;
    const cudaError_t result = cudaSetDevice(index);
    if (result != cudaSuccess)
        return job_fail(why, "CUDA's GPU %d cannot be used: %s", index, cudaGetErrorString(result));
    TRY(cudaGetDeviceProperties(&properties, index));
    TRY(cudaEventCreate(&d->before));
    TRY(cudaEventCreate(&d->after));
    reach_uuid_text((const unsigned char *)properties.uuid.bytes, false, uuid);
    d->sm_count = properties.multiProcessorCount;
    return true;
}

/* Allocates device memory that job_device_close frees. */
template <class T> static bool job_device_allocate(job_device *d, T **out, u64 bytes, char *why)
{
    const cudaError_t result = cudaMalloc((void **)out, bytes);
    if (result != cudaSuccess)
        return job_fail(why, "cannot allocate %llu bytes on the GPU: %s", (unsigned long long)bytes,
                        cudaGetErrorString(result));
    d->owned.push_back(*out);
    return true;
}

/* Allocates all free memory except `spare_bytes`, once; the driver keeps some for itself. */
static inline bool job_device_allocate_largest(job_device *d, u64 spare_bytes, char *why)
{
    const u64 step = 32ull << 20;
    size_t free_bytes = 0, total_bytes = 0;
    if (d->memory)
        return true;
    TRY(cudaMemGetInfo(&free_bytes, &total_bytes));
    for (u64 size = free_bytes > spare_bytes ? (free_bytes - spare_bytes) / step * step : 0; size;
         size -= step) {
        const cudaError_t result = cudaMalloc((void **)&d->memory, size);
        if (result == cudaSuccess) {
            d->memory_bytes = size;
            return true;
        }
        if (result != cudaErrorMemoryAllocation)
            TRY(result);
        (void)cudaGetLastError(); /* "out of memory" is expected here */
    }
    return job_fail(why, "there is no free memory on this GPU");
}

/* Allocates the memory and chooses the size: `*bytes`, or all memory if it is 0, in multiples of
 * 512. */
static inline bool job_device_prepare(job_device *d, u64 *bytes, u64 reach_bytes, char *why)
{
    const u64 spare = 768ull << 20; /* memory that the driver takes when kernels are loaded */
    if (!job_device_allocate_largest(d, spare, why))
        return false;
    if (*bytes > d->memory_bytes)
        return job_fail(why, "%.2f GiB do not fit: %.2f GiB are left for the job's data",
                        (double)*bytes / (1 << 30), (double)d->memory_bytes / (1 << 30));
    d->bytes = *bytes = (*bytes ? *bytes : d->memory_bytes) / 512 * 512;
    d->in_reach_bytes = d->bytes < reach_bytes / 2 ? d->bytes : reach_bytes / 2 / 512 * 512;
    return true;
}

static inline bool job_device_make_tables(job_device *d, u32 count, char *why)
{
    while (d->tables.size() < count) {
        reach_table table;
        TRY(reach_table_make(&table));
        d->tables.push_back(table);
    }
    return true;
}

/* Makes one table for each pass. */
static inline bool job_device_load(job_device *d, const job_pass *passes, u32 count, char *why)
{
    if (!job_device_make_tables(d, count, why))
        return false;
    for (u32 p = 0; p < count; p++)
        TRY(reach_table_load(&d->tables[p], &passes[p].windows));
    return true;
}

static inline bool job_device_begin(job_device *d, char *why)
{
    TRY(cudaEventRecord(d->before));
    return true;
}

/* Returns milliseconds since job_device_begin, on the GPU. Returns false also if an SM is in no
 * table. */
static inline bool job_device_end(job_device *d, double *out_milliseconds, char *why)
{
    float milliseconds = 0;
    TRY(cudaGetLastError());
    TRY(cudaEventRecord(d->after));
    TRY(cudaEventSynchronize(d->after));
    TRY(cudaEventElapsedTime(&milliseconds, d->before, d->after));
    *out_milliseconds = milliseconds;
    for (const reach_table &table : d->tables) {
        if (!reach_table_check(&table, why, JOB_TEXT_BYTES))
            return false;
    }
    return true;
}

/* Returns milliseconds of launch(), a bool function, with `count` passes loaded. */
template <class Launch>
static bool job_device_run(job_device *d, const job_pass *passes, u32 count, Launch launch,
                           double *out_milliseconds, char *why)
{
    return job_device_load(d, passes, count, why) && job_device_begin(d, why) && launch() &&
           job_device_end(d, out_milliseconds, why);
}

/* Returns milliseconds with one window for all SMs. The first of two runs warms up. */
template <class Launch>
static bool job_device_time(job_device *d, u64 first_byte, u64 length_bytes, Launch launch,
                            double *out_milliseconds, char *why)
{
    static job_pass one;
    job_one_window(first_byte, length_bytes, REACH_SM_MAX, &one);
    return job_device_run(d, &one, 1, launch, out_milliseconds, why) &&
           job_device_run(d, &one, 1, launch, out_milliseconds, why);
}

/* The `close` function of a job. */
static inline void job_device_close(void *state)
{
    job_device *d = (job_device *)state;
    for (reach_table &table : d->tables)
        reach_table_free(&table);
    for (void *memory : d->owned)
        cudaFree(memory);
    d->tables.clear();
    d->owned.clear();
    cudaFree(d->memory);
}
