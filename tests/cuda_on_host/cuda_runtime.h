/* cuda_runtime.h: enough of CUDA to run a kernel on the CPU, so that the headers of clients/cuda
 * are tested on machines without a GPU. Each thread of a block is a context of its own; between two
 * synchronizations the threads run in random order, so a missing barrier shows up as a wrong
 * result. Blocks run one after another. It is not a model of speed. Only one thread of the process
 * may use it at a time.
 */
#pragma once

/* The checked longjmp of glibc refuses to change to another stack. */
#undef _FORTIFY_SOURCE
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <setjmp.h>
#include <ucontext.h>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__    __attribute__((noinline))
#define __shared__      static
#define __grid_constant__
#define __launch_bounds__(...)

typedef int cudaError_t;
typedef struct cuda_stream *cudaStream_t;
enum { cudaSuccess = 0, cudaErrorInvalidValue = 1 };

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned n = 1) : x(n), y(1), z(1)
    {
    }
};

/* position or extent of a thread or a block in one dimension */
static inline dim3 place_of(unsigned n)
{
    dim3 at(n);
    at.y = at.z = 0;
    return at;
}

static dim3 threadIdx = place_of(0), blockIdx = place_of(0), blockDim, gridDim;

namespace cuda_on_host
{
enum { STACK_BYTES = 128 << 10, WARP = 32 };
enum state { READY, AT_WARP, AT_BLOCK, ENDED };

/* A thread begins with its context. After that, threads and the scheduler change by _longjmp,
 * because swapcontext makes a system call. */
struct thread {
    ucontext_t context;
    jmp_buf resumption;
    bool begun;
    std::unique_ptr<char[]> stack;
    state at;
    unsigned exchanges;  /* number of exchanges with its warp */
    unsigned deposit[2]; /* operands of the last two exchanges, by the parity of their number */
};

/* They are never destroyed, because a process may exit while a kernel runs. */
static std::vector<thread> &threads = *new std::vector<thread>;
static jmp_buf scheduler;
static unsigned current;
static uint64_t random_state = 1;
static const std::function<void()> *body;
static unsigned active =
    ~0u; /* lanes of each warp that a test lets run; the other lanes end at once */

static inline unsigned random_below(unsigned n)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)((random_state >> 33) % n);
}

static inline void wait_at(state at)
{
    threads[current].at = at;
    if (_setjmp(threads[current].resumption) == 0)
        _longjmp(scheduler, 1);
}

static inline void enter()
{
    (*body)();
    threads[current].at = ENDED;
    _longjmp(scheduler, 1);
}

/* Runs the current thread until it waits or ends. */
static __attribute__((noinline)) void run_current()
{
    if (_setjmp(scheduler) != 0)
        return;
    if (threads[current].begun)
        _longjmp(threads[current].resumption, 1);
    threads[current].begun = true;
    setcontext(&threads[current].context);
}

/* Releases the threads first .. end if all unfinished threads among them wait at `at`. */
static inline bool release(unsigned first, unsigned end, state at)
{
    unsigned waiting = 0;
    for (unsigned t = first; t < end; t++) {
        if (threads[t].at != at && threads[t].at != ENDED)
            return false;
        waiting += threads[t].at == at;
    }
    for (unsigned t = first; t < end; t++) {
        if (threads[t].at == at)
            threads[t].at = READY;
    }
    return waiting > 0;
}

static inline bool release_any(unsigned count)
{
    bool any = release(0, count, AT_BLOCK);
    for (unsigned w = 0; w < count; w += WARP)
        any = release(w, w + WARP < count ? w + WARP : count, AT_WARP) || any;
    return any;
}

static inline void run_block(unsigned count)
{
    threads.resize(count);
    for (unsigned t = 0; t < count; t++) {
        if (!threads[t].stack)
            threads[t].stack.reset(new char[STACK_BYTES]); /* few of its pages are used */
        getcontext(&threads[t].context);
        threads[t].context.uc_stack.ss_sp = threads[t].stack.get();
        threads[t].context.uc_stack.ss_size = STACK_BYTES;
        threads[t].context.uc_link = nullptr;
        threads[t].begun = false;
        threads[t].exchanges = 0;
        threads[t].at = READY;
        makecontext(&threads[t].context, enter, 0);
    }
    std::vector<unsigned> ready;
    for (;;) {
        ready.clear();
        for (unsigned t = 0; t < count; t++) {
            if (threads[t].at == READY)
                ready.push_back(t);
        }
        if (ready.empty() && !release_any(count))
            break;
        for (size_t n = ready.size(); n; n--) {
            const size_t i = random_below((unsigned)n);
            current = ready[i];
            ready[i] = ready[n - 1];
            threadIdx = place_of(current);
            run_current();
        }
    }
    for (const thread &t : threads) {
        if (t.at != ENDED) {
            fprintf(stderr, "the threads of a block wait for each other forever\n");
            abort();
        }
    }
}

/* Returns the values that all lanes of the warp deposit; every lane calls it. A lane cannot begin
 * the exchange after the next one before all lanes have read the values of this one. */
static inline void exchange(unsigned value, unsigned all[WARP])
{
    const unsigned first = current / WARP * WARP, parity = threads[current].exchanges++ % 2;
    threads[current].deposit[parity] = value;
    wait_at(AT_WARP);
    for (unsigned lane = 0; lane < WARP; lane++)
        all[lane] = first + lane < threads.size() ? threads[first + lane].deposit[parity] : 0;
}
} // namespace cuda_on_host

static inline void __syncthreads()
{
    cuda_on_host::wait_at(cuda_on_host::AT_BLOCK);
}

static inline void __syncwarp()
{
    cuda_on_host::wait_at(cuda_on_host::AT_WARP);
}

static inline unsigned __ballot_sync(unsigned mask, bool value)
{
    unsigned all[cuda_on_host::WARP], set = 0;
    cuda_on_host::exchange(value, all);
    for (unsigned lane = 0; lane < cuda_on_host::WARP; lane++)
        set |= (unsigned)(all[lane] != 0) << lane; /* a lane that has ended may have any value */
    return set & mask;
}

static inline bool __any_sync(unsigned mask, bool value)
{
    return __ballot_sync(mask, value) != 0;
}

static inline unsigned __shfl_up_sync(unsigned, unsigned value, unsigned distance)
{
    unsigned all[cuda_on_host::WARP];
    const unsigned lane = threadIdx.x % cuda_on_host::WARP;
    cuda_on_host::exchange(value, all);
    return lane >= distance ? all[lane - distance] : value;
}

template <class T> static inline T __shfl_sync(unsigned, T value, unsigned from)
{
    unsigned words[(sizeof(T) + 3) / 4] = {0}, all[cuda_on_host::WARP];
    memcpy(words, &value, sizeof value);
    for (unsigned &word : words) {
        cuda_on_host::exchange(word, all);
        word = all[from];
    }
    memcpy(&value, words, sizeof value);
    return value;
}

/* All lanes that the block has and that the test lets run are active. */
static inline unsigned __activemask()
{
    const unsigned first = threadIdx.x / cuda_on_host::WARP * cuda_on_host::WARP;
    const unsigned here =
        blockDim.x - first < cuda_on_host::WARP ? (1u << (blockDim.x - first)) - 1 : ~0u;
    return here & cuda_on_host::active;
}

static inline int __clz(unsigned bits)
{
    return bits ? __builtin_clz(bits) : 32;
}

static inline int __ffs(unsigned bits)
{
    return __builtin_ffs((int)bits);
}

static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((unsigned long long)a * b >> 32);
}

static inline unsigned __popc(unsigned bits)
{
    return (unsigned)__builtin_popcount(bits);
}

template <class T> static inline T atomicAdd(T *at, T value)
{
    const T old = *at;
    *at += value;
    return old;
}

template <class T> static inline T atomicCAS(T *at, T expected, T value)
{
    const T old = *at;
    *at = old == expected ? value : old;
    return old;
}

struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
};

template <class... P, class... A>
static cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(P...),
                                      A... arguments)
{
    const std::function<void()> call = [&] { kernel(arguments...); };
    cuda_on_host::body = &call; /* returns when the last block has ended */
    gridDim = config->gridDim;
    blockDim = config->blockDim;
    for (unsigned b = 0; b < gridDim.x; b++) {
        blockIdx = place_of(b);
        cuda_on_host::run_block(blockDim.x);
    }
    cuda_on_host::body = nullptr;
    return cudaSuccess;
}

static inline cudaError_t cudaMallocManaged(void **out, size_t bytes)
{
    *out = malloc(bytes);
    return *out ? cudaSuccess : cudaErrorInvalidValue;
}

static inline cudaError_t cudaFree(void *memory)
{
    free(memory);
    return cudaSuccess;
}

static inline cudaError_t cudaGetLastError()
{
    return cudaSuccess;
}
