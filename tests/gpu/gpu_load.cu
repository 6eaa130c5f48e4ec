/* gpu_load.cu: a neighbor that holds device memory, or that works on the GPU.
 *
 *     gpu_load --free            prints "FREE TOTAL", the bytes of device memory, and exits
 *     gpu_load --leave BYTES     takes all memory except BYTES, prints one line, and holds the
 *                                memory until standard input ends
 *     gpu_load --read BYTES      reads at random in BYTES from all SMs, without a pause, until
 *                                standard input ends
 *     gpu_load --work KIND SIZE  works without a pause until standard input ends
 *
 * The kinds of work, which is queued batch after batch:
 *
 *     long MS     kernels of MS milliseconds that read at random on all SMs
 *     short US    kernels of US microseconds on all SMs
 *     copy BYTES  copies of BYTES on the device
 *
 * With --work the program prints "working". For each input line "progress" it prints "STEPS
 * SECONDS", the number of steps so far and their time. "pause" and "go" stop and resume the work.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <chrono>
#include <poll.h>
#include <stdint.h>
#include <unistd.h>

#define CHECK(call) check((call), #call)

static void check(cudaError_t result, const char *call)
{
    if (result == cudaSuccess)
        return;
    fprintf(stderr, "gpu_load: %s: %s\n", call, cudaGetErrorString(result));
    exit(EXIT_FAILURE);
}

/* Takes pieces of `piece` bytes while more than `leave` would stay free. */
static void take_pieces(size_t piece, size_t leave)
{
    for (;;) {
        size_t free_bytes, total_bytes;
        void *memory;
        CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
        if (free_bytes < leave + piece)
            return;
        const cudaError_t result = cudaMalloc(&memory, piece);
        if (result == cudaErrorMemoryAllocation)
            return;
        CHECK(result);
    }
}

/* Makes dependent loads at random places of `words` for some milliseconds. */
__global__ void read_at_random(const uint64_t *words, uint64_t count, uint64_t *sink)
{
    uint64_t x = 88172645463325252ull + blockIdx.x * 7919ull + threadIdx.x;
    uint64_t sum = 0;
    for (int i = 0; i < 4096; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        sum += __ldcg(&words[(x + sum) % count]);
    }
    if (sum == 1)
        *sink = sum;
}

static int read_until_told(size_t bytes)
{
    struct pollfd in = {STDIN_FILENO, POLLIN, 0};
    uint64_t *words;
    bool said = false;
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    CHECK(cudaMalloc(&words, bytes));
    CHECK(cudaMemset(words, 0, bytes));
    while (poll(&in, 1, 0) == 0) {
        for (int i = 0; i < 4; i++)
            read_at_random<<<properties.multiProcessorCount * 4, 256>>>(words, bytes / 8, words);
        CHECK(cudaStreamSynchronize(0));
        if (!said) {
            printf("reading\n");
            fflush(stdout);
        }
        said = true;
    }
    return EXIT_SUCCESS;
}

/* Reads at random for `ns`. Each thread adds its loads to *steps now and then, so that a kernel of
 * seconds shows its progress. It ends early when *stop is set. */
__global__ void work_for(const uint64_t *words, uint64_t count, uint64_t ns,
                         unsigned long long *steps, const volatile int *stop)
{
    uint64_t x = 88172645463325252ull + blockIdx.x * 7919ull + threadIdx.x;
    uint64_t sum = 0;
    uint64_t start, now;
    uint32_t turns = 0;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        for (int i = 0; i < 16; i++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            sum += __ldcg(&words[(x + sum) % count]);
        }
        if (threadIdx.x == 0)
            atomicAdd(steps, 16ull);
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        turns++;
    } while (now - start < ns && (turns % 1024 != 0 || !*stop)); /* a word in host memory */
    if (sum == 1)
        atomicAdd(steps, 1ull);
}

struct work {
    int sms;
    uint64_t ns;  /* duration of a kernel; 0 means copies */
    size_t bytes; /* bytes of a copy */
    uint64_t *words;
    unsigned long long *steps; /* memory on the device */
    volatile int *stop;        /* mapped host memory */
    unsigned long long copies;
};

enum { WORK_BYTES = 1 << 30 };

/* Queues some work and waits for half of it, so that the GPU always has work. */
static void queue_work(struct work *w, cudaEvent_t *ends, unsigned turn)
{
    const int batch = w->ns == 0 ? 4 : w->ns < 1000000 ? 200 : 1;
    for (int i = 0; i < batch; i++) {
        if (w->ns == 0)
            CHECK(cudaMemcpyAsync((char *)w->words + w->bytes, w->words, w->bytes,
                                  cudaMemcpyDeviceToDevice, 0));
        else
            work_for<<<w->sms * 2, 256>>>(w->words, WORK_BYTES / 8, w->ns, w->steps,
                                          (const volatile int *)w->stop);
    }
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(ends[turn % 2], 0));
    w->copies += w->ns == 0 ? batch : 0;
}

static bool has_input(int timeout_ms)
{
    struct pollfd in = {STDIN_FILENO, POLLIN, 0};
    return poll(&in, 1, timeout_ms) > 0;
}

static void print_progress(const struct work *w, cudaStream_t side, double seconds)
{
    unsigned long long steps = w->copies;
    if (w->ns) {
        CHECK(cudaMemcpyAsync(&steps, w->steps, sizeof steps, cudaMemcpyDeviceToHost, side));
        CHECK(cudaStreamSynchronize(side));
    }
    printf("%llu %.6f\n", steps, seconds);
    fflush(stdout);
}

static int work_until_told(const char *kind, const char *size)
{
    const auto start = std::chrono::steady_clock::now();
    struct work w = {};
    cudaEvent_t ends[2];
    cudaStream_t side;
    cudaDeviceProp properties;
    char line[64];
    bool working = true;
    const bool copy = strcmp(kind, "copy") == 0;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    w.sms = properties.multiProcessorCount;
    w.bytes = copy ? strtoull(size, NULL, 10) : 0;
    w.ns = copy ? 0 : strtoull(size, NULL, 10) * (strcmp(kind, "long") == 0 ? 1000000u : 1000u);
    CHECK(cudaMalloc(&w.words, copy ? 2 * w.bytes : (size_t)WORK_BYTES));
    CHECK(cudaMemset(w.words, 0, copy ? 2 * w.bytes : (size_t)WORK_BYTES));
    CHECK(cudaMalloc(&w.steps, sizeof *w.steps));
    CHECK(cudaMemset(w.steps, 0, sizeof *w.steps));
    CHECK(cudaHostAlloc((void **)&w.stop, sizeof *w.stop, cudaHostAllocMapped));
    *w.stop = 0;
    CHECK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
    for (int i = 0; i < 2; i++)
        CHECK(cudaEventCreateWithFlags(&ends[i], cudaEventDisableTiming));
    queue_work(&w, ends, 0);
    printf("working\n");
    fflush(stdout);
    for (unsigned turn = 1;;) {
        /* The next batch is queued while the current one runs, so that the GPU is never idle. */
        if (working && (turn < 2 || cudaEventQuery(ends[turn % 2]) == cudaSuccess))
            queue_work(&w, ends, turn++);
        if (!has_input(working ? 0 : -1))
            continue;
        if (!fgets(line, sizeof line, stdin))
            break;
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
        if (strcmp(line, "progress\n") == 0)
            print_progress(&w, side, seconds.count());
        working = strcmp(line, "go\n") == 0 || (working && strcmp(line, "pause\n") != 0);
        *w.stop = !working && w.ns >= 1000000;
        if (!working)
            CHECK(cudaStreamSynchronize(0));
        if (strcmp(line, "progress\n") != 0) {
            printf("%s\n", working ? "working" : "paused");
            fflush(stdout);
        }
    }
    *w.stop = 1;
    CHECK(cudaDeviceSynchronize());
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    size_t free_bytes, total_bytes;
    CHECK(cudaSetDevice(0));
    CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    if (argc == 2 && strcmp(argv[1], "--free") == 0) {
        printf("%zu %zu\n", free_bytes, total_bytes);
        return EXIT_SUCCESS;
    }
    if (argc == 3 && strcmp(argv[1], "--read") == 0)
        return read_until_told(strtoull(argv[2], NULL, 10));
    if (argc == 4 && strcmp(argv[1], "--work") == 0)
        return work_until_told(argv[2], argv[3]);
    if (argc != 3 || strcmp(argv[1], "--leave") != 0) {
        fprintf(stderr,
                "usage: gpu_load --free | --leave BYTES | --read BYTES | --work KIND SIZE\n");
        return 2;
    }
    const size_t leave = strtoull(argv[2], NULL, 10);
    take_pieces((size_t)1 << 30, leave);
    take_pieces((size_t)2 << 20, leave);
    CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    printf("holding, %zu bytes left free\n", free_bytes);
    fflush(stdout);
    while (getchar() != EOF)
        ;
    /* The end of this process releases its memory. */
    return EXIT_SUCCESS;
}
