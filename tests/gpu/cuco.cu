/* cuco.cu: tests a Bloom filter of cuCollections in three forms: unchanged, in scopes (add_if,
 * contains_if) and in windows (reach_cuco.cuh).
 *
 *     cuco URI GPU BYTES KEYS
 *     cuco --host    tests the parts that need no GPU: the ranges of the predicates, and the output
 *                    of contains_if
 *
 * The first part uses a filter of 16 bits per key. Every form must find every added key. Of equally
 * many other keys it may find the share that the theory of blocked Bloom filters gives. The second
 * part measures speeds over BYTES. test_cuco.py runs the program; cuco_common.cuh describes the
 * output. It is built only if there is a copy of cuCollections (.ci/cuco).
 */
#include "reach_cuco.cuh"

#include "cuco_common.cuh"

#include <cuco/hash_functions.cuh>
/* cuCollections renamed the header and the default policy in November 2024. */
#if __has_include(<cuco/bloom_filter_policies.cuh>)
#include <cuco/bloom_filter_policies.cuh>
#define DEFAULT_POLICY cuco::default_filter_policy
#else
#include <cuco/bloom_filter_policy.cuh>
#define DEFAULT_POLICY cuco::bloom_filter_policy
#endif

#include <cmath>

typedef DEFAULT_POLICY<cuco::xxhash_64<key>, uint32_t, 8> policy;
typedef cuco::extent<size_t> extent;
typedef cuco::bloom_filter_ref<key, extent, cuda::thread_scope_device, policy> stock_filter;
typedef reach_windowed_bloom_filter<key, policy> windowed_filter;

enum { BLOCK_BYTES = 32, BITS_PER_KEY = 16, SMALL_SCOPES = 3 };
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

/* ---- one call of each form ------------------------------------------------------------------ */

/* Rounds the number of blocks down to an odd number (see reach_odd_items). */
static stock_filter stock_of(const setting &s)
{
    const size_t blocks = reach_odd_items(s.bytes / BLOCK_BYTES);
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

/* Counts the keys that the filter contains. `found` is first set to the wrong answer. */
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

/* Returns the share of other keys that a filter of blocks of 8 words finds. Each key sets one bit
 * of 32 in each word, and the keys of a block are Poisson distributed. The formula is from Putze,
 * Sanders, Singler, Cache-, Hash- and Space-Efficient Bloom Filters, 2007. */
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

static bool check(setting &s, way w, uint64_t stock_others)
{
    const double share = promised((double)s.keys / (double)(s.bytes / BLOCK_BYTES));
    char why[256] = "";
    bool good;

    CHECK(cudaMemset(s.memory, 0, s.bytes));
    add(s, w);
    if (w == WINDOWS)
        good = say(s.windowed.check(why, sizeof why), why[0] ? why : "every window added",
                   way_names[w]);
    else
        good = true;
    good = say(count_found(s, w, s.added, 0) == s.keys, "every key that was added is found",
               way_names[w]) &&
           good;
    const uint64_t others = count_found(s, w, s.others, 1);
    const double got = (double)others / (double)s.keys;
    printf("# %s: %.3e of other keys are found, promised are %.3e\n", way_names[w], got, share);
    good = say(fabs(got / share - 1) < 0.05, "other keys are found as rarely as promised",
               way_names[w]) &&
           good;
    if (w == SCOPES)
        good = say(others == stock_others, "finds what stock finds", way_names[w]) && good;
    return good;
}

/* ---- speed ---------------------------------------------------------------------------------- */

static bool measure(setting &s, way w, std::vector<std::string> &json)
{
    const auto nothing = [](uint32_t) {};
    char why[256] = "";

    CHECK(cudaMemset(s.memory, 0, s.bytes));
    const auto adds = speeds(s.keys, nothing, [&] { add(s, w); });
    bool good = say(count_found(s, w, s.added, 0) == s.keys, "finds every key in the large filter",
                    way_names[w]);
    const auto finds = speeds(s.keys, nothing, [&] { contains(s, w, s.added); });
    if (w == WINDOWS)
        good = say(s.windowed.check(why, sizeof why), why[0] ? why : "every window was served",
                   way_names[w]) &&
               good;
    json.push_back(report(way_names[w], "contains", finds, "add", adds));
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
    const scaled_windows small(windows, s.bytes, BLOCK_BYTES);
    CHECK(s.windowed.open(s.memory, s.bytes, &small.windows));
    for (int w = 0; w < WAYS; w++) {
        good = check(s, (way)w, stock_others) && good;
        if (w == STOCK)
            stock_others = count_found(s, STOCK, s.others, 1);
    }
    s.scopes = scopes;
    return good;
}

/* Each block of a filter is in one scope, even if scopes begin within a block. */
static bool check_predicates()
{
    reach_extent range[SMALL_SCOPES];
    const reach_scopes scopes = {SMALL_SCOPES, 1, range};
    bool good = true;

    for (uint64_t bytes = 1 << 20; bytes < 1ull << 38; bytes += bytes / 7 + 12345) {
        const extent blocks{(size_t)reach_odd_items(bytes / BLOCK_BYTES)};
        uint64_t end = 0;
        for (uint32_t i = 0; i < SMALL_SCOPES; i++) {
            range[i].first_byte = bytes / SMALL_SCOPES * i;
            range[i].length_bytes =
                (i + 1 < SMALL_SCOPES ? bytes / SMALL_SCOPES * (i + 1) : bytes) -
                range[i].first_byte;
            const auto test = reach_bloom_scope_test(reach_scopes_pass(&scopes, i), policy{}, blocks);
            good = test.items.first == end && good;
            end += test.items.count;
        }
        good = end >= blocks && good;
    }
    good = say(good, "every block is in one scope", "scopes");
    bool found[3] = {false, false, true};
    const reach_or_output<bool> out{found};
    *(out + 0) = true;
    *(out + 1) = false;
    *(out + 2) = false;
    return say(found[0] && !found[1] && found[2], "what one scope found, no other takes back",
               "scopes") &&
           good;
}

int main(int argc, char **argv)
{
    setting s = {};
    reach_scope_request scope_request = {};
    std::vector<std::string> json;
    struct reach *reach = nullptr;
    reach_answer *scope = nullptr;
    reach_error error = {};

    if (argc == 2 && strcmp(argv[1], "--host") == 0)
        return check_predicates() ? 0 : 1;
    if (argc != 5)
        return fprintf(stderr, "usage: cuco URI GPU BYTES KEYS\n"), 2;
    const uint64_t bytes = strtoull(argv[3], nullptr, 10) / BLOCK_BYTES * BLOCK_BYTES;
    s.keys = strtoull(argv[4], nullptr, 10);
    scope_request.size = sizeof scope_request;
    scope_request.bytes = bytes;
    if (reach_open(argv[1], &reach, &error) != REACH_OK ||
        reach_get_scope(reach, argv[2], &scope_request, &scope, &error) != REACH_OK)
        return fprintf(stderr, "cuco: %s\n", error.text), 1;
    s.scopes = reach_answer_scope(scope)->scopes;
    const reach_windows &windows = windows_of(reach, argv[2], bytes);
    take_memory(s, bytes);
    s.bytes = s.keys * BITS_PER_KEY / 8;
    bool good = s.bytes <= bytes && check_all(s, windows);
    s.bytes = bytes;
    CHECK(s.windowed.open(s.memory, bytes, &windows));
    printf("| 10^9 keys/s, filter of %.0f GiB | contains | add |\n|---|---|---|\n",
           (double)bytes / (1 << 30));
    for (int w = 0; w < WAYS; w++)
        good = measure(s, (way)w, json) && good;
    print_json("filter", bytes, s.keys, json);
    reach_answer_free(scope);
    reach_close(reach);
    return good ? 0 : 1;
}
