/* scopes.cc: the loop and the predicates of reach_scopes.cuh on the CPU. Prints TAP. TEST_SEED
 * repeats a run. */
#include "reach_scopes.cuh"

#include <ctime>

using cuda_on_host::random_below;

static int point, failed;

static void ok(bool passed, const char *name)
{
    printf("%sok %d - %s\n", passed ? "" : "not ", ++point, name);
    failed += !passed;
}

/* Matched parts of two tables, rows of 24 and of 8 bytes, cut at any byte. */
static reach_scopes random_scopes(uint64_t rows)
{
    static std::vector<reach_extent> parts;
    const uint32_t count = 1 + random_below(6);
    uint64_t end[2] = {0, 0};
    parts.clear();
    for (uint32_t s = 0; s < count; s++) {
        for (uint32_t i = 0; i < 2; i++) {
            const uint64_t all = rows * (i ? 8 : 24);
            const uint64_t next =
                s + 1 == count ? all : end[i] + random_below((unsigned)(1 + (all - end[i]) / 2));
            parts.push_back({end[i], next - end[i]});
            end[i] = next;
        }
    }
    return {count, 2, parts.data()};
}

static bool every_row_is_visited_once()
{
    const uint64_t rows = 1 + random_below(5000), count = random_below(3000);
    const reach_scopes scopes = random_scopes(rows);
    std::vector<uint32_t> index(count), visits(count);
    uint32_t *const seen = visits.data();
    for (uint32_t &i : index)
        i = random_below((unsigned)rows);
    const uint32_t *const rows_of = index.data();
    cudaError_t result = reach_for_each_scope(scopes, [&](const reach_pass &pass) {
        const reach_in_scope test = {reach_pass_items(&pass, 0, 24)};
        for (uint64_t i = 0; i < count; i++)
            seen[i] += test(rows_of[i]);
    });
    for (uint32_t n : visits)
        result = n == 1 ? result : cudaErrorInvalidValue;
    return result == cudaSuccess;
}

static bool keys_are_tested_by_what_they_access()
{
    const uint64_t rows = 1000;
    const reach_scopes scopes = random_scopes(rows);
    const auto bucket_of = [=](uint32_t key) { return (uint64_t)key * 7919 % rows; };
    uint32_t found = 0;
    reach_for_each_scope(scopes, [&](const reach_pass &pass) {
        const auto test = reach_scope_test_of(pass, 8, bucket_of, 1);
        const reach_in_scope item = {reach_pass_items(&pass, 1, 8)};
        for (uint32_t key = 0; key < 3000; key++)
            found += test(key) && item(bucket_of(key));
    });
    const reach_scopes none = {};
    return found == 3000 &&
           reach_for_each_scope(none, [](const reach_pass &) {}) == cudaErrorInvalidValue;
}

int main()
{
    const char *const seed = getenv("TEST_SEED");
    bool right = true;
    cuda_on_host::random_state = seed ? strtoull(seed, nullptr, 0) : (uint64_t)time(nullptr);
    printf("# TEST_SEED=%llu\n", (unsigned long long)cuda_on_host::random_state);
    for (int i = 0; i < 60; i++)
        right = every_row_is_visited_once() && right;
    ok(right, "every row is visited in one scope");
    ok(keys_are_tested_by_what_they_access(), "keys are tested by what they access");
    printf("1..%d\n", point);
    return failed != 0;
}
