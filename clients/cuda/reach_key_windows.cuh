/* reach_key_windows.cuh: persistent kernels in which each window of an allocation serves the keys
 * that hash to it. Every window scans all keys and works on its own keys. reach_cuco.cuh and
 * reach_cuco_set.cuh include this header. It is header only and needs reach.cuh and
 * reach_keys.h. */
#ifndef REACH_KEY_WINDOWS_CUH
#define REACH_KEY_WINDOWS_CUH

#include "reach.cuh"
#include "reach_keys.h"

enum {
    REACH_KEY_THREADS = 512,
    REACH_KEYS_IN_FLIGHT = 4 /* keys per thread */,
    REACH_KEY_PIECE = 32 * REACH_KEYS_IN_FLIGHT * 8
};

/* Calls work(i, key, is_valid) for all keys. All 32 lanes of a warp call it together, also past the
 * end, with is_valid false there. `work` decides whether the key belongs to this window. */
template <class Key, class InputIt, class Work>
static __device__ __forceinline__ void reach_scan_keys(const reach_table &table, const reach_me &me,
                                                       InputIt first, uint64_t count, Work work)
{
    const uint32_t pieces = (uint32_t)((count + REACH_KEY_PIECE - 1) / REACH_KEY_PIECE);

    REACH_PIECES(table, me, pieces, piece)
    {
        const uint64_t begin = (uint64_t)piece * REACH_KEY_PIECE + threadIdx.x % 32;
        for (uint32_t at = 0; at < REACH_KEY_PIECE; at += 32 * REACH_KEYS_IN_FLIGHT) {
            Key keys[REACH_KEYS_IN_FLIGHT] = {};
#pragma unroll
            for (uint32_t k = 0; k < REACH_KEYS_IN_FLIGHT; k++)
                if (begin + at + 32 * k < count)
                    keys[k] = *(first + (begin + at + 32 * k));
#pragma unroll
            for (uint32_t k = 0; k < REACH_KEYS_IN_FLIGHT; k++) {
                const uint64_t i = begin + at + 32 * k;
                work(i, keys[k], i < count);
            }
        }
    }
}

/* Scans like reach_scan_keys, but calls work(i, key, is_valid) only for keys for which is_mine(key)
 * is true. is_mine must return false for keys of other windows. Keys are collected in shared memory
 * until they fill a warp, for work that takes as long for one lane as for all. All threads of a
 * block must call it. */
template <class Key, class InputIt, class IsMine, class Work>
static __device__ __forceinline__ void reach_scan_my_keys(const reach_table &table,
                                                          const reach_me &me, InputIt first,
                                                          uint64_t count, IsMine is_mine, Work work)
{
    __shared__ Key keys[REACH_KEY_THREADS / 32][64];
    __shared__ uint64_t places[REACH_KEY_THREADS / 32][64];
    const uint32_t warp = threadIdx.x / 32;
    const uint32_t lane = threadIdx.x % 32;
    uint32_t waiting = 0;

    const auto take = [&](uint32_t from, uint32_t many) {
        const Key key = lane < many ? keys[warp][from + lane] : Key{};
        const uint64_t i = lane < many ? places[warp][from + lane] : 0;
        __syncwarp();
        work(i, key, lane < many);
    };
    reach_scan_keys<Key>(table, me, first, count, [&](uint64_t i, const Key &key, bool is_valid) {
        const bool mine = is_valid && is_mine(key);
        const uint32_t all = __ballot_sync(UINT32_MAX, mine);
        const uint32_t at = waiting + __popc(all & ((1u << lane) - 1));
        if (mine) {
            keys[warp][at] = key;
            places[warp][at] = i;
        }
        waiting += __popc(all);
        __syncwarp();
        if (waiting >= 32)
            take(waiting -= 32, 32);
    });
    take(0, waiting);
}

/* The table of windows of one structure, and its launches. Use one stream at a time, because all
 * launches share the queues of the windows. */
class reach_key_windows
{
  public:
    reach_key_windows() = default;
    reach_key_windows(const reach_key_windows &) = delete;
    reach_key_windows &operator=(const reach_key_windows &) = delete;
    ~reach_key_windows()
    {
        close();
    }

    /* Opens windows for `bytes` of the current device in items of `item_bytes`. Makes a table of
     * some KiB, and waits. Returns cudaErrorInvalidValue if reach_windows_serve_all is false. */
    cudaError_t open(const struct reach_windows *windows, uint64_t bytes, uint64_t item_bytes)
    {
        int device;
        cudaError_t result;

        close();
        if (!reach_windows_serve_all(windows, bytes, item_bytes))
            return cudaErrorInvalidValue;
        if ((result = cudaGetDevice(&device)) == cudaSuccess &&
            (result = cudaDeviceGetAttribute(&sms_, cudaDevAttrMultiProcessorCount, device)) ==
                cudaSuccess &&
            (result = reach_table_make(&table_)) == cudaSuccess &&
            (result = reach_table_load(&table_, windows)) != cudaSuccess)
            close();
        return result;
    }

    void close()
    {
        reach_table_free(&table_);
        pieces_ = 0;
    }

    const reach_table &table() const
    {
        return table_;
    }

    /* Launches a kernel over `count` keys, with all blocks that can be resident. Enqueues on the
     * stream, allocates nothing and waits for nothing. Returns cudaErrorInvalidValue if the windows
     * are not open, or for too many keys. */
    template <class... Parameters, class... Arguments>
    cudaError_t launch(void (*kernel)(Parameters...), uint64_t count, cudaStream_t stream,
                       const Arguments &...arguments)
    {
        cudaLaunchConfig_t config = {};
        int per_sm = 0;
        cudaError_t result =
            cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, kernel, REACH_KEY_THREADS, 0);

        if (table_.window_count == 0 || count > (uint64_t)REACH_KEY_PIECE << 31)
            return cudaErrorInvalidValue; /* the pieces exceed the range of a queue */
        if (result != cudaSuccess || count == 0)
            return result;
        config.gridDim = dim3((uint32_t)(per_sm * sms_));
        config.blockDim = dim3(REACH_KEY_THREADS);
        config.stream = stream;
        pieces_ = (uint32_t)((count + REACH_KEY_PIECE - 1) / REACH_KEY_PIECE);
        result = reach_table_start(&table_, stream);
        return result ? result : cudaLaunchKernelEx(&config, kernel, arguments...);
    }

    /* Waits for the device. Returns false, with a message in `why`, if a block ran on an SM that is
     * not in the table. It also returns false if a window did not process all keys of the last
     * launch because none of its SMs ran. */
    bool check(char *why, size_t why_bytes) const
    {
        uint32_t drawn = 0;

        if (!reach_table_check(&table_, why, why_bytes))
            return false;
        for (uint32_t w = 0; pieces_ > 0 && w < table_.window_count; w++) {
            const cudaError_t result = cudaMemcpy(&drawn, table_.queues + w * REACH_QUEUE_WORDS,
                                                  sizeof drawn, cudaMemcpyDeviceToHost);
            if (result == cudaSuccess && drawn >= pieces_)
                continue;
            snprintf(why, why_bytes, "window %u served %u of %u pieces: %s", w, drawn, pieces_,
                     result ? cudaGetErrorString(result)
                            : "other work keeps its SMs; wait for that, then repeat the call");
            return false;
        }
        return true;
    }

  private:
    reach_table table_ = {};
    int sms_ = 0;
    uint32_t pieces_ = 0; /* pieces of the last launch */
};

#endif
