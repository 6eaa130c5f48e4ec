/* job_device.cuh: what the jobs of the papers share on the side of CUDA: opening a GPU, taking its
 * memory, tables for passes, timing, loads under a predicate. */
#ifndef REACH_EXAMPLES_JOB_DEVICE_CUH
#define REACH_EXAMPLES_JOB_DEVICE_CUH

#include "job.h"
#include "reach.cuh"

#include <vector>

typedef uint32_t u32;
typedef uint64_t u64;

/* In functions that return false with a sentence in `why`. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        const cudaError_t result_ = (call);                                                        \
        if (result_ != cudaSuccess) {                                                              \
            snprintf(why, JOB_TEXT_BYTES, "%s: %s", #call, cudaGetErrorString(result_));           \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

/* One block an SM keeps 32 warps with 64 registers each; more warps gained nothing. */
enum { JOB_THREADS = 1024, JOB_WARPS = JOB_THREADS / 32 };

/* ---- on the device -------------------------------------------------------------------------- */

/* 0 where `wanted` is false, without a branch, and past the SM's own cache. */
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

/* A GPU that is open, its largest allocation, and one table for each pass under way. */
struct job_device {
    int sm_count;
    char *memory;
    u64 memory_bytes;
    std::vector<reach_table> tables;
    cudaEvent_t before, after;
};

/* As many blocks as the GPU holds at a time. */
static inline u32 job_blocks(const job_device *d)
{
    return (u32)d->sm_count;
}

static inline bool job_device_open(job_device *d, int index, char uuid[REACH_UUID_BYTES], char *why)
{
    cudaDeviceProp properties;
    TRY(cudaSetDevice(index));
    TRY(cudaGetDeviceProperties(&properties, index));
    TRY(cudaEventCreate(&d->before));
    TRY(cudaEventCreate(&d->after));
    reach_uuid_text((const unsigned char *)properties.uuid.bytes, false, uuid);
    d->sm_count = properties.multiProcessorCount;
    return true;
}

/* Takes all memory that is free but for `spare_bytes`, once; the driver keeps some for itself. */
static inline bool job_device_take_memory(job_device *d, u64 spare_bytes, char *why)
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
        (void)cudaGetLastError(); /* "out of memory" was an answer, not a fault */
    }
    snprintf(why, JOB_TEXT_BYTES, "there is no free memory on this GPU");
    return false;
}

/* The front of it that a size asks for; 0: all, in whole entries of a TLB. */
static inline bool job_device_size(const job_device *d, u64 *bytes, char *why)
{
    if (*bytes == 0)
        *bytes = d->memory_bytes;
    if (*bytes <= d->memory_bytes)
        return true;
    snprintf(why, JOB_TEXT_BYTES, "%.2f GiB do not fit: %.2f GiB are left for the job's data",
             (double)*bytes / (1 << 30), (double)d->memory_bytes / (1 << 30));
    return false;
}

/* One table for each pass. */
static inline bool job_device_load(job_device *d, const job_pass *passes, u32 count, char *why)
{
    while (d->tables.size() < count) {
        reach_table table;
        TRY(reach_table_make(&table));
        d->tables.push_back(table);
    }
    for (u32 p = 0; p < count; p++)
        TRY(reach_table_load(&d->tables[p], &passes[p].windows));
    return true;
}

static inline bool job_device_check(const job_device *d, char *why)
{
    for (const reach_table &table : d->tables) {
        if (!reach_table_check(&table, why, JOB_TEXT_BYTES))
            return false;
    }
    return true;
}

/* One window for all SMs in the first table. */
static inline bool job_device_load_one(job_device *d, u64 first_byte, u64 length_bytes, char *why)
{
    static job_pass one;
    job_one_window(first_byte, length_bytes, REACH_SM_MAX, &one);
    return job_device_load(d, &one, 1, why);
}

static inline bool job_device_begin(job_device *d, char *why)
{
    TRY(cudaEventRecord(d->before));
    return true;
}

/* Milliseconds since job_device_begin, on the GPU. */
static inline bool job_device_end(job_device *d, double *out_milliseconds, char *why)
{
    float milliseconds = 0;
    TRY(cudaGetLastError());
    TRY(cudaEventRecord(d->after));
    TRY(cudaEventSynchronize(d->after));
    TRY(cudaEventElapsedTime(&milliseconds, d->before, d->after));
    *out_milliseconds = milliseconds;
    return job_device_check(d, why);
}

static inline void job_device_close(job_device *d)
{
    for (reach_table &table : d->tables)
        reach_table_free(&table);
    d->tables.clear();
    cudaFree(d->memory);
}

#endif
