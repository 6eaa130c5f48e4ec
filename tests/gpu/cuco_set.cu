/* cuco_set.cu: tests a hash set of cuCollections unchanged, and one in windows
 * (reach_cuco_set.cuh).
 *
 *     cuco_set URI GPU BYTES KEYS
 *     cuco_set --host    tests the part that needs no GPU: the memory of each set of a window
 *
 * The first part uses a set of 2 slots per key. Each key must be new once and be contained, and
 * find must return it. No other key may be contained. The second part fills a set over BYTES until
 * half of its slots are used. It measures the speed of the last RUNS insertions of KEYS keys, of
 * lookups of all its keys, and of lookups of KEYS other keys. test_cuco.py runs the program;
 * cuco_common.cuh describes the output.
 *
 * Both sets hash with xxhash_64. The default hash of cuCollections has 32 bits, so keys would start
 * their probes in the first 2^32 slots, which are 32 GiB.
 */
#include "reach_cuco_set.cuh"

#include "cuco_common.cuh"

#include <cuco/hash_functions.cuh>
#include <cuco/static_set.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

enum : key { EMPTY = 0 /* mix(0) is not a key, because the first key is mix(1) */ };
enum { SLOTS_PER_KEY = 2 };

/* ---- the two sets --------------------------------------------------------------------------- */

/* An allocator that places the slots of a stock set in existing memory, and small objects in memory
 * from CUDA. */
struct borrowed {
    void *memory;
    uint64_t bytes;
};

template <class T> struct borrowing_allocator {
    using value_type = T;
    borrowed from;

    explicit borrowing_allocator(borrowed given) : from(given)
    {
    }
    template <class U> borrowing_allocator(const borrowing_allocator<U> &other) : from(other.from)
    {
    }
    T *allocate(size_t count)
    {
        T *small = nullptr;
        if (count * sizeof(T) > from.bytes / 2)
            return count * sizeof(T) <= from.bytes ? (T *)from.memory : throw std::bad_alloc();
        CHECK(cudaMalloc((void **)&small, count * sizeof(T)));
        return small;
    }
    void deallocate(T *memory, size_t)
    {
        if ((void *)memory != from.memory)
            CHECK(cudaFree(memory));
    }
};

typedef cuco::xxhash_64<key> hash;
typedef cuco::double_hashing<4, hash> probing;
typedef cuco::static_set<key, cuco::extent<size_t>, cuda::thread_scope_device,
                         thrust::equal_to<key>, probing, borrowing_allocator<key>, cuco::storage<1>>
    stock_set;
typedef decltype(std::declval<stock_set>().ref(cuco::insert, cuco::contains, cuco::find)) set_ref;
typedef reach_windowed_set<set_ref> windowed_set;

/* Returns the largest number of slots that fit in `bytes`: cuco takes the next prime. */
static auto extent_of(uint64_t bytes)
{
    uint64_t slots = bytes / sizeof(key);
    auto extent = cuco::make_window_extent<stock_set>(cuco::extent<size_t>{slots});

    while ((uint64_t)extent.value() * stock_set::window_size * sizeof(key) > bytes) {
        slots -= slots / 4096 + 1;
        extent = cuco::make_window_extent<stock_set>(cuco::extent<size_t>{slots});
    }
    return extent;
}

static set_ref ref_over(void *memory, uint64_t bytes)
{
    using storage = set_ref::storage_ref_type;
    return set_ref{cuco::empty_key<key>{EMPTY},
                   {},
                   probing{},
                   {},
                   storage{extent_of(bytes), (storage::window_type *)memory}};
}

/* ---- one call of each set ------------------------------------------------------------------- */

struct setting {
    void *memory;
    uint64_t bytes, keys; /* bytes of the set; keys of one call */
    key *stored;          /* [keys] */
    key *found_keys;      /* [keys], for find */
    bool *found;          /* [keys] */
    unsigned long long *count;
};

struct mixed {
    __host__ __device__ key operator()(uint64_t i) const
    {
        return mix(i);
    }
};

/* An iterator over the keys from number `from` on, which are computed when they are used. */
static auto made(uint64_t from)
{
    return thrust::make_transform_iterator(thrust::counting_iterator<uint64_t>(from), mixed{});
}

/* The calls that both sets have. */
struct stock_way {
    static constexpr const char *name = "stock";
    stock_set set;

    stock_way(const setting &s, const reach_windows &)
        : set(extent_of(s.bytes).value() * stock_set::window_size, cuco::empty_key<key>{EMPTY}, {},
              probing{}, {}, {}, borrowing_allocator<key>{borrowed{s.memory, s.bytes}})
    {
    }
    template <class It> void insert(It first, It last)
    {
        set.insert_async(first, last);
    }
    template <class It> uint64_t insert_and_count(setting &, It first, It last)
    {
        return set.insert(first, last);
    }
    template <class It, class Out> void contains(It first, It last, Out out)
    {
        set.contains_async(first, last, out);
    }
    template <class It, class Out> void find(It first, It last, Out out)
    {
        set.find_async(first, last, out);
    }
    bool check()
    {
        return true;
    }
};

struct window_way {
    static constexpr const char *name = "windows";
    windowed_set set;

    window_way(const setting &s, const reach_windows &windows)
    {
        CHECK(set.open(s.memory, s.bytes, &windows, ref_over));
        CHECK(set.clear(EMPTY, 0));
    }
    template <class It> void insert(It first, It last)
    {
        CHECK(set.insert(first, last, 0));
    }
    template <class It> uint64_t insert_and_count(setting &s, It first, It last)
    {
        unsigned long long count = 0;
        CHECK(cudaMemset(s.count, 0, sizeof *s.count));
        CHECK(set.insert(first, last, 0, s.count));
        CHECK(cudaMemcpy(&count, s.count, sizeof count, cudaMemcpyDeviceToHost));
        return count;
    }
    template <class It, class Out> void contains(It first, It last, Out out)
    {
        CHECK(set.contains(first, last, out, 0));
    }
    template <class It, class Out> void find(It first, It last, Out out)
    {
        CHECK(set.find(first, last, out, 0));
    }
    bool check()
    {
        char why[256] = "";
        return say(set.check(why, sizeof why), why[0] ? why : "every window served its keys", name);
    }
};

/* ---- proof ---------------------------------------------------------------------------------- */

/* Counts how many of `count` keys from `from` on are in the set, s.keys at a time. The output is
 * first set to the wrong answer. */
template <class Way>
static uint64_t count_found(setting &s, Way &way, uint64_t from, uint64_t count, bool expected)
{
    unsigned long long found = 0;

    CHECK(cudaMemset(s.count, 0, sizeof *s.count));
    for (uint64_t at = 0; at < count; at += s.keys) {
        const uint64_t n = std::min(s.keys, count - at);
        CHECK(cudaMemset(s.found, !expected, n));
        way.contains(made(from + at), made(from + at + n), s.found);
        count_true<<<1024, 256>>>(s.found, n, s.count);
    }
    CHECK(cudaMemcpy(&found, s.count, sizeof found, cudaMemcpyDeviceToHost));
    return found;
}

/* Counts false negatives among keys 1 .. count, and false positives among s.keys others. */
template <class Way> static bool check_contents(setting &s, Way &way, uint64_t count)
{
    const uint64_t missing = count - count_found(s, way, 1, count, true);
    const uint64_t wrong = count_found(s, way, 1 + count, s.keys, false);

    printf("# %s: of %llu keys inserted %llu are not found, of %llu others %llu are\n", way.name,
           (unsigned long long)count, (unsigned long long)missing, (unsigned long long)s.keys,
           (unsigned long long)wrong);
    bool good = say(missing == 0, "every key that was inserted is found", way.name);
    good = say(wrong == 0, "no other key is found", way.name) && good;
    return way.check() && good;
}

__global__ void count_equal(const key *a, const key *b, uint64_t count, unsigned long long *out)
{
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    unsigned long long sum = 0;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        sum += a[i] == b[i];
    atomicAdd(out, sum);
}

/* find returns the key itself if it is in the set, and otherwise the sentinel. */
template <class Way> static uint64_t count_right(setting &s, Way &way, uint64_t from, bool is_in)
{
    unsigned long long right = 0;

    fill<<<1024, 256>>>(s.stored, s.keys, from);
    CHECK(cudaMemset(s.found_keys, 0xff, s.keys * sizeof(key)));
    way.find(s.stored, s.stored + s.keys, s.found_keys);
    if (!is_in)
        CHECK(cudaMemset(s.stored, 0, s.keys * sizeof(key))); /* EMPTY */
    CHECK(cudaMemset(s.count, 0, sizeof *s.count));
    count_equal<<<1024, 256>>>(s.stored, s.found_keys, s.keys, s.count);
    CHECK(cudaMemcpy(&right, s.count, sizeof right, cudaMemcpyDeviceToHost));
    return right;
}

template <class Way> static bool prove(setting &s, const reach_windows &windows)
{
    Way way(s, windows);
    bool good;

    good = say(way.insert_and_count(s, made(1), made(1 + s.keys)) == s.keys,
               "every key is new once", way.name);
    good = say(way.insert_and_count(s, made(1), made(1 + s.keys)) == 0, "and not a second time",
               way.name) &&
           good;
    good = check_contents(s, way, s.keys) && good;
    return say(count_right(s, way, 1, true) == s.keys &&
                   count_right(s, way, 1 + s.keys, false) == s.keys,
               "find returns the key, or the sentinel", way.name) &&
           good;
}

/* ---- speed ---------------------------------------------------------------------------------- */

template <class Way>
static bool measure(setting &s, const reach_windows &windows, std::vector<std::string> &json)
{
    const uint64_t timed = (uint64_t)(RUNS + 1) * s.keys;
    const uint64_t all = std::max(s.bytes / sizeof(key) / SLOTS_PER_KEY, timed);
    Way way(s, windows);

    way.insert(made(1), made(1 + all - timed));
    const auto inserts = speeds(
        s.keys,
        [&](uint32_t run) {
            fill<<<1024, 256>>>(s.stored, s.keys, 1 + all - timed + run * s.keys);
        },
        [&] { way.insert(s.stored, s.stored + s.keys); });
    const auto finds = speeds(
        s.keys, [](uint32_t) {}, [&] { way.contains(s.stored, s.stored + s.keys, s.found); });
    CHECK(cudaGetLastError());
    json.push_back(report(way.name, "contains", finds, "insert", inserts));
    return check_contents(s, way, all);
}

/* ---- without a GPU -------------------------------------------------------------------------- */

/* The set of a window uses nearly all of its part and nothing else, for any length of the part. The
 * primes of cuco are at most some 2^17 apart, and each counts 4 slots. */
static bool check_sizes()
{
    bool good = true;

    for (uint64_t bytes = 1 << 20; bytes < 1ull << 38; bytes += bytes / 7 + 12345) {
        const uint64_t used = extent_of(bytes).value() * stock_set::window_size * sizeof(key);
        good = used <= bytes && bytes - used < (5 << 20) + bytes / 1024 && good;
    }
    good = say(good, "a set uses nearly all of its memory and no more", "windows");
    const set_ref ref = ref_over((void *)(uintptr_t)REACH_SET_PART_BYTES, 1 << 20);
    return say(ref.capacity() * sizeof(key) <= 1 << 20 && ref.empty_key_sentinel() == EMPTY,
               "a ref has the capacity of its memory", "windows") &&
           good;
}

int main(int argc, char **argv)
{
    std::vector<std::string> json;
    setting s = {};
    struct reach *reach = nullptr;
    reach_error error = {};

    if (argc == 2 && strcmp(argv[1], "--host") == 0)
        return check_sizes() ? 0 : 1;
    if (argc != 5)
        return fprintf(stderr, "usage: cuco_set URI GPU BYTES KEYS\n"), 2;
    const uint64_t bytes =
        strtoull(argv[3], nullptr, 10) / REACH_SET_PART_BYTES * REACH_SET_PART_BYTES;
    s.keys = strtoull(argv[4], nullptr, 10);
    if (reach_open(argv[1], &reach, &error) != REACH_OK)
        return fprintf(stderr, "cuco_set: %s\n", error.text), 1;
    const reach_windows &windows = windows_of(reach, argv[2], bytes);
    CHECK(cudaMalloc(&s.memory, bytes));
    CHECK(cudaMalloc((void **)&s.stored, s.keys * sizeof(key)));
    CHECK(cudaMalloc((void **)&s.found_keys, s.keys * sizeof(key)));
    CHECK(cudaMalloc((void **)&s.found, s.keys));
    CHECK(cudaMalloc((void **)&s.count, sizeof *s.count));
    s.bytes = s.keys * SLOTS_PER_KEY * sizeof(key);
    const scaled_windows small(windows, s.bytes, REACH_SET_PART_BYTES);
    bool good = s.bytes <= bytes && prove<stock_way>(s, small.windows);
    good = prove<window_way>(s, small.windows) && good;
    s.bytes = bytes;
    printf("| 10^9 keys/s, set of %.0f GiB | contains | insert |\n|---|---|---|\n",
           (double)bytes / (1 << 30));
    good = measure<stock_way>(s, windows, json) && good;
    good = measure<window_way>(s, windows, json) && good;
    print_json("set", bytes, s.keys, json);
    reach_close(reach);
    return good ? 0 : 1;
}
