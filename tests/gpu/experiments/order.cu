/* For docs/kubernetes.md. */
/* order.cu: tests whether each visible GPU gets its own answer.
 *
 *     order URI BYTES
 *
 * The program prints one line of JSON for each device, in the order of CUDA. The line contains the
 * UUID of the device and two answers of the reachd at URI (for reach_open). The first answer is for
 * the UUID. The second is for the number of the device. That number counts in the list of the
 * daemon, so the answer may be for another GPU, and the line contains whether libreach detects
 * that. It also contains three rates of random reads of 128 bytes over BYTES, in 10^9 bytes per
 * second. The first rate is naive. The second is in the windows of reach_table_get for the current
 * device, the third in the windows of the second answer.
 */
#include "reach.cuh"

#include "tests/gpu/common.cuh"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

enum {
    THREADS = 1024,
    LANES = 8,
    LINE_BYTES = 128,
    ITEMS = 4,
    ROUNDS = 16 /* rounds of a piece */,
    PIECES = 1 << 10 /* per SM */,
    RUNS = 5
};

/* Eight lanes read a line. */
__global__ void __launch_bounds__(THREADS)
    touch(reach_table table, const uint4 *base, uint32_t seed, uint32_t *out)
{
    const uint32_t lane = threadIdx.x % LANES;
    uint32_t sum = 0;
    reach_me me;

    if (!reach_enter(table, &me))
        return;
    const reach_extent part = reach_part(table, me, 0);
    const uint64_t lines = part.length_bytes / LINE_BYTES;
    const uint4 *const from = base + part.first_byte / sizeof(uint4) + lane;
    REACH_PIECES(table, me, PIECES * me.sm_count, piece) /* so windows finish together */
    {
        for (uint32_t round = piece * ROUNDS; round < (piece + 1) * ROUNDS; round++) {
            uint32_t found[ITEMS];
#pragma unroll
            for (uint32_t k = 0; k < ITEMS; k++) {
                const uint32_t item = (round * ITEMS + k) * 4 + threadIdx.x % 32 / LANES;
                const uint64_t at = mix(((uint64_t)seed << 40 | (uint64_t)me.window << 33 | item) +
                                        0x9e3779b97f4a7c15u);
                found[k] = __ldcg(from + __umul64hi(at, lines) * (LINE_BYTES / sizeof(uint4))).x;
            }
#pragma unroll
            for (uint32_t k = 0; k < ITEMS; k++)
                sum += found[k];
        }
    }
    if (sum == 0x12345678)
        *out = sum;
}

/* Returns 10^9 bytes per second, the best of RUNS. Returns 0, with a line on stderr, if the table
 * is for another chip. */
static double measure(const reach_table &table, const uint4 *base, uint32_t working_sms)
{
    uint32_t *out;
    cudaEvent_t before;
    cudaEvent_t after;
    cudaDeviceProp gpu;
    char why[256];
    float best = 1e30f;
    int device;

    CHECK(cudaGetDevice(&device));
    CHECK(cudaGetDeviceProperties(&gpu, device));
    CHECK(cudaMalloc((void **)&out, sizeof *out));
    CHECK(cudaEventCreate(&before));
    CHECK(cudaEventCreate(&after));
    for (uint32_t run = 0; run <= RUNS; run++) { /* the first run warms up */
        float ms;
        CHECK(reach_table_start(&table, 0));
        CHECK(cudaEventRecord(before));
        touch<<<2 * gpu.multiProcessorCount, THREADS>>>(table, base, run, out);
        CHECK(cudaEventRecord(after));
        CHECK(cudaEventSynchronize(after));
        CHECK(cudaEventElapsedTime(&ms, before, after));
        best = run > 0 && ms < best ? ms : best;
    }
    CHECK(cudaEventDestroy(before));
    CHECK(cudaEventDestroy(after));
    CHECK(cudaFree(out));
    if (!reach_table_check(&table, why, sizeof why)) {
        fprintf(stderr, "order: %s\n", why);
        return 0;
    }
    return (double)working_sms * PIECES * ROUNDS * ITEMS * 4 * LINE_BYTES / best / 1e6;
}

static uint32_t working_sms(const reach_windows &windows)
{
    uint32_t n = 0;

    for (uint32_t sm = 0; sm < windows.sm_slots; sm++)
        n += windows.window_of_sm[sm] != REACH_IDLE;
    return n;
}

static double measure_windows(const reach_windows &windows, const uint4 *base)
{
    reach_table table;

    CHECK(reach_table_make(&table));
    CHECK(reach_table_load(&table, &windows));
    const double gbps = measure(table, base, working_sms(windows));
    reach_table_free(&table);
    return gbps;
}

/* Makes one window for all SMs. */
static double measure_naive(uint64_t bytes, const uint4 *base)
{
    std::vector<int16_t> table(REACH_SM_MAX, 0);
    const reach_extent part = {0, bytes};
    const reach_window all = {0, bytes, 0, 1};
    reach_windows windows = {};
    cudaDeviceProp gpu;
    int device;

    CHECK(cudaGetDevice(&device));
    CHECK(cudaGetDeviceProperties(&gpu, device));
    for (int sm = gpu.multiProcessorCount; sm < REACH_SM_MAX; sm++)
        table[(size_t)sm] = REACH_IDLE;
    windows.window_count = 1;
    windows.sm_slots = REACH_SM_MAX;
    windows.window = &all;
    windows.window_of_sm = table.data();
    windows.allocation_count = 1;
    windows.part = &part;
    return measure_windows(windows, base);
}

struct asked {
    struct reach_answer *answer;
    const char *uuid;
    const char *fingerprint;
    const reach_windows *windows;
};

static asked ask(struct reach *reach, const char *gpu, uint64_t bytes)
{
    struct reach_placement_request request = {};
    struct reach_error error = {};
    asked a = {};

    request.size = sizeof request;
    request.bytes = bytes;
    if (reach_get_placement(reach, gpu, &request, &a.answer, &error) != REACH_OK) {
        fprintf(stderr, "order: GPU %s: %s\n", gpu, error.text);
        exit(EXIT_FAILURE);
    }
    a.uuid = reach_answer_provenance(a.answer)->gpu_uuid;
    a.fingerprint = reach_answer_provenance(a.answer)->fingerprint_id;
    a.windows = &reach_answer_placement(a.answer)->windows;
    return a;
}

static void try_device(struct reach *reach, const char *uri, int device, uint64_t bytes)
{
    char gpu[REACH_UUID_BYTES], number[16], why[256] = "";
    struct reach_error error = {};
    cudaDeviceProp properties;
    reach_table own;
    uint4 *base;

    CHECK(cudaSetDevice(device));
    CHECK(cudaGetDeviceProperties(&properties, device));
    reach_uuid_text((const unsigned char *)properties.uuid.bytes, false, gpu);
    snprintf(number, sizeof number, "%d", device);
    const asked by_uuid = ask(reach, gpu, bytes);
    const asked by_number = ask(reach, number, bytes);
    const reach_status check = reach_answer_check_gpu(by_number.answer, gpu, &error);
    CHECK(cudaMalloc((void **)&base, bytes));
    CHECK(cudaMemset(base, 0, bytes));
    if (!reach_table_get(uri, bytes, &own, why, sizeof why)) {
        fprintf(stderr, "order: %s\n", why);
        exit(EXIT_FAILURE);
    }
    printf("{\"device\": %d, \"uuid\": \"%s\", \"pci\": \"%04x:%02x:%02x\", \"answer\": \"%s\", "
           "\"fingerprint\": \"%s\", \"windows\": %u, \"by_number\": \"%s\", \"check\": \"%s\", "
           "\"naive_gbps\": %.1f, \"windows_gbps\": %.1f, \"by_number_gbps\": %.1f}\n",
           device, gpu, properties.pciDomainID, properties.pciBusID, properties.pciDeviceID,
           by_uuid.uuid, by_uuid.fingerprint, by_uuid.windows->window_count, by_number.uuid,
           reach_status_name(check), measure_naive(bytes, base),
           measure(own, base, working_sms(*by_uuid.windows)),
           measure_windows(*by_number.windows, base));
    fflush(stdout);
    reach_table_free(&own);
    CHECK(cudaFree(base));
    reach_answer_free(by_uuid.answer);
    reach_answer_free(by_number.answer);
}

int main(int argc, char **argv)
{
    struct reach *reach = nullptr;
    struct reach_error error = {};
    int count = 0;

    if (argc != 3)
        return fprintf(stderr, "usage: order URI BYTES\n"), 2;
    if (reach_open(argv[1], &reach, &error) != REACH_OK)
        return fprintf(stderr, "order: %s\n", error.text), 1;
    CHECK(cudaGetDeviceCount(&count));
    for (int device = 0; device < count; device++)
        try_device(reach, argv[1], device, strtoull(argv[2], nullptr, 10));
    reach_close(reach);
    return 0;
}
