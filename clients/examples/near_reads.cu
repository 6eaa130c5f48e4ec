/* near_reads.cu: random reads of a set that exceeds the L2. The program shows the gain if each SM
 * reads on its own side of the L2.
 *
 * The steps, for a job of your own:
 *   1. get the fingerprint, and the plan for the set         get_answers()
 *   2. allocate; sort the granules of the buffer by side     open_set(), with reach_sides.cuh
 *   3. launch one block per SM; each draws work of its side  read_granules()
 *      and touches only granules that are near to it
 *
 * To show the gain, the same kernel runs three times with the same work: every SM in all granules,
 * in near ones, and as a control in far ones. Each word that is read is compared with the value for
 * its address. The time ends when the last SM has finished.
 */
#include "element.h"
#include "job_device.cuh"
#include "reach_sides.cuh"

#include <algorithm>

enum {
    BLOCK_BYTES = 512, /* bytes of one read of a warp */
    BLOCK_WORDS = BLOCK_BYTES / 4,
    PIECE_READS = 256, /* reads that a warp draws at a time */
    WARP = 32,
    IN_FLIGHT = 8,
    LANE_WORDS = 4
};

static const char help[] =
    "near_reads: reads random 512-byte blocks of a set in three ways: every SM anywhere, every SM\n"
    "in granules on its own side of the L2, and in those of the other side.\n"
    "\n"
    "  --reachd URI    source of answers: unix:/path, http://host:port, or\n"
    "                  file:/fingerprint.json; default as libreach chooses\n"
    "  --gpu N         CUDA's index of the GPU, default 0\n"
    "  --bytes LIST    of the set, such as 96MiB,3GiB; default 96MiB; at most 15GiB\n"
    "  --blocks N      that each way reads, default 2^26\n"
    "  --repeats N     timed repeats, default 5\n"
    "  --seed N        of the random blocks, default 1\n"
    "  --dry-run       print what the plan predicts and stop; needs no GPU. --gpu is then the\n"
    "                  daemon's index or a UUID\n"
    "\n"
    "Exit status: 0 every word was right, 1 not, or it failed, 2 wrong options.\n";
static const job_limits limits = {JOB_MAX_SIZES, 15ull << 30, 1ull << 36, JOB_MAX_REPEATS,
                                  UINT32_MAX};

enum { WAY_ANYHOW = 0, WAY_NEAR, WAY_FAR, WAY_COUNT };
static const char *const way_names[WAY_COUNT] = {"anyhow", "near", "far"};

/* ---- on the device -------------------------------------------------------------------------- */

/* Returns the contents of word `at`. Word at + 1 is larger by a constant. */
static __device__ __forceinline__ u32 word_of(u32 at)
{
    return at * 0x9e3779b1u + 1;
}

__global__ void fill(u32 *memory, u64 words)
{
    const u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < words; i += step)
        memory[i] = word_of((u32)i);
}

/* Returns the first word of the i-th random block of this side. The high bits of a hash choose the
 * granule, and the low bits choose the block in it. */
static __device__ __forceinline__ u32 random_block(const reach_sides &sides,
                                                   const reach_side_me &me, u32 i, u32 seed)
{
    const u32 blocks = (u32)(sides.granule_bytes / BLOCK_BYTES);
    const u32 hash = element_mix32(i * 0x9e3779b9u + (seed * 2 + me.side) * 0x632be5abu);
    const u32 granule = __ldg(me.granules + __umulhi(hash, me.granule_count));
    const u32 block = element_mix32(hash) % blocks;
    return (granule * blocks + block) * BLOCK_WORDS;
}

/* Lets a warp read the blocks of one piece. Returns a value that is not 0 if a word was wrong. */
static __device__ u32 read_piece(const reach_sides &sides, const reach_side_me &me,
                                 const u32 *memory, u32 piece, u32 seed)
{
    const u32 lane = threadIdx.x % WARP;
    u32 wrong = 0;
    for (u32 batch = 0; batch < PIECE_READS; batch += WARP) {
        const u32 mine = random_block(sides, me, piece * PIECE_READS + batch + lane, seed);
#pragma unroll 1
        for (u32 k = 0; k < WARP; k += IN_FLIGHT) {
            u32 at[IN_FLIGHT];
            uint4 v[IN_FLIGHT];
#pragma unroll
            for (u32 j = 0; j < IN_FLIGHT; j++) {
                at[j] = __shfl_sync(~0u, mine, k + j) + lane * LANE_WORDS;
                v[j] = __ldcg((const uint4 *)(memory + at[j]));
            }
#pragma unroll
            for (u32 j = 0; j < IN_FLIGHT; j++)
                wrong |= (v[j].x ^ word_of(at[j])) | (v[j].y ^ word_of(at[j] + 1)) |
                         (v[j].z ^ word_of(at[j] + 2)) | (v[j].w ^ word_of(at[j] + 3));
        }
    }
    return wrong;
}

struct tally {
    unsigned long long pieces, wrong;
};

__global__ void __launch_bounds__(JOB_THREADS, 1)
    read_granules(reach_sides sides, const u32 *memory, uint2 pieces, u32 seed, tally *out)
{
    reach_side_me me;
    u32 wrong = 0, done = 0;
    if (!reach_side_enter(sides, &me))
        return;
    REACH_SIDE_PIECES(sides, me, me.side ? pieces.y : pieces.x, piece)
    {
        wrong |= read_piece(sides, me, memory, piece, seed);
        done++;
    }
    if (wrong)
        atomicAdd(&out->wrong, 1ull);
    if (threadIdx.x % WARP == 0)
        atomicAdd(&out->pieces, (unsigned long long)done);
}

/* ---- on the host ---------------------------------------------------------------------------- */

struct device {
    job_device base;
    u32 *memory;
    u64 bytes;
    tally *counted;
    int shared_bytes;            /* keeps a second block off an SM */
    reach_sides ways[WAY_COUNT]; /* near and far differ in `first` and `count` */
    double sort_ms;
};

/* The answers of reachd, which the program owns. */
struct answers {
    struct reach_answer *fingerprint;
    struct reach_answer *plan; /* plan of the current size */
};

static const reach_option *option_of(const answers *found, reach_strategy strategy)
{
    const reach_option *option = nullptr;
    for (u32 i = 0; (option = reach_answer_option(found->plan, i)) != nullptr; i++)
        if (option->strategy == strategy)
            break;
    return option;
}

static bool get_plan(reach *from, const char *gpu, u64 bytes, answers *found, char *why)
{
    reach_job job = {};
    reach_error error;
    job.size = sizeof job;
    job.bytes = bytes;
    job.element_bytes = BLOCK_BYTES;
    reach_answer_free(found->plan);
    found->plan = nullptr;
    return reach_get_plan(from, gpu, &job, &found->plan, &error) == REACH_OK ||
           job_fail(why, "%s", error.text);
}

/* Makes the far way, in which each side takes the list of the other. */
static reach_sides far_of(const reach_sides &near)
{
    reach_sides far = near;
    std::swap(far.first[0], far.first[1]);
    std::swap(far.count[0], far.count[1]);
    return far;
}

/* Allocates, fills and sorts the largest set; smaller sets are its beginning. */
static bool open_set(device *d, const reach_fingerprint *chip, int index, u64 bytes, char *why)
{
    int shared_per_sm = 0;
    TRY(cudaDeviceGetAttribute(&shared_per_sm, cudaDevAttrMaxSharedMemoryPerMultiprocessor, index));
    d->shared_bytes = shared_per_sm / 2 + 1024;
    TRY(cudaFuncSetAttribute(read_granules, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             d->shared_bytes));
    if (!job_device_allocate(&d->base, &d->memory, bytes, why) ||
        !job_device_allocate(&d->base, &d->counted, sizeof(tally), why))
        return false;
    fill<<<job_blocks(&d->base) * 8, 256>>>(d->memory, bytes / 4);
    TRY(cudaGetLastError());
    TRY(cudaDeviceSynchronize());
    TRY(reach_sides_make(nullptr, bytes, &d->ways[WAY_ANYHOW]));
    TRY(reach_sides_make(chip, bytes, &d->ways[WAY_NEAR]));
    d->ways[WAY_ANYHOW].granule_bytes = d->ways[WAY_NEAR].granule_bytes;
    return true;
}

static bool sort_set(device *d, u64 bytes, char *why)
{
    if (!reach_sides_sort(&d->ways[WAY_ANYHOW], d->memory, bytes, why, JOB_TEXT_BYTES) ||
        !job_device_begin(&d->base, why) ||
        !reach_sides_sort(&d->ways[WAY_NEAR], d->memory, bytes, why, JOB_TEXT_BYTES) ||
        !job_device_end(&d->base, &d->sort_ms, why))
        return false;
    d->ways[WAY_FAR] = far_of(d->ways[WAY_NEAR]);
    d->bytes = bytes;
    return d->ways[WAY_NEAR].side_count == 1 ||
           std::min(d->ways[WAY_NEAR].count[0], d->ways[WAY_NEAR].count[1]) > 0 ||
           job_fail(why, "all %u granules are on one side: the set is too short",
                    d->ways[WAY_NEAR].granule_count);
}

/* Makes one launch of a way. Each side has work in proportion to its granules. */
static bool run_way(device *d, const reach_sides *way, const job_options *options, double *out_ms,
                    u64 *out_bytes, char *why)
{
    const double pieces = (double)(options->count / PIECE_READS + 1);
    const double first = pieces * way->count[0] / way->granule_count;
    const uint2 of_side = {(u32)(first + 0.5), (u32)(pieces - first + 0.5)};
    tally t = {};
    TRY(cudaMemset(d->counted, 0, sizeof t));
    TRY(reach_sides_start(way, 0));
    if (!job_device_begin(&d->base, why))
        return false;
    read_granules<<<job_blocks(&d->base), JOB_THREADS, d->shared_bytes>>>(
        *way, d->memory, of_side, options->seed, d->counted);
    if (!job_device_end(&d->base, out_ms, why) || !reach_sides_check(way, why, JOB_TEXT_BYTES))
        return false;
    TRY(cudaMemcpy(&t, d->counted, sizeof t, cudaMemcpyDeviceToHost));
    *out_bytes = ((u64)of_side.x + of_side.y) * PIECE_READS * BLOCK_BYTES;
    if (t.wrong)
        return job_fail(why, "%llu threads read wrong words", t.wrong);
    return t.pieces == (u64)of_side.x + of_side.y ||
           job_fail(why, "%llu pieces of %llu were read; a side has no SM", t.pieces,
                    (unsigned long long)of_side.x + of_side.y);
}

/* Measures GB/s of each way as medians, round by round, so that a drifting clock affects all
 * equally. */
static bool measure(device *d, const job_options *options, double *gbps, char *why)
{
    double all[WAY_COUNT][JOB_MAX_REPEATS];
    for (u32 round = 0; round <= options->repeats; round++) /* the first round warms up */
        for (int w = 0; w < WAY_COUNT; w++) {
            double ms = 0;
            u64 bytes = 0;
            if (!run_way(d, &d->ways[w], options, &ms, &bytes, why))
                return false;
            all[w][round > 0 ? round - 1 : 0] = (double)bytes / ms / 1e6;
        }
    for (int w = 0; w < WAY_COUNT; w++) {
        std::sort(all[w], all[w] + options->repeats);
        gbps[w] = all[w][options->repeats / 2];
    }
    return true;
}

static void print_prediction(const char *name, const reach_option *option)
{
    printf("  %s predicted %s", name, option && option->gbps.known ? "" : "not known");
    if (option && option->gbps.known)
        printf("%.0f GB/s", option->gbps.value);
}

static void print_plan(u64 bytes, const answers *found)
{
    const reach_option *near = option_of(found, REACH_SIDES);
    printf("set of %.1f MiB:", (double)bytes / (1 << 20));
    print_prediction("anyhow", option_of(found, REACH_NAIVE));
    print_prediction("near", near);
    printf("\n  %s\n", near ? near->why : "this reachd does not know the strategy \"sides\"");
}

static void print_measured(const device *d, const double *gbps)
{
    const reach_sides *near = &d->ways[WAY_NEAR];
    printf(
        "  sorted in %.2f ms: %u granules of %llu bytes near side 0, %u near side 1, %u unsure\n",
        d->sort_ms, near->count[0], (unsigned long long)near->granule_bytes, near->count[1],
        near->unsure);
    printf("  measured:");
    for (int w = 0; w < WAY_COUNT; w++)
        printf(" %s %.0f GB/s,", way_names[w], gbps[w]);
    printf(" near / anyhow %.3f\n", gbps[WAY_NEAR] / gbps[WAY_ANYHOW]);
}

/* Returns the size of a set in whole granules, which are whole blocks. 0 means 96 MiB. */
static u64 whole(u64 bytes, const reach_fingerprint *chip)
{
    const u64 granule = chip->side_granule_bytes.known ? (u64)chip->side_granule_bytes.value : 4096;
    return std::max<u64>((bytes ? bytes : 96ull << 20) / granule, 1) * granule;
}

static bool run(device *d, const job_options *options, reach **from, answers *found, char *why)
{
    char gpu[REACH_UUID_BYTES];
    const int index = atoi(options->gpu);
    reach_error error;
    u64 most = 0;
    double gbps[WAY_COUNT];
    snprintf(gpu, sizeof gpu, "%s", options->gpu);
    if (!options->dry_run && !job_device_open(&d->base, index, gpu, why))
        return false;
    if (reach_open(options->uri, from, &error) != REACH_OK ||
        reach_get_fingerprint(*from, gpu, &found->fingerprint, &error) != REACH_OK)
        return job_fail(why, "%s", error.text);
    const reach_fingerprint *chip = reach_answer_fingerprint(found->fingerprint);
    printf("random reads of %d bytes, %s; sides of the L2: %s\n", BLOCK_BYTES, chip->name,
           chip->sides.known ? "2" : chip->sides.reason);
    for (u32 i = 0; i < options->size_count; i++)
        most = std::max(most, whole(options->bytes[i], chip));
    if (!options->dry_run && !open_set(d, chip, index, most, why))
        return false;
    for (u32 i = 0; i < options->size_count; i++) {
        const u64 bytes = whole(options->bytes[i], chip);
        if (!get_plan(*from, gpu, bytes, found, why))
            return false;
        print_plan(bytes, found);
        if (options->dry_run)
            continue;
        if (!sort_set(d, bytes, why) || !measure(d, options, gbps, why))
            return false;
        print_measured(d, gbps);
    }
    return true;
}

int main(int argc, char **argv)
{
    static device d;
    static const job job = {
        .name = "near_reads",
        .help = help,
        .unit = "blocks",
        .default_count = 1ull << 26, /* 32 GiB of reads */
        .limits = &limits,
    };
    job_options options;
    char why[JOB_TEXT_BYTES];
    reach *from = nullptr;
    answers found = {};
    if (!job_options_parse(argc, argv, &job, &options, why)) {
        fprintf(stderr, "near_reads: %s\n", why);
        return 2;
    }
    if (options.help) {
        fputs(help, stdout);
        return job_exit("near_reads", true);
    }
    const bool good = run(&d, &options, &from, &found, why);
    if (!good)
        fprintf(stderr, "near_reads: %s\n", why);
    for (reach_answer *answer : {found.fingerprint, found.plan})
        reach_answer_free(answer);
    reach_close(from);
    if (!options.dry_run) {
        reach_sides_free(&d.ways[WAY_ANYHOW]);
        reach_sides_free(&d.ways[WAY_NEAR]);
        job_device_close(&d.base);
    }
    return job_exit("near_reads", good);
}
