/* cuco_common.cuh: shared parts of the tests of cuCollections: keys, medians, the plan, and output.
 * The tests print "ok"/"not ok" lines, rows of a table that begin with "|", and one line of JSON.
 * test_cuco.py checks the numbers of the JSON. */
#pragma once

#include "reach_key_windows.cuh"

#include "common.cuh"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

typedef uint64_t key;

enum { RUNS = 5 };

/* ---- keys ----------------------------------------------------------------------------------- */

/* Sets keys[i] = mix(from + i): all keys differ, and mix is another bijection than reach_mix_key. */
static __global__ void fill(key *keys, uint64_t count, uint64_t from)
{
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        keys[i] = mix(from + i);
}

static __global__ void count_true(const bool *found, uint64_t count, unsigned long long *out)
{
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    unsigned long long sum = 0;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        sum += found[i];
    atomicAdd(out, sum);
}

/* ---- time ----------------------------------------------------------------------------------- */

/* Returns 10^9 keys per second for each of RUNS calls after one warm-up call; before(run) is not
 * timed. */
template <class Before, class Call>
static std::vector<double> speeds(uint64_t keys, Before before, Call call)
{
    std::vector<double> found;
    cudaEvent_t begin;
    cudaEvent_t end;

    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    for (uint32_t run = 0; run <= RUNS; run++) {
        float ms;
        before(run);
        CHECK(cudaEventRecord(begin));
        call();
        CHECK(cudaEventRecord(end));
        CHECK(cudaEventSynchronize(end));
        CHECK(cudaEventElapsedTime(&ms, begin, end));
        if (run > 0)
            found.push_back((double)keys / ms / 1e6);
    }
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
    return found;
}

static double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

/* ---- output --------------------------------------------------------------------------------- */

static bool say(bool good, const char *what, const char *way)
{
    printf("%s %s: %s\n", good ? "ok" : "not ok", way, what);
    fflush(stdout);
    return good;
}

static std::string json_list(const std::vector<double> &values)
{
    std::string text = "[";
    char number[32];

    for (size_t i = 0; i < values.size(); i++) {
        snprintf(number, sizeof number, "%s%.4f", i ? ", " : "", values[i]);
        text += number;
    }
    return text + "]";
}

/* Prints a row of the table and adds a member of the JSON. `a` and `b` name the two columns. */
static std::string report(const char *way, const char *a, const std::vector<double> &as,
                          const char *b, const std::vector<double> &bs)
{
    printf("| %-8s | %8.2f | %8.2f |\n", way, median(as), median(bs));
    return std::string("\"") + way + "\": {\"" + a + "\": " + json_list(as) + ", \"" + b +
           "\": " + json_list(bs) + "}";
}

/* Prints the line that test_cuco.py reads. */
static void print_json(const char *what, uint64_t bytes, uint64_t keys,
                       const std::vector<std::string> &ways)
{
    printf("json {\"what\": \"%s\", \"bytes\": %llu, \"keys\": %llu, \"unit\": \"10^9 keys/s\", "
           "\"ways\": {",
           what, (unsigned long long)bytes, (unsigned long long)keys);
    for (size_t i = 0; i < ways.size(); i++)
        printf("%s%s", i ? ", " : "", ways[i].c_str());
    printf("}}\n");
}

/* ---- plan ----------------------------------------------------------------------------------- */

/* Returns the placement of `bytes` on a GPU; ends the program if there is none. It is never freed. */
static const reach_windows &windows_of(struct reach *reach, const char *gpu, uint64_t bytes)
{
    reach_placement_request request = {};
    reach_answer *answer = nullptr;
    reach_error error = {};

    request.size = sizeof request;
    request.bytes = bytes;
    if (reach_get_placement(reach, gpu, &request, &answer, &error) != REACH_OK)
        fprintf(stderr, "cuco: %s\n", error.text), exit(EXIT_FAILURE);
    const reach_placement *placement = reach_answer_placement(answer);
    if (placement->windows.window_count == 0)
        fprintf(stderr, "cuco: no windows: %s\n", placement->reason), exit(EXIT_FAILURE);
    return placement->windows;
}

/* Returns the windows of the same SMs over fewer bytes, at multiples of `item_bytes`. */
struct scaled_windows {
    std::vector<reach_window> window;
    std::vector<reach_extent> part;
    reach_windows windows;

    scaled_windows(const reach_windows &of, uint64_t bytes, uint64_t item_bytes)
        : window(of.window, of.window + of.window_count), part(window.size()), windows(of)
    {
        uint64_t end = 0;
        for (size_t w = 0; w < window.size(); w++) {
            const uint64_t next = w + 1 == window.size()
                                      ? bytes
                                      : bytes / window.size() * (w + 1) / item_bytes * item_bytes;
            window[w].first_byte = part[w].first_byte = end;
            window[w].length_bytes = part[w].length_bytes = next - end;
            end = next;
        }
        windows.window = window.data();
        windows.part = part.data();
        windows.allocation_count = 1;
    }
    scaled_windows(const scaled_windows &) = delete;
    scaled_windows &operator=(const scaled_windows &) = delete;
};
