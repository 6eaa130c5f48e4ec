/* several_reads.cu: measures items that read one row of each of several allocations, at random.
 *
 *     several_reads URI GPU IN_REACH_BYTES BYTES:ROW ...
 *
 * The program takes one to four allocations of BYTES with rows of ROW bytes. It gets a plan for GPU
 * from the source at URI (for reach_open). It prints three speeds in 10^9 items per second. In
 * the first, all SMs read in IN_REACH_BYTES of all allocations together. In the second, all SMs
 * read in the whole allocations. In the third, the SMs read in the windows of the plan. ROW is a
 * multiple of 16, and at most 128.
 */
#include "reach.cuh"

#include "common.cuh"

#include <cstdio>
#include <cstdlib>
#include <vector>

enum {
    THREADS = 1024,
    LANES = 8,
    ITEMS = 4,
    ROUNDS = 16 /* rounds of a piece */,
    PIECES = 1 << 10 /* per SM */,
    RUNS = 12
};

struct rows {
    uint32_t count;
    const uint4 *base[REACH_ALLOCATION_MAX];
    uint32_t bytes[REACH_ALLOCATION_MAX];
};

/* Eight lanes read the rows of an item. A warp takes ROUNDS x ITEMS x 4 items from a piece; the
 * ITEMS x 4 items of a round are in flight together. */
template <uint32_t COUNT>
__global__ void __launch_bounds__(THREADS)
    touch(reach_table table, rows r, uint32_t seed, uint32_t *out)
{
    const uint32_t lane = threadIdx.x % LANES;
    uint64_t rows_here[COUNT];
    const uint4 *from[COUNT];
    uint32_t sum = 0;
    reach_me me;

    if (!reach_enter(table, &me))
        return;
#pragma unroll
    for (uint32_t a = 0; a < COUNT; a++) {
        const reach_extent part = reach_part(table, me, a);
        rows_here[a] = part.length_bytes / r.bytes[a];
        from[a] = r.base[a] + part.first_byte / sizeof(uint4) + lane;
    }
    REACH_PIECES(table, me, PIECES * me.sm_count, piece) /* so windows finish together */
    {
        for (uint32_t round = piece * ROUNDS; round < (piece + 1) * ROUNDS; round++) {
            uint32_t found[ITEMS][COUNT] = {};
#pragma unroll
            for (uint32_t k = 0; k < ITEMS; k++) {
                const uint32_t item = (round * ITEMS + k) * 4 + threadIdx.x % 32 / LANES;
                const uint64_t at = mix(((uint64_t)seed << 40 | (uint64_t)me.window << 33 | item) +
                                        0x9e3779b97f4a7c15u);
#pragma unroll
                for (uint32_t a = 0; a < COUNT; a++) {
                    const uint64_t row = __umul64hi(at, rows_here[a]);
                    if (lane * sizeof(uint4) < r.bytes[a])
                        found[k][a] = __ldcg(from[a] + row * (r.bytes[a] / sizeof(uint4))).x;
                }
            }
#pragma unroll
            for (uint32_t k = 0; k < ITEMS; k++)
#pragma unroll
                for (uint32_t a = 0; a < COUNT; a++)
                    sum += found[k][a];
        }
    }
    if (sum == 0x12345678)
        *out = sum;
}

typedef void (*kernel)(reach_table, rows, uint32_t, uint32_t *);

static kernel kernel_of(uint32_t count)
{
    static const kernel of[] = {touch<1>, touch<2>, touch<3>, touch<4>};

    if (count == 0 || count > sizeof of / sizeof of[0]) {
        fprintf(stderr, "several_reads: %u allocations; there are kernels for 1 to 4\n", count);
        exit(2);
    }
    return of[count - 1];
}

/* Returns 10^9 items per second, the best of RUNS. */
static double measure(const reach_windows *windows, const rows &r, uint32_t sms)
{
    reach_table table;
    uint32_t *out;
    cudaEvent_t before;
    cudaEvent_t after;
    char why[256];
    float best = 1e30f;
    uint64_t pieces = 0;
    const kernel run_touch = kernel_of(r.count);

    for (uint32_t sm = 0; sm < windows->sm_slots; sm++)
        pieces += windows->window_of_sm[sm] != REACH_IDLE ? PIECES : 0;
    CHECK(reach_table_make(&table));
    CHECK(reach_table_load(&table, windows));
    CHECK(cudaMalloc((void **)&out, sizeof *out));
    CHECK(cudaEventCreate(&before));
    CHECK(cudaEventCreate(&after));
    for (uint32_t run = 0; run <= RUNS; run++) { /* the first run warms up */
        float ms;
        CHECK(reach_table_start(&table, 0));
        CHECK(cudaEventRecord(before));
        run_touch<<<2 * sms, THREADS>>>(table, r, run, out);
        CHECK(cudaEventRecord(after));
        CHECK(cudaEventSynchronize(after));
        CHECK(cudaEventElapsedTime(&ms, before, after));
        best = run > 0 && ms < best ? ms : best;
    }
    if (!reach_table_check(&table, why, sizeof why)) {
        fprintf(stderr, "several_reads: %s\n", why);
        exit(EXIT_FAILURE);
    }
    CHECK(cudaFree(out));
    reach_table_free(&table);
    return (double)pieces * ROUNDS * ITEMS * 4 / best / 1e6;
}

/* Makes one window for all SMs, over this share of each allocation. */
static double measure_naive(const reach_job &job, const rows &r, double share, uint32_t sms)
{
    std::vector<int16_t> table(REACH_SM_MAX, 0);
    std::vector<reach_extent> parts(job.allocation_count);
    const reach_window all = {0, 1, sms, 1};
    reach_windows windows = {};

    for (uint32_t a = 0; a < job.allocation_count; a++)
        parts[a].length_bytes = (uint64_t)(share * (double)job.allocation[a].bytes);
    windows.window_count = 1;
    windows.sm_slots = REACH_SM_MAX;
    windows.window = &all;
    windows.window_of_sm = table.data();
    windows.allocation_count = job.allocation_count;
    windows.part = parts.data();
    return measure(&windows, r, sms);
}

int main(int argc, char **argv)
{
    std::vector<reach_allocation> list;
    reach_job job = {};
    rows r = {};
    struct reach *reach = nullptr;
    reach_answer *answer = nullptr;
    reach_error error = {};
    cudaDeviceProp gpu;
    uint64_t bytes = 0;

    if (argc < 5 || argc > 4 + REACH_ALLOCATION_MAX)
        return fprintf(stderr, "usage: several_reads URI GPU IN_REACH_BYTES BYTES:ROW ...\n"), 2;
    for (int i = 4; i < argc; i++) {
        char *end;
        reach_allocation a = {};
        a.bytes = strtoull(argv[i], &end, 10);
        a.element_bytes = *end == ':' ? (uint32_t)strtoul(end + 1, nullptr, 10) : 0;
        a.touches = 1;
        list.push_back(a);
        bytes += a.bytes;
        r.bytes[r.count] = a.element_bytes;
        CHECK(cudaMalloc((void **)&r.base[r.count], a.bytes));
        CHECK(cudaMemset((void *)r.base[r.count++], 0, a.bytes));
    }
    CHECK(cudaGetDeviceProperties(&gpu, 0));
    job.size = sizeof job;
    job.allocation_count = r.count;
    job.allocation = list.data();
    if (reach_open(argv[1], &reach, &error) != REACH_OK ||
        reach_get_plan(reach, argv[2], &job, &answer, &error) != REACH_OK)
        return fprintf(stderr, "several_reads: %s\n", error.text), 1;
    const reach_plan *plan = reach_answer_plan(answer);
    const uint32_t sms = (uint32_t)gpu.multiProcessorCount;
    if (plan->windows.window_count == 0)
        return fprintf(stderr, "several_reads: no windows: %s\n", plan->reason), 1;
    printf("%.4f\n", measure_naive(job, r, strtod(argv[3], nullptr) / (double)bytes, sms));
    printf("%.4f\n", measure_naive(job, r, 1, sms));
    printf("%.4f\n", measure(&plan->windows, r, sms));
    reach_answer_free(answer);
    reach_close(reach);
    return 0;
}
