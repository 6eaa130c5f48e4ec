/* gather.cu: a batched, pooled embedding gather from a table that fills the GPU. A bag has 64 row
 * numbers, and its result is the sum of these rows. Rows are 128 to 512 bytes of 32-bit floats. The
 * row numbers are in device memory. The numbers in the table are small integers, so sums are exact
 * in any order.
 *
 *   naive                 any SM does any bag
 *   scopes                for each scope all SMs scan all bags and add up the rows in it
 *   filtered windows      the SMs of each window scan all bags and add up the rows in it
 *   partitioned windows   the row numbers of each bag are partitioned by window first
 *
 * The calibration within the reach uses the same bags, with row numbers below half of the reach.
 */
#include "gather_kernels.cuh"
#include "job_device.cuh"

enum {
    LAG = 1024,  /* pieces between two windows; at twice this lag the L2 loses the row numbers */
    BATCHES = 4, /* number of batches per execution, over the same bags. A real job has many, and
                    TLBs are cold for the first only */
    REFERENCE_BAGS = 1 << 12,
    MAX_PARTITIONS = 4 /* largest number of windows to which bags can be partitioned */
};

typedef void (*gather_kernel)(reach_table, gather_work);

struct state {
    job_device device;
    u32 bags, row_bytes, seed;
    u32 *numbers, *in_reach_numbers, *partitioned, *stored;
    uint16_t *in_window;
    float *out;
    unsigned long long *sum;
};

static gather_kernel kernel_of(u32 row_bytes)
{
    return row_bytes == 128 ? gather_128 : row_bytes == 256 ? gather_256 : gather_512;
}

static bool open_job(void *user, const job_options *options, int index, char *uuid, char *why)
{
    state *s = (state *)user;
    job_device *d = &s->device;
    s->bags = (u32)(options->count / GATHER_PIECE * GATHER_PIECE);
    s->row_bytes = options->row_bytes;
    s->seed = options->seed;
    if (s->bags == 0 || options->count > 1u << 24)
        return job_fail(why, "--bags must be from 16 to 16M");
    const u64 list_bytes = (u64)s->bags * GATHER_BAG * sizeof(u32);
    const u64 count_bytes = (u64)s->bags * sizeof(uint16_t);
    return job_device_open(d, index, uuid, why) &&
           job_device_allocate(d, &s->numbers, list_bytes, why) &&
           job_device_allocate(d, &s->in_reach_numbers, list_bytes, why) &&
           job_device_allocate(d, &s->partitioned, MAX_PARTITIONS * list_bytes, why) &&
           job_device_allocate(d, &s->in_window, MAX_PARTITIONS * count_bytes, why) &&
           job_device_allocate(d, &s->stored, s->bags / GATHER_PIECE * sizeof(u32), why) &&
           job_device_allocate(d, &s->out, (u64)s->bags * s->row_bytes, why) &&
           job_device_allocate(d, &s->sum, sizeof *s->sum, why);
}

/* Compares the first bags with sums that the CPU computes. */
static bool check_bags(state *s, char *why)
{
    const u32 columns = s->row_bytes / 4,
              bags = s->bags < REFERENCE_BAGS ? s->bags : REFERENCE_BAGS;
    const u64 rows = s->device.bytes / s->row_bytes;
    std::vector<float> found((size_t)bags * columns);
    TRY(cudaMemcpy(found.data(), s->out, found.size() * 4, cudaMemcpyDeviceToHost));
    for (u32 bag = 0; bag < bags; bag++) {
        for (u32 c = 0; c < columns; c++) {
            float sum = 0;
            for (u32 r = 0; r < GATHER_BAG; r++)
                sum += element_cell(element_random((u64)bag * GATHER_BAG + r, s->seed, rows), c);
            if (sum != found[(size_t)bag * columns + c])
                return job_fail(why, "bag %u, column %u: %g instead of %g", bag, c,
                                (double)found[(size_t)bag * columns + c], (double)sum);
        }
    }
    return true;
}

static bool prepare(void *user, u64 *bytes, u64 reach_bytes, job_run *, char *why)
{
    state *s = (state *)user;
    const u64 count = (u64)s->bags * GATHER_BAG;
    const u32 blocks = job_blocks(&s->device) * 8;
    if (!job_device_prepare(&s->device, bytes, reach_bytes, why))
        return false;
    gather_fill<<<blocks, 256>>>((float *)s->device.memory, *bytes / 4, s->row_bytes / 4);
    gather_numbers<<<blocks, 256>>>(s->numbers, count, *bytes / s->row_bytes, s->seed);
    gather_numbers<<<blocks, 256>>>(s->in_reach_numbers, count,
                                    s->device.in_reach_bytes / s->row_bytes, s->seed);
    TRY(cudaGetLastError());
    return true;
}

static bool launch(state *s, u32 pass, const u32 *numbers, const uint16_t *in_window, bool add,
                   char *why)
{
    const reach_table &table = s->device.tables[pass];
    const u32 pieces = s->bags / GATHER_PIECE;
    const u32 share = pieces / table.window_count ? pieces / table.window_count : 1;
    gather_work work = {};
    work.rows = (const float4 *)s->device.memory;
    work.numbers = numbers;
    work.in_window = in_window;
    work.out = (float4 *)s->out;
    work.stored = s->stored;
    work.pieces = pieces;
    work.lag = share < LAG ? share : LAG;
    work.add = add;
    TRY(reach_table_start(&table, 0));
    if (table.window_count > 1)
        TRY(cudaMemsetAsync(s->stored, 0, pieces * sizeof(u32)));
    kernel_of(s->row_bytes)<<<job_blocks(&s->device), GATHER_THREADS>>>(table, work);
    TRY(cudaGetLastError());
    return true;
}

/* Runs all batches with one window for all SMs. */
static bool launch_batches(state *s, const u32 *numbers, bool add, char *why)
{
    for (int batch = 0; batch < BATCHES; batch++) {
        if (!launch(s, 0, numbers, NULL, add, why))
            return false;
    }
    return true;
}

/* Measures the sums within the reach, and the scan with an empty window, which contains no row. */
static bool calibrate(void *user, double *in_reach_ms, double *scan_ms, char *why)
{
    state *s = (state *)user;
    job_device *d = &s->device;
    const auto in_reach = [=] { return launch_batches(s, s->in_reach_numbers, false, why); };
    const auto scan = [=] { return launch_batches(s, s->numbers, true, why); };
    return job_device_time(d, 0, d->in_reach_bytes, in_reach, in_reach_ms, why) &&
           job_device_time(d, 0, 0, scan, scan_ms, why);
}

static bool run_partitioned(state *s, char *why)
{
    const reach_table &table = s->device.tables[0];
    if (table.window_count > MAX_PARTITIONS)
        return job_fail(why, "the plan has %u windows, and bags are partitioned to %d at most",
                        table.window_count, MAX_PARTITIONS);
    gather_partition<<<job_blocks(&s->device) * 2, 1024>>>(table, s->numbers, s->bags, s->row_bytes,
                                                           s->partitioned, s->in_window);
    TRY(cudaGetLastError());
    return launch(s, 0, s->partitioned, s->in_window, false, why);
}

static bool run_choice(void *user, const job_choice *choice, const job_pass *passes, double *ms,
                       job_result *out, char *why)
{
    state *s = (state *)user;
    const bool partitioned = choice->strategy == REACH_PARTITIONED_WINDOWS;
    const auto batches = [=] {
        for (int batch = 0; batch < BATCHES; batch++) {
            for (u32 p = 0; p < choice->pass_count && !partitioned; p++) {
                if (!launch(s, p, s->numbers, NULL, p > 0, why))
                    return false;
            }
            if (partitioned && !run_partitioned(s, why))
                return false;
        }
        return true;
    };
    TRY(cudaMemset(s->out, 0xff, (u64)s->bags * s->row_bytes));
    TRY(cudaMemset(s->sum, 0, sizeof *s->sum));
    if (!job_device_run(&s->device, passes, choice->pass_count, batches, ms, why))
        return false;
    gather_check<<<job_blocks(&s->device) * 4, 256>>>(s->out, (u64)s->bags * s->row_bytes / 4,
                                                      s->sum);
    TRY(cudaMemcpy(&out->number[0], s->sum, sizeof(u64), cudaMemcpyDeviceToHost));
    return check_bags(s, why);
}

static void describe(void *, const job_options *options, reach_job *out)
{
    const u64 bags = options->count / GATHER_PIECE * GATHER_PIECE;
    out->access = REACH_READ;
    out->element_bytes = options->row_bytes;
    out->transaction_bytes = options->row_bytes;
    out->accesses = bags * GATHER_BAG;
    out->input_bytes = sizeof(u32);
    out->output_bytes = (double)options->row_bytes / GATHER_BAG;
    out->reserve_bytes = 64ull << 20; /* row numbers and sums in use at a time */
}

static u64 batches(const job_options *)
{
    return BATCHES;
}

int main(int argc, char **argv)
{
    static state s;
    static const job gather = {
        .name = "gather",
        .title = "embedding gather, sums of 64 rows",
        .help =
            "  --bags N         of 64 rows each, in whole pieces of 16, of a batch; default 1M\n"
            "  --row-bytes N    128, 256 or 512; default 128\n",
        .unit = "bags",
        .result_names = {"check"},
        .default_count = 1 << 20,
        .state = &s,
        .open = open_job,
        .prepare = prepare,
        .calibrate = calibrate,
        .run = run_choice,
        .describe = describe,
        .batches = batches,
        .close = job_device_close,
    };
    return job_main(argc, argv, &gather);
}
