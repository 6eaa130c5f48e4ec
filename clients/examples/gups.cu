/* gups.cu: reach-gups, random updates of one large table (HPCC RandomAccess), naive, in scopes and
 * in windows. Its options and output lines are the same as in gups of NVIDIA's code-samples.
 *
 * All choices make the same accesses. The sequence is computed, so a choice that works in parts of
 * the table computes all of it once per part and skips numbers outside. Each lane advances to the
 * next number of its part, then the lanes of a warp access memory together.
 *
 * For verification, all updates are made twice, because two equal XORs restore the table. The
 * second run is always naive, so a choice that skips or repeats an update is found. HPCC allows
 * errors in 1 % of the table; here updates are atomic. */
#include "gups.h"
#include "job_device.cuh"

#include <cstdlib>

enum { THREADS = 512 };

/* ---- on the device -------------------------------------------------------------------------- */

/* Sets word i to i. */
__global__ void fill(u64 *table, u64 elements)
{
    const u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += step)
        table[i] = i;
}

__global__ void count_errors(const u64 *table, u64 elements, unsigned long long *errors)
{
    const u64 step = (u64)gridDim.x * blockDim.x;
    u32 wrong = 0;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += step)
        wrong += table[i] != i;
    if (wrong)
        atomicAdd(errors, (unsigned long long)wrong);
}

/* `never` is a value that the table does not contain. A read is not optimized away, because its
 * value is compared. */
template <gups_test TEST>
static __device__ __forceinline__ void access_word(u64 *word, u64 number, u64 never)
{
    unsigned long long *const at = (unsigned long long *)word;
    unsigned long long old, assumed;
    switch (TEST) {
    case GUPS_UPDATE:
        old = *at;
        do {
            assumed = old;
            old = atomicCAS(at, assumed, assumed ^ number);
        } while (assumed != old);
        break;
    case GUPS_READ:
        if (*word == never)
            *word = 0;
        break;
    case GUPS_WRITE:
        *word = 1;
        break;
    case GUPS_READ_WRITE:
        *word += 1;
        break;
    case GUPS_UPDATE_NO_LOOP:
        old = *at;
        atomicCAS(at, old, old ^ number);
        break;
    default:
        atomicXor(at, (unsigned long long)number);
    }
}

template <gups_test TEST>
__global__ void __launch_bounds__(THREADS)
    gups(reach_table windows, u64 *table, u64 mask, u32 pieces)
{
    reach_me me;
    if (!reach_enter(windows, &me))
        return;
    const u64 first = me.first_byte / 8, length = me.length_bytes / 8;
    REACH_PIECES(windows, me, pieces, piece)
    {
        u64 number = gups_start(((u64)piece * 32 + threadIdx.x % 32) * GUPS_STEPS);
        u32 left = GUPS_STEPS;
        while (gups_next_inside(&number, &left, mask, first, length))
            access_word<TEST>(table + (number & mask), number, mask + 1);
    }
}

/* ---- on the host ---------------------------------------------------------------------------- */

typedef void (*gups_kernel)(reach_table, u64 *, u64, u32);

static const gups_kernel kernels[GUPS_TEST_COUNT] = {
    gups<GUPS_UPDATE>,     gups<GUPS_READ>,           gups<GUPS_WRITE>,
    gups<GUPS_READ_WRITE>, gups<GUPS_UPDATE_NO_LOOP>, gups<GUPS_UPDATE_XOR>};

struct state {
    job_device device;
    gups_options options;
    gups_kernel kernel;
    u32 blocks; /* number of blocks, which all run at once */
    u64 elements;
    u64 *table;
    unsigned long long *errors;
    job_pass passes[1024]; /* largest number of scopes of a choice */
};

static bool open_device(state *s, char *gpu, char *why)
{
    cudaDeviceProp properties;
    gups_gpu header = {};
    int per_sm = 0;
    s->kernel = kernels[s->options.test];
    s->elements = 1ull << s->options.log2_elements;
    if (!job_device_open(&s->device, (int)s->options.device, gpu, why))
        return false;
    TRY(cudaGetDeviceCount(&header.count));
    TRY(cudaGetDeviceProperties(&properties, (int)s->options.device));
    TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, s->kernel, THREADS, 0));
    s->blocks = (u32)(per_sm * s->device.sm_count);
    header.warp = properties.warpSize;
    header.sms = properties.multiProcessorCount;
    header.sm_threads = properties.maxThreadsPerMultiProcessor;
    header.threads = (u64)s->blocks * THREADS;
    gups_print_header(stdout, &s->options, &header);
    return job_device_allocate(&s->device, &s->table, gups_bytes(&s->options), why) &&
           job_device_allocate(&s->device, &s->errors, sizeof *s->errors, why);
}

static bool load_passes(state *s, const job_choice *choice, const reach_answer *plan, char *why)
{
    if (choice->pass_count > sizeof s->passes / sizeof *s->passes)
        return job_fail(why, "%u scopes are too many", choice->pass_count);
    for (u32 p = 0; p < choice->pass_count; p++)
        job_choice_pass(choice, plan, gups_bytes(&s->options), REACH_SM_MAX, p, &s->passes[p]);
    return job_device_load(&s->device, s->passes, choice->pass_count, why);
}

/* Makes all accesses of all repeats, in the passes of the choices. */
static bool launch(state *s, const job_choice *choice, char *why)
{
    for (u32 r = 0; r < s->options.repeats; r++) {
        for (u32 p = 0; p < choice->pass_count; p++) {
            TRY(reach_table_start(&s->device.tables[p], 0));
            s->kernel<<<s->blocks, THREADS>>>(s->device.tables[p], s->table, s->elements - 1,
                                              gups_pieces(&s->options));
            TRY(cudaGetLastError());
        }
    }
    return true;
}

/* Makes all updates again, naively, and counts the words that are not restored. */
static bool verify(state *s, char *why)
{
    static const job_choice naive = {REACH_NAIVE, 0, "naive", 1};
    unsigned long long errors = 0;
    double ms;
    TRY(cudaMemset(s->errors, 0, sizeof *s->errors));
    if (!load_passes(s, &naive, nullptr, why) || !launch(s, &naive, why))
        return false;
    count_errors<<<s->blocks, THREADS>>>(s->table, s->elements, s->errors);
    if (!job_device_begin(&s->device, why) || !job_device_end(&s->device, &ms, why))
        return false;
    TRY(cudaMemcpy(&errors, s->errors, sizeof errors, cudaMemcpyDeviceToHost));
    printf("Verification: Found %llu errors.\n", errors);
    return errors <= s->elements / 100 ||
           job_fail(why, "more than 1 %% of the table is wrong: %llu words", errors);
}

static bool run_choice(state *s, job_choice *choice, const reach_answer *plan, char *why)
{
    fill<<<s->blocks, THREADS>>>(s->table, s->elements);
    TRY(cudaGetLastError());
    if (!load_passes(s, choice, plan, why) || !job_device_begin(&s->device, why) ||
        !launch(s, choice, why) || !job_device_end(&s->device, &choice->milliseconds[0], why))
        return false;
    gups_print_result(stdout, &s->options, choice);
    const bool good = !gups_can_verify(s->options.test) || verify(s, why);
    fflush(stdout);
    return good;
}

static bool run(state *s, char *why)
{
    job_choice choices[JOB_MAX_CHOICES];
    reach_answer *plan = nullptr;
    reach *source = nullptr;
    reach_error error;
    char gpu[REACH_UUID_BYTES], no_plan[JOB_TEXT_BYTES];
    bool good = true;
    snprintf(gpu, sizeof gpu, "%u", s->options.device);
    if (!s->options.dry_run && !open_device(s, gpu, why))
        return false;
    if (reach_open(s->options.uri, &source, &error) != REACH_OK)
        return job_fail(why, "%s", error.text);
    const u32 count = gups_plan(source, gpu, &s->options, &plan, choices, no_plan);
    if (no_plan[0])
        printf("No plan, so only the naive choice is run: %s\n", no_plan);
    for (u32 i = 0; i < count && good && !s->options.dry_run; i++)
        good = run_choice(s, &choices[i], plan, why);
    if (good)
        gups_print_table(stdout, &s->options, choices, count);
    if (good && plan && !choices[0].predicted_gbps.known)
        printf("%s\n", reach_answer_plan(plan)->reason);
    reach_answer_free(plan);
    reach_close(source);
    return good;
}

int main(int argc, char **argv)
{
    static state s;
    char why[JOB_TEXT_BYTES];
    if (!gups_options_parse(argc, argv, &s.options, why)) {
        fprintf(stderr, "reach-gups: %s\n", why);
        return 2;
    }
    if (s.options.help) {
        gups_help(stdout);
        return job_exit("reach-gups", true);
    }
    const bool good = run(&s, why);
    if (!good)
        fprintf(stderr, "reach-gups: %s\n", why);
    if (!s.options.dry_run)
        job_device_close(&s.device);
    return job_exit("reach-gups", good);
}
