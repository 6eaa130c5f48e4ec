/* grouping.cu: hash-based grouping (Karnagel 2017, sections 2.2 and 5.3): SELECT value, count(*)
 * GROUP BY value, with Murmur3, linear probing and two 16-byte buckets for each of the
 * distinct values. The input is 4-byte values in chunks of 128 MiB, in pinned host memory (--input
 * host) or in device memory (--input device: then the table is the limit, not the link).
 *
 *   naive                        one pass; any SM works anywhere in the table
 *     zero copy / copied         host input: read over the link by the kernel / by the copy engine
 *   scopes                       one pass for each scope of the table
 *     streamed again / staged    host input: over the link each time (Karnagel's naive variant) /
 *                                each chunk is copied once, and the passes are made on the GPU (his
 *                                copy variant; he merges the copy with the first pass)
 *   filtered windows             the SMs of each window scan all values and keep their own
 *   partitioned windows          the values of a chunk are partitioned by window first
 *
 * Copies run concurrently with kernels, into two buffers in turn. A table of 137 GiB needs more
 * values than a host may pin, so the same buffer is streamed round after round; the round is part
 * of the key.
 */
#include "grouping_kernels.cuh"
#include "partition.cuh"

enum {
    CHUNK = (128 << 20) / 4, /* values */
    CHUNKS = 4,              /* number of chunks in the buffer: 512 MiB */
    ROUND = CHUNK * CHUNKS,  /* values */
    BUFFERS = 2,
    IN_REACH = REACH_STRATEGY_COUNT, /* index of the calibration, after the strategies */
    CHOICES
};
enum { PLAIN = 0, ZERO_COPY, STREAMED_AGAIN }; /* variants */

/* The launch parameters of a kernel. */
struct shape {
    u32 threads; /* threads of the block of each SM */
    bool look_first;
};

struct state {
    job_device device;
    bool host_input;
    u32 rounds, seed;
    u64 reach_bytes;
    u32 *host, *values; /* `host`: pinned, [ROUND]; `values`: [ROUND] or [BUFFERS][CHUNK] */
    unsigned long long *result;
    const reach_windows *windows; /* windows of the current choice */
    partition_lists lists;
    cudaStream_t work, copy;
    cudaEvent_t copied[BUFFERS], used[BUFFERS];
    u64 buckets;           /* number of buckets of the current table */
    shape shapes[CHOICES]; /* best shapes; 0 threads if not tried yet */
    shape now;
    double link_gbps;
};

/* ---- streaming ------------------------------------------------------------------------------- */

/* Calls use(values, round) for all chunks of all rounds, on the device. With `copy` the chunks are
 * copied to the device ahead of their use. */
template <class Use> static bool stream(state *s, bool copy, Use use, char *why)
{
    for (u32 n = 0; n < s->rounds * CHUNKS; n++) {
        const u32 round = n / CHUNKS, buffer = n % BUFFERS;
        const u64 at = (u64)(n % CHUNKS) * CHUNK;
        const u32 *values = s->host_input ? s->host + at : s->values + at;
        if (copy) {
            u32 *target = s->values + (u64)buffer * CHUNK;
            TRY(cudaStreamWaitEvent(s->copy, s->used[buffer], 0));
            TRY(cudaMemcpyAsync(target, values, CHUNK * 4ull, cudaMemcpyHostToDevice, s->copy));
            TRY(cudaEventRecord(s->copied[buffer], s->copy));
            TRY(cudaStreamWaitEvent(s->work, s->copied[buffer], 0));
            values = target;
        }
        if (!use(values, round))
            return false;
        TRY(cudaEventRecord(s->used[buffer], s->work));
    }
    return true;
}

static bool launch(state *s, u32 pass, group_input in, char *why)
{
    const reach_table &table = s->device.tables[pass];
    TRY(reach_table_start(&table, s->work));
    group<<<job_blocks(&s->device), s->now.threads, 0, s->work>>>(
        table, (element_bucket *)s->device.memory, s->buckets, in, s->now.look_first);
    TRY(cudaGetLastError());
    return true;
}

/* Processes all chunks, each in the passes from `first` to `end`. */
static bool stream_passes(state *s, bool copy, u32 first, u32 end, char *why)
{
    const auto all = [=](const u32 *values, u32 round) {
        for (u32 p = first; p < end; p++) {
            if (!launch(s, p, {values, CHUNK, round}, why))
                return false;
        }
        return true;
    };
    return stream(s, copy, all, why);
}

/* Runs Karnagel's naive variant, which reads the whole input again for each scope. */
static bool stream_again(state *s, u32 pass_count, char *why)
{
    for (u32 p = 0; p < pass_count; p++) {
        if (!stream_passes(s, true, p, p + 1, why))
            return false;
    }
    return true;
}

static bool stream_partitioned(state *s, char *why)
{
    const auto use = [=](const u32 *values, u32 round) {
        const partition_lists &lists = s->lists;
        return partition_run(&lists, *s->windows, group_number{values},
                             group_byte{s->buckets, round}, CHUNK, s->work, why) &&
               launch(s, 0, {lists.numbers, 0, round, lists.offsets}, why);
    };
    return stream(s, s->host_input, use, why);
}

/* ---- the job --------------------------------------------------------------------------------- */

/* Measures the throughput of the link with one chunk. */
static bool measure_link(state *s, char *why)
{
    const auto copy = [=] {
        TRY(cudaMemcpyAsync(s->values, s->host, CHUNK * 4ull, cudaMemcpyHostToDevice, 0));
        return true;
    };
    double ms = 0;
    if (!job_device_time(&s->device, 0, 0, copy, &ms, why))
        return false;
    s->link_gbps = CHUNK * 4.0 / (ms * 1e6);
    printf("host link: %.1f GB/s, so at most %.2f G values/s\n", s->link_gbps, s->link_gbps / 4);
    return true;
}

static bool open_job(void *user, const job_options *options, int index, char *uuid, char *why)
{
    state *s = (state *)user;
    s->host_input = options->host_input;
    s->rounds = (u32)((options->count + ROUND - 1) / ROUND);
    s->seed = options->seed;
    if (!job_device_open(&s->device, index, uuid, why))
        return false;
    TRY(cudaStreamCreate(&s->work));
    TRY(cudaStreamCreate(&s->copy));
    for (int i = 0; i < BUFFERS; i++) {
        TRY(cudaEventCreateWithFlags(&s->copied[i], cudaEventDisableTiming));
        TRY(cudaEventCreateWithFlags(&s->used[i], cudaEventDisableTiming));
    }
    TRY(cudaHostAlloc((void **)&s->host, ROUND * 4ull, cudaHostAllocDefault));
    return job_device_allocate(&s->device, &s->values, ROUND * 4ull, why) &&
           job_device_allocate(&s->device, &s->result, 3 * sizeof *s->result, why) &&
           partition_make<group_number, group_byte>(&s->device, &s->lists, CHUNK, why) &&
           (!s->host_input || measure_link(s, why));
}

/* Computes on the CPU the number of values and the checksum that the table must reproduce. */
static void find_reference(const state *s, job_run *run)
{
    run->reference.number[1] = (u64)s->rounds * ROUND;
    for (u32 round = 0; round < s->rounds; round++) {
        for (u32 i = 0; i < ROUND; i++)
            run->reference.number[2] += element_check(element_key(s->host[i], round));
    }
    run->reference_known = 1 << 1 | 1 << 2;
}

static bool prepare(void *user, u64 *bytes, u64 reach_bytes, job_run *run, char *why)
{
    state *s = (state *)user;
    if (!job_device_prepare(&s->device, bytes, reach_bytes, why))
        return false;
    s->reach_bytes = reach_bytes;
    memset(s->shapes, 0, sizeof s->shapes);
    const u64 distinct = *bytes / 16 / 2 / s->rounds; /* all rounds together fill one half */
    if (distinct > 0xffffffffull)
        return job_fail(why, "so large a table needs more --values");
    group_values<<<job_blocks(&s->device) * 4, 256>>>(s->values, ROUND, distinct, s->seed);
    TRY(cudaMemcpy(s->host, s->values, ROUND * 4ull, cudaMemcpyDeviceToHost));
    find_reference(s, run);
    return true;
}

static bool clear(state *s, char *why)
{
    TRY(cudaMemset(s->device.memory, 0, s->device.bytes));
    TRY(cudaMemset(s->result, 0, 3 * sizeof *s->result));
    TRY(cudaDeviceSynchronize());
    return true;
}

static bool do_choice(state *s, const job_choice *choice, char *why)
{
    if (choice->strategy == REACH_PARTITIONED_WINDOWS)
        return stream_partitioned(s, why);
    if (choice->variant == STREAMED_AGAIN)
        return stream_again(s, choice->pass_count, why);
    return stream_passes(s, s->host_input && choice->variant != ZERO_COPY, 0, choice->pass_count,
                         why);
}

static bool time_choice(state *s, const job_choice *choice, double *ms, char *why)
{
    if (!clear(s, why) || !job_device_begin(&s->device, why) || !do_choice(s, choice, why))
        return false;
    TRY(cudaStreamSynchronize(s->work));
    return job_device_end(&s->device, ms, why);
}

/* Finds the fastest shape, once per choice and size. The function varies the number of threads and,
 * out of reach, whether a bucket is read before a key is inserted. */
static bool choose_shape(state *s, const job_choice *choice, u32 which, char *why)
{
    const bool out_of_reach = which == REACH_NAIVE && s->device.bytes > s->reach_bytes;
    const bool tried = s->shapes[which].threads != 0;
    double best = 0, ms = 0;
    for (u32 t = JOB_THREADS / 4; t <= JOB_THREADS && !tried; t *= 2) {
        for (int look_first = out_of_reach ? 0 : 1; look_first < 2; look_first++) {
            s->now = {t, look_first != 0};
            if (!time_choice(s, choice, &ms, why))
                return false;
            if (best == 0 || ms < best) {
                best = ms;
                s->shapes[which] = s->now;
            }
        }
    }
    s->now = s->shapes[which];
    return true;
}

/* Measures the scan with an empty window, which contains no bucket. The values do not matter. They
 * are on the device, like all values that are scanned more than once. */
static bool scan(state *s, char *why)
{
    s->now = {JOB_THREADS, true};
    for (u32 n = 0; n < s->rounds * CHUNKS; n++) {
        if (!launch(s, 0, {s->values + n % BUFFERS * CHUNK, CHUNK, n / CHUNKS}, why))
            return false;
    }
    TRY(cudaStreamSynchronize(s->work));
    return true;
}

/* Measures the job within the reach, with the usual streaming. */
static bool calibrate(void *user, double *in_reach_ms, double *scan_ms, char *why)
{
    state *s = (state *)user;
    job_device *d = &s->device;
    const job_choice choice = {REACH_SCOPES, PLAIN, "in reach", 1};
    static job_pass one;
    job_one_window(0, d->in_reach_bytes, REACH_SM_MAX, &one);
    s->buckets = d->in_reach_bytes / 16;
    const bool done = job_device_load(d, &one, 1, why) && choose_shape(s, &choice, IN_REACH, why) &&
                      time_choice(s, &choice, in_reach_ms, why);
    s->buckets = d->bytes / 16;
    return done && job_device_time(
                       d, d->bytes, 0, [=] { return scan(s, why); }, scan_ms, why);
}

static bool run_choice(void *user, const job_choice *choice, const job_pass *passes, double *ms,
                       job_result *out, char *why)
{
    state *s = (state *)user;
    s->windows = &passes[0].windows;
    if (!job_device_load(&s->device, passes, choice->pass_count, why) ||
        !choose_shape(s, choice, choice->strategy, why) || !time_choice(s, choice, ms, why))
        return false;
    group_result<<<job_blocks(&s->device) * 4, 512>>>((element_bucket *)s->device.memory,
                                                      s->buckets, s->result);
    TRY(cudaMemcpy(out->number, s->result, 3 * sizeof *s->result, cudaMemcpyDeviceToHost));
    return true;
}

static void close_job(void *user)
{
    cudaFreeHost(((state *)user)->host);
    job_device_close(user);
}

static u64 batches(const job_options *options)
{
    return (options->count + ROUND - 1) / ROUND * CHUNKS;
}

/* A value counts as one access, although it accesses its bucket twice (key and count). With few
 * threads the second access uses the translation of the first. Input from the host crosses the link
 * once in every strategy, chunk by chunk. */
static void describe(void *user, const job_options *options, reach_job *out)
{
    const state *s = (const state *)user;
    out->access = REACH_ATOMIC;
    out->element_bytes = 8;
    out->transaction_bytes = 32;
    out->accesses = CHUNK;
    out->input_bytes = 4;
    out->input_gbps = s->link_gbps;
    out->reserve_bytes = options->host_input ? 512ull << 20 : 1ull << 30;
}

static const job_variant *variants(const job_options *options)
{
    static const job_variant host[] = {
        {REACH_NAIVE, 0, "naive, copied"},
        {REACH_NAIVE, ZERO_COPY, "naive, zero copy"},
        {REACH_SCOPES, 0, "scopes, staged"},
        {REACH_SCOPES, STREAMED_AGAIN, "scopes, streamed again", true},
        {REACH_FILTERED_WINDOWS, 0, "filtered windows"},
        {REACH_PARTITIONED_WINDOWS, 0, "partitioned windows"},
        {REACH_NAIVE, 0, NULL},
    };
    return options->host_input ? host : job_strategies;
}

int main(int argc, char **argv)
{
    static state s;
    static const job grouping = {
        .name = "grouping",
        .title = "hash-based grouping, 16-byte buckets",
        .help = "  --values N       to group, in whole rounds of 128M; default 512M\n"
                "  --input WHERE    host: streamed over the link; device (the default)\n",
        .unit = "values",
        .result_names = {"groups", "values", "check"},
        .default_count = 1ull << 29,
        .state = &s,
        .variants = variants,
        .open = open_job,
        .prepare = prepare,
        .calibrate = calibrate,
        .run = run_choice,
        .describe = describe,
        .batches = batches,
        .close = close_job,
    };
    return job_main(argc, argv, &grouping);
}
