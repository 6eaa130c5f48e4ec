/* line_reads.cuh: random 128-byte lines read in the windows of a table, each word compared with the
 * value for its address. random_read and host_gather share the header. */
#pragma once

#include "element.h"
#include "job_device.cuh"

#define WARP      32u
#define IN_FLIGHT 8u /* loads in flight per warp */

/* ---- on the device -------------------------------------------------------------------------- */

/* Numbers that the kernel counts. */
struct tally {
    u64 chunks_done;
    u64 mismatches;
    u32 blocks_on_sm[REACH_SM_MAX];
};

/* A warp reads the lines of one chunk, one line at a time with all 32 lanes. Each lane computes one
 * line of a batch of 32 and shares it. Returns the number of wrong words of this lane. */
template <u32 CHUNK_LINES>
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
                v[j] = load_if(memory + (u64)line[j] * LINE_WORDS + lane, true);
            }
#pragma unroll
            for (u32 j = 0; j < IN_FLIGHT; j++)
                wrong += v[j] != element_line_word(line[j], lane);
        }
    }
    return wrong;
}

/* Launch one block per SM. The SM's id determines the window, and the queue of the window has the
 * remaining work. The next chunk is requested before the current one is read, so that no warp waits
 * for the queue. */
template <u32 CHUNK_LINES>
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
        wrong += read_chunk<CHUNK_LINES>(memory, me, seed, chunk);
        done++;
    }
    if (wrong)
        atomicAdd((unsigned long long *)&out->mismatches, (unsigned long long)wrong);
    if (lane == 0 && done)
        atomicAdd((unsigned long long *)&out->chunks_done, (unsigned long long)done);
}

/* ---- on the host ---------------------------------------------------------------------------- */

/* The data that launches of read_windows<CHUNK_LINES> share. A warp draws CHUNK_LINES at a time. */
template <u32 CHUNK_LINES> struct line_reads {
    u32 *chunks; /* [REACH_WINDOW_MAX], chunks of work in each window */
    tally *counted;
    int shared_bytes; /* dynamic shared memory that keeps a second block off an SM */

    bool open(job_device *d, int index, char *why)
    {
        int shared_per_sm = 0;
        TRY(cudaDeviceGetAttribute(&shared_per_sm, cudaDevAttrMaxSharedMemoryPerMultiprocessor,
                                   index));
        shared_bytes = shared_per_sm / 2 + 1024;
        TRY(cudaFuncSetAttribute(read_windows<CHUNK_LINES>,
                                 cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
        return job_device_make_tables(d, 1, why) &&
               job_device_allocate(d, &chunks, REACH_WINDOW_MAX * sizeof(u32), why) &&
               job_device_allocate(d, &counted, sizeof(tally), why);
    }

    /* Copies the windows and their work to the device. The share of a window in the work is its
     * share in the bytes. `*out_chunks` is the sum over all windows. */
    bool load(job_device *d, const reach_windows *windows, u64 lines, u64 *out_chunks, char *why)
    {
        u32 of_window[REACH_WINDOW_MAX] = {};
        const double all = (double)(lines / CHUNK_LINES);
        const double bytes = (double)job_windows_bytes(windows);
        *out_chunks = 0;
        for (u32 w = 0; w < windows->window_count; w++) {
            of_window[w] = (u32)(all * (double)windows->window[w].length_bytes / bytes + 0.5);
            *out_chunks += of_window[w];
        }
        TRY(cudaMemcpy(chunks, of_window, sizeof of_window, cudaMemcpyHostToDevice));
        TRY(reach_table_load(&d->tables[0], windows));
        TRY(reach_table_start(&d->tables[0], 0));
        TRY(cudaMemset(counted, 0, sizeof *counted));
        return true;
    }

    /* Checks the counts. The time measures these windows only if every block had its own SM and all
     * lines were read. */
    static bool check(const tally *t, u64 loaded, char *why)
    {
        for (int sm = 0; sm < REACH_SM_MAX; sm++) {
            if (t->blocks_on_sm[sm] > 1)
                return job_fail(why, "two blocks ran on one SM: is another job on this GPU?");
        }
        return t->chunks_done == loaded ||
               job_fail(why, "%llu of %llu chunks were read; a window has no SM",
                        (unsigned long long)t->chunks_done, (unsigned long long)loaded);
    }

    /* Makes one timed launch that reads about `lines`; `*out_lines` is the exact number. Adds to
     * `*mismatches`. */
    bool run(job_device *d, const u32 *memory, const reach_windows *windows, u64 lines, u32 seed,
             double *out_ms, u64 *out_lines, u64 *mismatches, char *why)
    {
        u64 loaded = 0;
        tally t;
        if (!load(d, windows, lines, &loaded, why) || !job_device_begin(d, why))
            return false;
        read_windows<CHUNK_LINES><<<job_blocks(d), JOB_THREADS, shared_bytes>>>(
            d->tables[0], memory, chunks, seed, counted);
        if (!job_device_end(d, out_ms, why))
            return false;
        TRY(cudaMemcpy(&t, counted, sizeof t, cudaMemcpyDeviceToHost));
        *out_lines = loaded * CHUNK_LINES;
        *mismatches += t.mismatches;
        return check(&t, loaded, why);
    }
};
