/* gather.cu: a batched embedding gather, pooled: bags of 64 row numbers, the sum of each bag's rows
 * (128 to 512 bytes of 32-bit floats) out of a table that fills the GPU. The row numbers lie in
 * device memory. The numbers in the table are small and whole, so that sums are exact in whatever
 * order the strategies add them.
 *
 *   naive                 any SM does any bag
 *   scopes                all SMs go over all bags once a scope and add up the rows inside it
 *   filtered windows      the SMs of each window go over all bags and add up the rows in it
 *   partitioned windows   the row numbers of each bag are dealt to the windows first
 *
 * Inside the reach: the same bags, with row numbers below half of the reach.
 */
#include "gather_kernels.cuh"
#include "job_device.cuh"

enum {
    LAG = 1024,  /* pieces; twice as far apart, the L2 has lost the row numbers again */
    BATCHES = 4, /* of a run, one after the other over the same bags: a job has many, and its TLBs are
                    cold once and not for each */
    REFERENCE_BAGS = 1 << 12
};

typedef void (*gather_kernel)(reach_table, gather_work);

struct state {
    job_device device;
    u32 bags, row_bytes, seed;
    u64 bytes, inside_bytes;
    u32 *numbers, *numbers_inside, *dealt, *stored;
    uint16_t *in_window;
    float *out;
    unsigned long long *sum;
    u32 dealt_windows;
};

static gather_kernel kernel_of(u32 row_bytes)
{
    return row_bytes == 128 ? gather_128 : row_bytes == 256 ? gather_256 : gather_512;
}

enum { MOST_DEALT_WINDOWS = 4 };

static bool open_job(void *user, const job_options *options, int index, char *uuid, char *why)
{
    state *s = (state *)user;
    s->bags = (u32)(options->count / GATHER_PIECE * GATHER_PIECE);
    s->row_bytes = options->row_bytes;
    s->seed = options->seed;
    if (s->bags == 0 || options->count > 1u << 24) {
        snprintf(why, JOB_TEXT_BYTES, "--bags must be from 16 to 16M");
        return false;
    }
    if (!job_device_open(&s->device, index, uuid, why))
        return false;
    const u64 list_bytes = (u64)s->bags * GATHER_BAG * sizeof(u32);
    TRY(cudaMalloc((void **)&s->numbers, list_bytes));
    TRY(cudaMalloc((void **)&s->numbers_inside, list_bytes));
    TRY(cudaMalloc((void **)&s->dealt, MOST_DEALT_WINDOWS * list_bytes));
    TRY(cudaMalloc((void **)&s->in_window, (u64)MOST_DEALT_WINDOWS * s->bags * sizeof(uint16_t)));
    TRY(cudaMalloc((void **)&s->stored, s->bags / GATHER_PIECE * sizeof(u32)));
    TRY(cudaMalloc((void **)&s->out, (u64)s->bags * s->row_bytes));
    TRY(cudaMalloc((void **)&s->sum, sizeof *s->sum));
    return true;
}

/* The first bags, added up on the CPU and compared one number after the other. */
static bool check_bags(state *s, char *why)
{
    const u32 columns = s->row_bytes / 4, bags = s->bags < REFERENCE_BAGS ? s->bags : REFERENCE_BAGS;
    std::vector<float> found((size_t)bags * columns);
    TRY(cudaMemcpy(found.data(), s->out, found.size() * 4, cudaMemcpyDeviceToHost));
    for (u32 bag = 0; bag < bags; bag++) {
        for (u32 c = 0; c < columns; c++) {
            float sum = 0;
            for (u32 r = 0; r < GATHER_BAG; r++)
                sum += element_cell(
                    element_random((u64)bag * GATHER_BAG + r, s->seed, s->bytes / s->row_bytes), c);
            if (sum != found[(size_t)bag * columns + c]) {
                snprintf(why, JOB_TEXT_BYTES, "bag %u, column %u: %g, and not %g", bag, c,
                         (double)found[(size_t)bag * columns + c], (double)sum);
                return false;
            }
        }
    }
    return true;
}

static bool prepare(void *user, u64 *bytes, u64 reach_bytes, job_run *, char *why)
{
    state *s = (state *)user;
    const u64 spare = 768ull << 20, count = (u64)s->bags * GATHER_BAG;
    const u32 blocks = job_blocks(&s->device) * 8;
    if (!job_device_take_memory(&s->device, spare, why) || !job_device_size(&s->device, bytes, why))
        return false;
    s->bytes = *bytes = *bytes / 512 * 512;
    s->inside_bytes = s->bytes < reach_bytes / 2 ? s->bytes : reach_bytes / 2 / 512 * 512;
    gather_fill<<<blocks, 256>>>((float *)s->device.memory, s->bytes / 4, s->row_bytes / 4);
    gather_numbers<<<blocks, 256>>>(s->numbers, count, s->bytes / s->row_bytes, s->seed);
    gather_numbers<<<blocks, 256>>>(s->numbers_inside, count, s->inside_bytes / s->row_bytes,
                                    s->seed);
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

/* Once to warm up, once for the clock. */
static bool time_one(state *s, u64 first_byte, u64 length_bytes, const u32 *numbers, bool add,
                     double *ms, char *why)
{
    for (int i = 0; i < 2; i++) {
        if (!job_device_load_one(&s->device, first_byte, length_bytes, why) ||
            !job_device_begin(&s->device, why))
            return false;
        for (int batch = 0; batch < BATCHES; batch++) {
            if (!launch(s, 0, numbers, NULL, add, why))
                return false;
        }
        if (!job_device_end(&s->device, ms, why))
            return false;
    }
    return true;
}

static bool inside(void *user, double *ms, char *why)
{
    state *s = (state *)user;
    return time_one(s, 0, s->inside_bytes, s->numbers_inside, false, ms, why);
}

/* No row lies in an empty window. */
static bool look(void *user, double *ms, char *why)
{
    state *s = (state *)user;
    return time_one(s, 0, 0, s->numbers, true, ms, why);
}

static bool run_dealt(state *s, char *why)
{
    const reach_table &table = s->device.tables[0];
    if (table.window_count > MOST_DEALT_WINDOWS) {
        snprintf(why, JOB_TEXT_BYTES, "room for %d windows, not for %u", MOST_DEALT_WINDOWS,
                 table.window_count);
        return false;
    }
    gather_deal<<<job_blocks(&s->device) * 2, 1024>>>(table, s->numbers, s->bags, s->row_bytes,
                                                      s->dealt, s->in_window);
    TRY(cudaGetLastError());
    return launch(s, 0, s->dealt, s->in_window, false, why);
}

static bool run_way(void *user, const job_way *way, const job_pass *passes, double *ms,
                    job_result *out, char *why)
{
    state *s = (state *)user;
    const bool dealt = way->strategy == REACH_PARTITIONED_WINDOWS;
    if (!job_device_load(&s->device, passes, way->pass_count, why))
        return false;
    TRY(cudaMemset(s->out, 0xff, (u64)s->bags * s->row_bytes));
    TRY(cudaMemset(s->sum, 0, sizeof *s->sum));
    if (!job_device_begin(&s->device, why))
        return false;
    for (int batch = 0; batch < BATCHES; batch++) {
        for (u32 p = 0; p < way->pass_count && !dealt; p++) {
            if (!launch(s, p, s->numbers, NULL, p > 0, why))
                return false;
        }
        if (dealt && !run_dealt(s, why))
            return false;
    }
    if (!job_device_end(&s->device, ms, why))
        return false;
    gather_check<<<job_blocks(&s->device) * 4, 256>>>(s->out, (u64)s->bags * s->row_bytes / 4,
                                                      s->sum);
    TRY(cudaMemcpy(&out->number[0], s->sum, sizeof(u64), cudaMemcpyDeviceToHost));
    return check_bags(s, why);
}

static void close_job(void *user)
{
    state *s = (state *)user;
    void *const all[] = {s->numbers, s->numbers_inside, s->dealt, s->in_window, s->stored, s->out,
                         s->sum};
    for (void *memory : all)
        cudaFree(memory);
    job_device_close(&s->device);
}

static void describe(void *, const job_options *options, reach_job *out)
{
    const u64 bags = options->count / GATHER_PIECE * GATHER_PIECE;
    out->access = REACH_READ;
    out->element_bytes = options->row_bytes;
    out->transaction_bytes = options->row_bytes;
    out->accesses = bags * GATHER_BAG * BATCHES;
    out->input_bytes = sizeof(u32);
    out->output_bytes = (double)options->row_bytes / GATHER_BAG;
    out->reserve_bytes = 64ull << 20; /* of row numbers and sums, what is under way at a time */
}

static const job_variant *variants(const job_options *)
{
    static const job_variant all[] = {
        {REACH_NAIVE, 0, "naive"},
        {REACH_SCOPES, 0, "scopes"},
        {REACH_FILTERED_WINDOWS, 0, "filtered windows"},
        {REACH_PARTITIONED_WINDOWS, 0, "partitioned windows"},
        {REACH_NAIVE, 0, NULL},
    };
    return all;
}

int main(int argc, char **argv)
{
    static state s;
    static job job;
    job.name = "gather";
    job.title = "embedding gather, sums of 64 rows";
    job.help = "  --bags N         of 64 rows each, in whole pieces of 16, of a batch; default 1M\n"
               "  --row-bytes N    128, 256 or 512; default 128\n";
    job.unit = "bags";
    job.result_names[0] = "check";
    job.default_count = 1 << 20;
    job.state = &s;
    job.variants = variants;
    job.open = open_job;
    job.prepare = prepare;
    job.inside = inside;
    job.look = look;
    job.run = run_way;
    job.describe = describe;
    job.close = close_job;
    return job_main(argc, argv, &job);
}
