/* gen_jobs.c: see gen_jobs.h. Each warp of the grid gets one contiguous piece of the work, like in
 * the jobs themselves. The records of a warp are adjacent and in order.
 */
#include "clients/lab/trace/gen_jobs.h"

#include "base/units.h"
#include "clients/examples/element.h"

#include <string.h>

enum { GRID_BLOCKS = 264, MAX_BLOCK_WARPS = 32, ROUND = 1, BAG_ROWS = 64, GATHER_LANE_BYTES = 16 };

static const uint64_t BASE = 0x7f0000000000u;

/* Writes the addresses of the lanes of a warp in step `step` of the whole job. */
typedef void lanes_fn(const struct gen_job *job, uint64_t step, uint64_t addresses[RLT_LANES]);

static void random_lanes(const struct gen_job *job, uint64_t step, uint64_t addresses[RLT_LANES])
{
    const uint64_t line = element_random(step, job->seed, job->bytes / RLT_MIN_GRANULE);
    for (uint32_t i = 0; i < RLT_LANES; i++)
        addresses[i] = BASE + line * RLT_MIN_GRANULE + 4 * (uint64_t)i;
}

static void sampling_lanes(const struct gen_job *job, uint64_t step, uint64_t addresses[RLT_LANES])
{
    for (uint32_t i = 0; i < RLT_LANES; i++)
        addresses[i] = BASE + 4 * element_random(step * RLT_LANES + i, job->seed, job->bytes / 4);
}

/* A warp reads `together` bags at a time, row by row. */
static void gather_lanes(const struct gen_job *job, uint64_t step, uint64_t addresses[RLT_LANES])
{
    const uint32_t row_lanes = job->row_bytes / GATHER_LANE_BYTES;
    const uint32_t together = RLT_LANES / row_lanes;
    for (uint32_t i = 0; i < RLT_LANES; i++) {
        const uint64_t bag = step / BAG_ROWS * together + i / row_lanes;
        const uint64_t number = bag * BAG_ROWS + step % BAG_ROWS;
        const uint64_t row = element_random(number, job->seed, job->bytes / job->row_bytes);
        addresses[i] = BASE + row * job->row_bytes + (uint64_t)(i % row_lanes) * GATHER_LANE_BYTES;
    }
}

/* There are two buckets per distinct value. */
static void grouping_lanes(const struct gen_job *job, uint64_t step, uint64_t addresses[RLT_LANES])
{
    const uint64_t buckets = job->bytes / sizeof(struct element_bucket);
    const uint64_t most = buckets / 2 < UINT32_MAX ? buckets / 2 : UINT32_MAX;
    for (uint32_t i = 0; i < RLT_LANES; i++) {
        const uint64_t value = element_random(step * RLT_LANES + i, job->seed, most);
        const uint64_t bucket = element_bucket_of(element_key((uint32_t)value, ROUND), buckets);
        addresses[i] = BASE + bucket * sizeof(struct element_bucket);
    }
}

struct kind {
    const char *name;
    lanes_fn *lanes;
    enum rlt_kind kind;
    uint32_t width_log2;
    uint32_t repeats; /* records per step */
};

static const struct kind kinds[] = {{"random", random_lanes, RLT_LOAD, 2, 1},
                                    {"sampling", sampling_lanes, RLT_LOAD, 2, 1},
                                    {"gather", gather_lanes, RLT_LOAD, 4, 1},
                                    {"grouping", grouping_lanes, RLT_ATOMIC, 3, 2}};

/* Returns the number of elements per step. */
static uint32_t step_elements(const struct gen_job *job, const struct kind *k)
{
    if (k->lanes == random_lanes)
        return 1;
    return k->lanes == gather_lanes ? RLT_LANES / (job->row_bytes / GATHER_LANE_BYTES) : RLT_LANES;
}

static enum status check_job(const struct gen_job *job, const struct kind **out, struct err *err)
{
    *out = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(job->name, kinds[i].name) == 0)
            *out = &kinds[i];
    }
    if (!*out)
        return err_set_field(err, STATUS_INVALID_ARGUMENT, "job",
                             "unknown job \"%.40s\": use random, sampling, gather or grouping",
                             job->name);
    if (job->bytes < MIB || job->bytes > 4096 * GIB)
        return err_set_field(err, STATUS_INVALID_ARGUMENT, "bytes",
                             "bytes must be from 1 MiB to 4 TiB");
    if (job->count == 0 || job->count > (uint64_t)1 << 32)
        return err_set_field(err, STATUS_INVALID_ARGUMENT, "count", "count must be from 1 to 2^32");
    if (job->row_bytes != 128 && job->row_bytes != 256 && job->row_bytes != 512)
        return err_set_field(err, STATUS_INVALID_ARGUMENT, "row-bytes",
                             "row-bytes must be 128, 256 or 512");
    if (job->threads % RLT_LANES != 0 || job->threads > MAX_BLOCK_WARPS * RLT_LANES)
        return err_set_field(err, STATUS_INVALID_ARGUMENT, "threads",
                             "threads must be a multiple of 32 up to 1024");
    return STATUS_OK;
}

static void write_step(const struct gen_job *job, const struct kind *k, uint64_t step,
                       struct rlt_record *r, struct rlt_writer *out)
{
    uint64_t addresses[RLT_LANES];
    k->lanes(job, step, addresses);
    rlt_set_lines(out, addresses, r);
    for (uint32_t i = 0; i < k->repeats; i++)
        rlt_write_record(out, r);
}

enum status gen_job(const struct gen_job *job, struct rlt_writer *out, struct err *err)
{
    const struct kind *k;
    const enum status s = check_job(job, &k, err);
    struct rlt_allocation memory = {.base = BASE, .bytes = job->bytes};
    const uint32_t warps = job->threads > 0 ? job->threads / RLT_LANES : MAX_BLOCK_WARPS;
    struct rlt_kernel kernel = {.grid = {GRID_BLOCKS, 1, 1}, .block = {warps * RLT_LANES, 1, 1}};
    struct rlt_record r = {.mask = RLT_FULL_MASK};
    uint64_t steps;
    uint64_t piece;
    if (s != STATUS_OK)
        return s;
    memory.app = kernel.app = rlt_write_app(out, k->name);
    (void)strncpy(memory.name, "memory", sizeof memory.name - 1);
    (void)strncpy(kernel.name, k->name, sizeof kernel.name - 1);
    rlt_write_allocation(out, &memory);
    r.kernel = rlt_write_kernel(out, &kernel);
    r.kind = k->kind;
    r.width_log2 = k->width_log2;
    steps = (job->count - 1) / step_elements(job, k) + 1;
    piece = (steps - 1) / ((uint64_t)GRID_BLOCKS * warps) + 1;
    for (uint64_t step = 0; step < steps; step++) {
        const uint64_t warp = step / piece;
        r.block = warp / warps;
        r.warp = (uint32_t)(warp % warps);
        write_step(job, k, step, &r, out);
    }
    return STATUS_OK;
}
