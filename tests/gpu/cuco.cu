/* cuco.cu: a Bloom filter of cuCollections as it is, in scopes (add_if, contains_if) and in windows
 * (reach_cuco.cuh).
 *
 *     cuco URI GPU BYTES KEYS
 *
 * First a filter of 16 bits per key, where all three must find every key added, and of as many
 * others only what blocked Bloom filters promise; then speeds over BYTES. Prints "ok"/"not ok"
 * lines, then rows of a table that begin with "|". Driven by test_cuco.py. Built only if there is a
 * copy of cuCollections (.ci/cuco).
 */
#include "reach_cuco.cuh"

#include <cuco/hash_functions.cuh>
/* The header and the name of the default policy, before and after November 2024. */
#if __has_include(<cuco/bloom_filter_policies.cuh>)
#include <cuco/bloom_filter_policies.cuh>
#define DEFAULT_POLICY cuco::default_filter_policy
#else
#include <cuco/bloom_filter_policy.cuh>
#define DEFAULT_POLICY cuco::bloom_filter_policy
#endif

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        const int result_ = (int)(call);                                                           \
        if (result_ != 0) {                                                                        \
            fprintf(stderr, "cuco: %s: error %d\n", #call, result_);                               \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

typedef uint64_t key;
typedef DEFAULT_POLICY<cuco::xxhash_64<key>, uint32_t, 8> policy;
typedef cuco::extent<size_t> extent;
typedef cuco::bloom_filter_ref<key, extent, cuda::thread_scope_device, policy> stock_filter;
typedef reach_windowed_bloom_filter<key, policy> windowed_filter;

enum { BLOCK_BYTES = 32, RUNS = 3, BITS_PER_KEY = 16, SMALL_SCOPES = 3 };
enum way { STOCK, SCOPES, WINDOWS, WAYS };
static const char *const way_names[WAYS] = {"stock", "scopes", "windows"};

struct setting {
    void *memory;
    uint64_t bytes, keys;
    const key *added, *others;
    bool *found;
    unsigned long long *count;
    reach_scopes scopes;
    windowed_filter windowed;
};

/* ---- keys ----------------------------------------------------------------------------------- */

/* A bijection, so all keys differ. */
static __device__ uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

__global__ void fill(key *keys, uint64_t count, uint64_t from)
{
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        keys[i] = mix(from + i);
}

__global__ void count_true(const bool *found, uint64_t count, unsigned long long *out)
{
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    unsigned long long sum = 0;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        sum += found[i];
    atomicAdd(out, sum);
}

/* ---- one call of each way ------------------------------------------------------------------- */

/* An odd number of blocks: see reach_bloom_odd. */
static stock_filter stock_of(const setting &s)
{
    const size_t blocks = reach_bloom_odd(s.bytes / BLOCK_BYTES);
    return stock_filter{(uint32_t *)s.memory, extent{blocks}, {}, policy{}};
}

static void add(setting &s, way w)
{
    stock_filter filter = stock_of(s);
    const key *end = s.added + s.keys;

    if (w == STOCK)
        filter.add_async(s.added, end, cuda::stream_ref{(cudaStream_t)0});
    else if (w == WINDOWS)
        CHECK(s.windowed.add(s.added, end, 0));
    else
        CHECK(reach_for_each_scope(s.scopes, [&](const reach_pass &pass) {
            const auto test = reach_bloom_scope_test(pass, policy{}, filter.block_extent());
            filter.add_if_async(s.added, end, s.added, test, cuda::stream_ref{(cudaStream_t)0});
        }));
    CHECK(cudaGetLastError());
}

static void contains(setting &s, way w, const key *keys)
{
    const stock_filter filter = stock_of(s);
    const key *end = keys + s.keys;

    if (w == STOCK) {
        filter.contains_async(keys, end, s.found, cuda::stream_ref{(cudaStream_t)0});
    } else if (w == WINDOWS) {
        CHECK(s.windowed.contains(keys, end, s.found, 0));
    } else {
        CHECK(cudaMemsetAsync(s.found, 0, s.keys, 0));
        CHECK(reach_for_each_scope(s.scopes, [&](const reach_pass &pass) {
            const auto test = reach_bloom_scope_test(pass, policy{}, filter.block_extent());
            filter.contains_if_async(keys, end, keys, test, reach_or_output<bool>{s.found},
                                     cuda::stream_ref{(cudaStream_t)0});
        }));
    }
    CHECK(cudaGetLastError());
}

/* Of the keys, how many does the filter contain? `found` is set to what is wrong first. */
static uint64_t count_found(setting &s, way w, const key *keys, int before)
{
    unsigned long long count = 0;

    CHECK(cudaMemset(s.found, before, s.keys));
    contains(s, w, keys);
    CHECK(cudaMemset(s.count, 0, sizeof *s.count));
    count_true<<<1024, 256>>>(s.found, s.keys, s.count);
    CHECK(cudaMemcpy(&count, s.count, sizeof count, cudaMemcpyDeviceToHost));
    return count;
}

/* ---- proof ---------------------------------------------------------------------------------- */

static bool say(bool good, const char *what, way w)
{
    printf("%s %s: %s\n", good ? "ok" : "not ok", way_names[w], what);
    return good;
}

/* The share of other keys that a filter of blocks of 8 words finds, each key setting one bit of 32
 * in each word: the keys of a block are Poisson distributed (Putze, Sanders, Singler, Cache-, Hash-
 * and Space-Efficient Bloom Filters, 2007). */
static double promised(double keys_per_block)
{
    double share = 0;
    double chance = exp(-keys_per_block);

    for (uint32_t k = 0; k < 1000; k++) {
        share += chance * pow(1 - pow(1 - 1 / 32.0, k), 8);
        chance *= keys_per_block / (k + 1);
    }
    return share;
}

/* Windows of the same SMs over a smaller filter. */
static void open_scaled(setting &s, const reach_windows &windows)
{
    std::vector<reach_window> scaled(windows.window, windows.window + windows.window_count);
    std::vector<reach_extent> parts(scaled.size());
    reach_windows small = windows;
    uint64_t end = 0;

    for (size_t w = 0; w < scaled.size(); w++) {
        const uint64_t next = w + 1 == scaled.size()
                                  ? s.bytes
                                  : s.bytes / scaled.size() * (w + 1) / BLOCK_BYTES * BLOCK_BYTES;
        scaled[w].first_byte = parts[w].first_byte = end;
        scaled[w].length_bytes = parts[w].length_bytes = next - end;
        end = next;
    }
    small.window = scaled.data();
    small.part = parts.data();
    small.allocation_count = 1;
    CHECK(s.windowed.open(s.memory, s.bytes, &small));
}

static bool check(setting &s, way w, uint64_t stock_others)
{
    const double share = promised((double)s.keys / (double)(s.bytes / BLOCK_BYTES));
    char why[256] = "";
    bool good;

    CHECK(cudaMemset(s.memory, 0, s.bytes));
    add(s, w);
    if (w == WINDOWS)
        good = say(s.windowed.check(why, sizeof why), why[0] ? why : "every window added", w);
    else
        good = true;
    good = say(count_found(s, w, s.added, 0) == s.keys, "every key that was added is found", w) &&
           good;
    const uint64_t others = count_found(s, w, s.others, 1);
    const double got = (double)others / (double)s.keys;
    printf("# %s: %.3e of other keys are found, promised are %.3e\n", way_names[w], got, share);
    good =
        say(fabs(got / share - 1) < 0.05, "other keys are found as rarely as promised", w) && good;
    if (w == SCOPES)
        good = say(others == stock_others, "finds what stock finds", w) && good;
    return good;
}

/* ---- speed ---------------------------------------------------------------------------------- */

template <class Call> static double speed(const setting &s, Call call)
{
    cudaEvent_t before;
    cudaEvent_t after;
    float best = 1e30f;

    CHECK(cudaEventCreate(&before));
    CHECK(cudaEventCreate(&after));
    for (uint32_t run = 0; run <= RUNS; run++) { /* the first warms up */
        float ms;
        CHECK(cudaEventRecord(before));
        call();
        CHECK(cudaEventRecord(after));
        CHECK(cudaEventSynchronize(after));
        CHECK(cudaEventElapsedTime(&ms, before, after));
        best = run > 0 && ms < best ? ms : best;
    }
    CHECK(cudaEventDestroy(before));
    CHECK(cudaEventDestroy(after));
    return (double)s.keys / best / 1e6;
}

static bool measure(setting &s, way w)
{
    bool good = true;
    char why[256] = "";

    CHECK(cudaMemset(s.memory, 0, s.bytes));
    const double adds = speed(s, [&] { add(s, w); });
    good = say(count_found(s, w, s.added, 0) == s.keys, "finds every key in the large filter", w);
    const double finds = speed(s, [&] { contains(s, w, s.added); });
    if (w == WINDOWS)
        good =
            say(s.windowed.check(why, sizeof why), why[0] ? why : "every window was served", w) &&
            good;
    printf("| %-8s | %8.2f | %8.2f |\n", way_names[w], finds, adds);
    return good;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static void take_memory(setting &s, uint64_t bytes)
{
    key *keys;

    CHECK(cudaMalloc(&s.memory, bytes));
    CHECK(cudaMalloc((void **)&keys, 2 * s.keys * sizeof(key)));
    CHECK(cudaMalloc((void **)&s.found, s.keys));
    CHECK(cudaMalloc((void **)&s.count, sizeof *s.count));
    fill<<<1024, 256>>>(keys, 2 * s.keys, 1);
    CHECK(cudaDeviceSynchronize());
    s.added = keys;
    s.others = keys + s.keys;
}

static bool check_all(setting &s, const reach_windows &windows)
{
    const reach_scopes scopes = s.scopes;
    reach_extent range[SMALL_SCOPES];
    bool good = true;
    uint64_t stock_others = 0;

    for (uint32_t i = 0; i < SMALL_SCOPES; i++) {
        range[i].first_byte = s.bytes * i / SMALL_SCOPES;
        range[i].length_bytes = s.bytes * (i + 1) / SMALL_SCOPES - range[i].first_byte;
    }
    s.scopes = {SMALL_SCOPES, 1, range};
    open_scaled(s, windows);
    for (int w = 0; w < WAYS; w++) {
        good = check(s, (way)w, stock_others) && good;
        if (w == STOCK)
            stock_others = count_found(s, STOCK, s.others, 1);
    }
    s.scopes = scopes;
    return good;
}

int main(int argc, char **argv)
{
    setting s = {};
    reach_scope_request scope_request = {};
    reach_placement_request placement_request = {};
    struct reach *reach = nullptr;
    reach_answer *scope = nullptr;
    reach_answer *answer = nullptr;
    reach_error error = {};

    if (argc != 5)
        return fprintf(stderr, "usage: cuco URI GPU BYTES KEYS\n"), 2;
    const uint64_t bytes = strtoull(argv[3], nullptr, 10) / BLOCK_BYTES * BLOCK_BYTES;
    s.keys = strtoull(argv[4], nullptr, 10);
    scope_request.size = sizeof scope_request;
    placement_request.size = sizeof placement_request;
    scope_request.bytes = placement_request.bytes = bytes;
    if (reach_open(argv[1], &reach, &error) != REACH_OK ||
        reach_get_scope(reach, argv[2], &scope_request, &scope, &error) != REACH_OK ||
        reach_get_placement(reach, argv[2], &placement_request, &answer, &error) != REACH_OK)
        return fprintf(stderr, "cuco: %s\n", error.text), 1;
    const reach_placement *placement = reach_answer_placement(answer);
    s.scopes = reach_answer_scope(scope)->scopes;
    if (placement->windows.window_count == 0 || s.scopes.scope_count == 0)
        return fprintf(stderr, "cuco: no windows or scopes: %s\n", placement->reason), 1;
    take_memory(s, bytes);
    s.bytes = s.keys * BITS_PER_KEY / 8;
    bool good = s.bytes <= bytes && check_all(s, placement->windows);
    s.bytes = bytes;
    CHECK(s.windowed.open(s.memory, bytes, &placement->windows));
    printf("| 10^9 keys/s over %.0f GiB | contains | add |\n|---|---|---|\n",
           (double)bytes / (1 << 30));
    for (int w = 0; w < WAYS; w++)
        good = measure(s, (way)w) && good;
    reach_answer_free(scope);
    reach_answer_free(answer);
    reach_close(reach);
    return good ? 0 : 1;
}
