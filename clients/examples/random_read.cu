/* random_read.cu: a job that gets the window of each SM from reachd, and its gain.
 *
 * A GPU translates addresses with small tables. While the memory that an SM accesses at random fits
 * the table of its group of SMs, memory limits the throughput. Out of reach, translation limits it.
 * So a job over a larger allocation should confine each group to a window of its own. The groups of
 * SMs and the longest window differ from chip to chip; the daemon has measured them.
 *
 * The steps, for a job of your own:
 *   1. allocate                                            open_device()
 *   2. get the placement of that many bytes                get_answers()
 *   3. launch one block per SM; each block looks up its    read_windows(), with reach.cuh
 *      window and draws work from that window's queue
 *      until the queue is empty
 *
 * To show the gain, the same kernel runs four times with four different tables (random_read.h).
 * Each strategy reads the same number of lines, each window in proportion to its length, every line
 * of a window with the same probability. The time ends when the last SM has finished. Memory holds
 * a known function of the address, and every word that is read is compared with it.
 */
#include "line_reads.cuh"
#include "random_read.h"

#include <cstdlib>

/* Lines that a warp draws at a time: some 90 us of work. */
typedef line_reads<512> reads;

static const char help[] =
    "random_read: reads random 128-byte lines of one large allocation, in four choices: in a "
    "region\n"
    "within reach, naively over everything, in windows by SM, and as reachd recommends.\n"
    "\n"
    "  --reachd URI    source of answers: unix:/path, http://host:port, or\n"
    "                  file:/fingerprint.json; default as libreach chooses\n"
    "  --gpu N         CUDA's index of the GPU, default 0\n"
    "  --bytes SIZE    of the allocation, such as 79GiB; default: the largest possible\n"
    "  --lines N       lines that each strategy reads, default 2^30\n"
    "  --repeats N     timed repeats, default 5\n"
    "  --seed N        of the random lines, default 1\n"
    "  --json FILE     also write the result as JSON\n"
    "  --dry-run       print which SM would read where and stop; needs no GPU. --gpu is then the\n"
    "                  daemon's index or a UUID\n"
    "\n"
    "Exit status: 0 measured, 1 failed, 2 wrong options.\n";
static const job_limits limits = {1, 1ull << 39, 1ull << 31, JOB_MAX_REPEATS, UINT32_MAX};

/* ---- on the device -------------------------------------------------------------------------- */

__global__ void fill(u32 *memory, u64 lines)
{
    const u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < lines * LINE_WORDS; i += step)
        memory[i] = element_line_word((u32)(i / LINE_WORDS), (u32)(i % LINE_WORDS));
}

/* ---- on the host ---------------------------------------------------------------------------- */

/* The data that all launches share. */
struct device {
    job_device base;
    u32 *memory;
    reads launches;
};

/* Allocates and fills `*bytes`; 0 means the largest allocation. Nothing is allocated after that. */
static bool open_device(device *d, int index, u64 *bytes, char *why)
{
    if (!d->launches.open(&d->base, index, why))
        return false;
    if (*bytes ? !job_device_allocate(&d->base, &d->memory, *bytes, why)
               : !job_device_allocate_largest(&d->base, 0, why))
        return false;
    if (*bytes == 0) {
        d->memory = (u32 *)d->base.memory;
        *bytes = d->base.memory_bytes;
    }
    fill<<<job_blocks(&d->base) * 8, 256>>>(d->memory, *bytes / LINE_BYTES);
    TRY(cudaGetLastError());
    TRY(cudaDeviceSynchronize());
    return true;
}

/* Runs all strategies in each round, so that a drifting clock affects all equally. The first round
 * warms up. */
static bool measure(device *d, const strategy *strategies, const job_options *options,
                    timing *timings, char *why)
{
    for (u32 round = 0; round <= options->repeats; round++) {
        for (int i = 0; i < STRATEGY_COUNT; i++) {
            double ms = 0;
            if (!d->launches.run(&d->base, d->memory, &strategies[i].windows, options->count,
                                 options->seed, &ms, &timings[i].lines, &timings[i].mismatches,
                                 why))
                return false;
            if (round > 0)
                timings[i].milliseconds[round - 1] = ms;
        }
    }
    for (int i = 0; i < STRATEGY_COUNT; i++)
        timing_derive(&timings[i], options->repeats);
    return true;
}

/* Gets the scope and placement of `bytes`. */
static bool get_answers(struct reach *reach, const char *gpu, u64 bytes, answers *out, char *why)
{
    const reach_scope_request scope = {sizeof scope, bytes};
    const reach_placement_request request = {sizeof request, bytes};
    reach_error error;
    if (reach_get_scope(reach, gpu, &scope, &out->scope, &error) != REACH_OK ||
        reach_get_placement(reach, gpu, &request, &out->placement, &error) != REACH_OK)
        return job_fail(why, "%s", error.text);
    const reach_placement *placement = reach_answer_placement(out->placement);
    return placement->windows.window_count != 0 ||
           job_fail(why, "there are no windows (%s): %.400s", reach_advice_name(placement->advice),
                    placement->reason);
}

/* Does all work after the options are read. Returns false also if words were read wrong. */
static bool run(device *d, const job_options *options, struct reach **reach, answers *found,
                char *why)
{
    static strategy strategies[STRATEGY_COUNT];
    static timing timings[STRATEGY_COUNT];
    const bool dry = options->dry_run;
    const int index = atoi(options->gpu);
    u64 bytes = options->bytes[0] / LINE_BYTES * LINE_BYTES, mismatches = 0;
    char gpu[REACH_UUID_BYTES];
    reach_error error;
    snprintf(gpu, sizeof gpu, "%s", options->gpu);
    if (!dry && !job_device_open(&d->base, index, gpu, why))
        return false;
    if (reach_open(options->uri, reach, &error) != REACH_OK ||
        reach_get_fingerprint(*reach, gpu, &found->fingerprint, &error) != REACH_OK)
        return job_fail(why, "%s", error.text);
    if (dry && bytes == 0)
        bytes =
            reach_answer_fingerprint(found->fingerprint)->memory_bytes / LINE_BYTES * LINE_BYTES;
    if ((!dry && !open_device(d, index, &bytes, why)) ||
        !get_answers(*reach, gpu, bytes, found, why))
        return false;
    strategies_make(found, bytes, strategies);
    if (!dry && !measure(d, strategies, options, timings, why))
        return false;
    const report report = {found, strategies, dry ? NULL : timings, bytes, options};
    report_print(stdout, &report);
    if (options->json && !report_write_json(options->json, &report, why))
        return false;
    for (const timing &t : timings)
        mismatches += t.mismatches;
    return mismatches == 0 ||
           job_fail(why, "%llu words were read wrong", (unsigned long long)mismatches);
}

int main(int argc, char **argv)
{
    static device d;
    static const job job = {
        .name = "random_read",
        .help = help,
        .unit = "lines",
        .default_count = 1ull << 30, /* 128 GiB of reads: some 45 ms at 3 TB/s */
        .limits = &limits,
    };
    job_options options;
    char why[JOB_TEXT_BYTES];
    struct reach *reach = NULL;
    answers found = {};
    if (!job_options_parse(argc, argv, &job, &options, why)) {
        fprintf(stderr, "random_read: %s\n", why);
        return 2;
    }
    if (options.help) {
        fputs(help, stdout);
        return job_exit("random_read", true);
    }
    const bool good = run(&d, &options, &reach, &found, why);
    if (!good)
        fprintf(stderr, "random_read: %s\n", why);
    for (struct reach_answer *answer : {found.fingerprint, found.scope, found.placement})
        reach_answer_free(answer);
    reach_close(reach);
    if (!options.dry_run)
        job_device_close(&d.base);
    return job_exit("random_read", good);
}
