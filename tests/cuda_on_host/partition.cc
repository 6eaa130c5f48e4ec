/* partition.cc: the kernels of reach_partition.cuh on the CPU, thread by thread in random order,
 * against a stable sort. Prints TAP. TEST_SEED repeats a run. REACH_COUNT is the number of cases.
 */
#include "reach_partition.cuh"

#include <algorithm>
#include <ctime>
#include <numeric>
#include <string>

using cuda_on_host::random_below;

static uint64_t random64()
{
    return (uint64_t)random_below(1u << 31) << 33 ^ (uint64_t)random_below(1u << 31) << 11 ^
           random_below(1u << 11);
}

/* Ranges over [0, below), some empty. */
static reach_ranges random_ranges(uint32_t count, uint64_t below)
{
    std::vector<uint64_t> first(count);
    for (uint64_t &f : first)
        f = random64() % below;
    std::sort(first.begin(), first.end());
    reach_ranges ranges;
    reach_ranges_make(&ranges, first.data(), count, 1);
    return ranges;
}

static uint32_t range_of(const reach_ranges &ranges, uint64_t at)
{
    uint32_t range = 0;
    for (uint32_t r = 1; r < ranges.count; r++)
        range = at >= ranges.first[r] ? r : range;
    return range;
}

/* What a call left. Arrays have an element more, which must not change. */
template <class Key, class Payload> struct partitioned {
    std::vector<Key> keys;
    std::vector<Payload> payloads;
    std::vector<uint64_t> offsets, counts;
};

template <class Key, class Payload>
static bool is_right(const std::vector<Key> &keys, const std::vector<Payload> &payloads,
                     const reach_ranges &ranges, const partitioned<Key, Payload> &found)
{
    const size_t count = keys.size();
    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return range_of(ranges, (uint64_t)keys[a]) < range_of(ranges, (uint64_t)keys[b]);
    });
    std::vector<uint64_t> counts(ranges.count);
    bool right = true;
    for (size_t i = 0; i < count; i++) {
        right = right && found.keys[i] == keys[order[i]];
        right = right && (payloads.empty() || found.payloads[i] == payloads[order[i]]);
        counts[range_of(ranges, (uint64_t)keys[i])]++;
    }
    for (uint64_t r = 0, sum = 0; r < ranges.count; sum += counts[r++])
        right = right && found.offsets[r] == sum && found.counts[r] == counts[r];
    return right && found.offsets[ranges.count] == count && found.keys[count] == 7 &&
           (payloads.empty() || found.payloads[count] == 7);
}

enum { KEYS, PAIRS, POSITIONS, MODES };

template <class Key, class Payload>
static cudaError_t partition(int mode, void *temp, size_t &bytes, const std::vector<Key> &keys,
                             const std::vector<Payload> &payloads, const reach_ranges &ranges,
                             partitioned<Key, Payload> *out)
{
    uint64_t *const offsets = out->offsets.data(), *const counts = out->counts.data();
    if (mode == KEYS)
        return reach_partition_keys(temp, bytes, keys.data(), out->keys.data(), keys.size(), ranges,
                                    offsets, counts);
    if (mode == PAIRS)
        return reach_partition_pairs(temp, bytes, keys.data(), out->keys.data(), payloads.data(),
                                     out->payloads.data(), keys.size(), ranges, offsets, counts);
    return reach_partition_positions(temp, bytes, keys.data(), out->keys.data(),
                                     out->payloads.data(), keys.size(), ranges, offsets, counts);
}

template <class Key, class Payload>
static bool try_case(int mode, uint32_t count, uint32_t range_count, uint64_t below)
{
    const reach_ranges ranges = random_ranges(range_count, below);
    const bool one_range = random_below(8) == 0;
    std::vector<Key> keys(count);
    std::vector<Payload> payloads(mode == KEYS ? 0 : count);
    partitioned<Key, Payload> out = {
        std::vector<Key>(count + 1, 7), std::vector<Payload>(count + 1, 7),
        std::vector<uint64_t>(range_count + 1), std::vector<uint64_t>(range_count)};
    size_t bytes = 0;
    for (Key &key : keys)
        key = one_range               ? (Key)(below - 1)
              : random_below(50) == 0 ? (Key)-1
                                      : (Key)(random64() % below);
    for (size_t i = 0; i < payloads.size(); i++)
        payloads[i] = mode == POSITIONS ? (Payload)i : (Payload)random64();
    if (partition(mode, nullptr, bytes, keys, payloads, ranges, &out) != cudaSuccess || bytes == 0)
        return false;
    std::vector<uint64_t> temp(bytes / 8 + 1, random64());
    size_t too_few = bytes - 1;
    return partition(mode, temp.data(), too_few, keys, payloads, ranges, &out) ==
               cudaErrorInvalidValue &&
           partition(mode, temp.data(), bytes, keys, payloads, ranges, &out) == cudaSuccess &&
           is_right(keys, payloads, ranges, out);
}

static bool random_case()
{
    static const uint32_t counts[] = {0, 1, 31, 32, 33, 255, 2047, 2048, 2049, 4096, 4097, 8191};
    const uint32_t count = random_below(2) ? counts[random_below(12)] : random_below(3 * 4096 + 1);
    const uint32_t ranges = random_below(2) ? 1 + random_below(9) : 1 + random_below(256);
    const int mode = (int)random_below(MODES);
    switch (random_below(5)) {
    case 0:
        return try_case<int32_t, uint32_t>(mode, count, ranges, 1u << 31);
    case 1:
        return try_case<uint32_t, uint64_t>(mode, count, ranges, 1ull << 32);
    case 2:
        return try_case<int64_t, int64_t>(mode, count, ranges, 1ull << 40);
    case 3:
        return try_case<uint64_t, uint32_t>(mode, count, ranges, UINT64_MAX);
    default:
        return try_case<uint32_t, uint16_t>(mode == POSITIONS ? PAIRS : mode, count, ranges, 1000);
    }
}

/* Keys that are computed, partitioned by something else than themselves. */
static bool computed_case()
{
    struct squares {
        uint32_t operator()(uint64_t i) const
        {
            return (uint32_t)(i * i);
        }
    };
    struct last_digits {
        uint64_t operator()(uint32_t key) const
        {
            return key % 1000;
        }
    };
    const uint32_t count = 5000;
    const reach_ranges ranges = random_ranges(5, 1000);
    std::vector<uint32_t> out(count), expected(count);
    size_t bytes = 0;
    for (int pass = 0; pass < 2; pass++) {
        static std::vector<uint64_t> temp;
        temp.resize(bytes / 8 + 1);
        if (reach_partition_computed<uint32_t, reach_partition_nothing>(
                pass ? temp.data() : nullptr, bytes, squares(), last_digits(), out.data(),
                reach_partition_payload<reach_partition_nothing>(), count, ranges, nullptr, nullptr,
                nullptr) != cudaSuccess)
            return false;
    }
    for (uint32_t i = 0; i < count; i++)
        expected[i] = i * i;
    std::stable_sort(expected.begin(), expected.end(), [&](uint32_t a, uint32_t b) {
        return range_of(ranges, a % 1000) < range_of(ranges, b % 1000);
    });
    return out == expected;
}

static bool refuses_wrong_use()
{
    reach_ranges none = {}, one = {1, {0}};
    uint32_t key = 0, out;
    uint64_t temp[64];
    uint8_t position;
    size_t bytes = sizeof temp;
    return reach_partition_keys(temp, bytes, &key, &out, 1, none, nullptr, nullptr) ==
               cudaErrorInvalidValue &&
           reach_partition_keys(temp, bytes, (uint32_t *)nullptr, &out, 1, one, nullptr, nullptr) ==
               cudaErrorInvalidValue &&
           reach_partition_keys(temp, bytes, &key, (uint32_t *)nullptr, 1, one, nullptr, nullptr) ==
               cudaErrorInvalidValue &&
           reach_partition_positions(temp, bytes, &key, &out, &position, 257, one, nullptr,
                                     nullptr) == cudaErrorInvalidValue &&
           reach_partition_keys(temp, bytes, &key, &out, 1, one, nullptr, nullptr) == cudaSuccess &&
           out == key;
}

static int point, failed;

static void ok(bool passed, const char *name)
{
    printf("%sok %d - %s\n", passed ? "" : "not ", ++point, name);
    failed += !passed;
}

int main()
{
    const char *const seed = getenv("TEST_SEED"), *const given = getenv("REACH_COUNT");
    const int count = given ? atoi(given) : 40;
    int right = 0;
    cuda_on_host::random_state = seed ? strtoull(seed, nullptr, 0) : (uint64_t)time(nullptr);
    printf("# TEST_SEED=%llu\n", (unsigned long long)cuda_on_host::random_state);
    for (int i = 0; i < count; i++)
        right += random_case();
    printf("# %d of %d cases right\n", right, count);
    ok(right == count, "random keys are where a stable sort has them");
    ok(computed_case(), "computed keys, partitioned by a function of them");
    ok(refuses_wrong_use(), "wrong use is refused");
    printf("1..%d\n", point);
    return failed != 0;
}
