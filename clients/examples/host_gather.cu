/* host_gather.cu: a job that gathers from host memory: random 128-byte elements of an array that
 * the GPU reads over its link, without a copy. The speed depends on the kind of allocation. Beyond
 * a reach that differs by kind, it also depends on the window of each SM. reachd has measured both:
 *
 *   1. ask for the choices, best first                        get_advice()
 *   2. allocate memory of that kind, and fill it           make_memory()
 *   3. read in that way: any SM anywhere, or each          read_choice()
 *      SM group in a window of its own
 *
 * To show the gain, it runs all choices, and compares each with its prediction. Every element is a
 * known function of its index, and each word that is read is compared with this function. A list of
 * indices must be partitioned by window first, as gather.cu does. */
#include "host_gather.h"
#include "line_reads.cuh"
#include "reach_alloc.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <sys/mman.h>
#include <thread>

/* Lines that a warp draws at a time. They are few, so that on a slow link no warp runs alone at the
 * end. */
typedef line_reads<32> reads;

static const u64 huge_bytes = 2ull << 20;
static const double unknown_gbps = 5; /* assumed speed if none is predicted */

static const char help[] =
    "host_gather: reads random 128-byte elements of host memory by each choice that reachd\n"
    "knows for the size: kinds of memory, any SM anywhere or one window per SM group. Prints\n"
    "predictions beside measurements, and whether the first choice is the fastest.\n"
    "\n"
    "  --reachd URI       source of answers: unix:/path, http://host:port, or\n"
    "                     file:/fingerprint.json; default as libreach chooses\n"
    "  --gpu N            CUDA's index of the GPU, default 0\n"
    "  --bytes LIST       sizes of the array; default: 512MiB,2GiB,8GiB,16GiB. One array of the\n"
    "                     largest size is allocated per kind, and takes at most half of the host\n"
    "                     memory that is available\n"
    "  --milliseconds N   that a repeat takes if the prediction is right, default 60\n"
    "  --repeats N        timed repeats of each choice, default 5\n"
    "  --seed N           of the random elements, default 1\n"
    "  --json FILE        also write the results as JSON\n"
    "  --dry-run          print the choices and stop; needs no GPU. --gpu: the daemon's index\n"
    "                     or a UUID\n"
    "\n"
    "Exit status: 0 measured, 1 failed or words were wrong, 2 wrong options.\n";
static const job_limits limits = {JOB_MAX_SIZES, 1ull << 39, 10000, JOB_MAX_REPEATS, 1u << 20};
static const u64 usual_bytes[] = {512ull << 20, 2ull << 30, 8ull << 30, 16ull << 30};

/* The array of one kind. */
struct memory {
    void *host;
    const u32 *device; /* address of the array on the GPU */
    u64 bytes;
    bool from_pool, registered;
};

struct state {
    job_device device;
    reads launches;
    reach_pool *pool;
    const job_options *options;
    char gpu[REACH_UUID_BYTES];
    struct reach *reach;
    reach_answer *chip;
    gather_size sizes[JOB_MAX_SIZES];
    gather_counts counts;
};

/* ---- memory --------------------------------------------------------------------------------- */

static void fill_part(u32 *words, u64 first, u64 behind)
{
    for (u64 line = first; line < behind; line++) {
        for (u32 w = 0; w < LINE_WORDS; w++)
            words[line * LINE_WORDS + w] = element_line_word((u32)line, w);
    }
}

/* Fills the memory with all processors. The first access to managed memory places it, in this case
 * at the host. */
static void fill(void *memory, u64 bytes)
{
    const u64 count = std::thread::hardware_concurrency() ? std::thread::hardware_concurrency() : 1;
    const u64 each = (bytes / count + huge_bytes) / huge_bytes * huge_bytes / LINE_BYTES;
    const u64 lines = bytes / LINE_BYTES;
    std::vector<std::thread> threads;
    for (u64 first = 0; first < lines; first += each)
        threads.emplace_back(fill_part, (u32 *)memory, first, std::min(first + each, lines));
    for (std::thread &thread : threads)
        thread.join();
}

/* Makes pages of the process and fills them, before they are registered. */
static bool make_pages(bool huge, u64 bytes, memory *out, char *why)
{
    const u64 before = gather_read_kib("/proc/self/smaps_rollup", "AnonHugePages:");
    void *at =
        mmap(NULL, bytes + huge_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return job_fail(why, "no pages: %s", strerror(errno));
    const u64 skip = (huge_bytes - (uintptr_t)at % huge_bytes) % huge_bytes;
    if (skip)
        munmap(at, skip);
    out->host = (char *)at + skip;
    munmap((char *)out->host + bytes, huge_bytes - skip);
    madvise(out->host, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    fill(out->host, bytes);
    const u64 got = gather_read_kib("/proc/self/smaps_rollup", "AnonHugePages:") - before;
    return !huge || got >= bytes / 10 * 9 ||
           job_fail(why, "the kernel returned ordinary pages; see /sys/kernel/mm/transparent_hugepage");
}

static bool make_registered(bool huge, u64 bytes, memory *out, char *why)
{
    void *device = NULL;
    if (!make_pages(huge, bytes, out, why))
        return false;
    TRY(cudaHostRegister(out->host, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped));
    out->registered = true;
    TRY(cudaHostGetDevicePointer(&device, out->host, 0));
    out->device = (const u32 *)device;
    return true;
}

static bool make_from_pool(state *s, memory_kind kind, u64 bytes, memory *out, char *why)
{
    const reach_host_kind of_pool = kind == MEMORY_HOST_PINNED    ? REACH_HOST_PINNED
                                    : kind == MEMORY_MANAGED_HOST ? REACH_HOST_MANAGED
                                                                  : REACH_HOST_VMM;
    reach_alloc_error error;
    reach_host_options options = {};
    options.size = sizeof options;
    options.bytes = bytes;
    options.kind = of_pool;
    if (reach_host_alloc(s->pool, &options, &out->host, NULL, &error) != REACH_ALLOC_OK)
        return job_fail(why, "%s", error.text);
    out->from_pool = true;
    out->device = (const u32 *)out->host;
    fill(out->host, bytes);
    return true;
}

static void free_memory(state *s, memory *take)
{
    if (take->registered)
        cudaHostUnregister(take->host);
    if (take->from_pool)
        reach_host_free(s->pool, take->host, REACH_NO_STREAM, NULL);
    else if (take->host)
        munmap(take->host, take->bytes);
    *take = {};
    (void)cudaGetLastError(); /* clears the error of a kind that is not available */
}

/* Allocates whole multiples of huge pages, and fills them. On failure nothing stays allocated. */
static bool make_memory(state *s, memory_kind kind, u64 bytes, memory *out, char *why)
{
    const u64 available = gather_read_kib("/proc/meminfo", "MemAvailable:");
    *out = {};
    out->bytes = (bytes + huge_bytes - 1) / huge_bytes * huge_bytes;
    if (out->bytes > available / 2)
        return job_fail(why, "more than half of the %.1f GiB of host memory that is available",
                        (double)available / (1 << 30));
    if (kind == MEMORY_HOST_PAGEABLE || kind == MEMORY_HOST_FILE)
        return job_fail(why, "the example does not allocate %s", memory_kind_name(kind));
    const bool registered = kind == MEMORY_HOST_REGISTERED || kind == MEMORY_HOST_REGISTERED_HUGE;
    const bool good =
        registered ? make_registered(kind == MEMORY_HOST_REGISTERED_HUGE, out->bytes, out, why)
                   : make_from_pool(s, kind, out->bytes, out, why);
    if (!good)
        free_memory(s, out);
    return good;
}

/* ---- reads ---------------------------------------------------------------------------------- */

static u64 lines_of(const state *s, double gbps)
{
    return (u64)(gbps * 1e6 * (double)s->options->count / LINE_BYTES);
}

/* Reads a quarter of the lines to warm the TLBs, and then runs the repeats. */
static bool time_windows(state *s, const memory *m, const reach_windows *windows,
                         gather_choice *choice, char *why)
{
    const u64 lines = lines_of(s, choice->predicted ? choice->predicted_gbps : unknown_gbps);
    double ms = 0;
    for (u32 r = 0; r <= s->options->repeats; r++) {
        if (!s->launches.run(&s->device, m->device, windows, r ? lines : lines / 4,
                             s->options->seed + r, &ms, &choice->lines, &choice->mismatches, why))
            return false;
        if (r > 0)
            choice->milliseconds[r - 1] = ms;
    }
    gather_derive(choice, s->options->repeats);
    return true;
}

static bool read_choice(state *s, const memory *m, u64 bytes, gather_choice *choice, char *why)
{
    static gather_layout by_group;
    static job_pass one;
    const reach_fingerprint *chip = reach_answer_fingerprint(s->chip);
    if (choice->strategy == REACH_WINDOWS && !gather_by_group(chip, bytes, &by_group))
        return job_fail(why, "the fingerprint has no SM groups");
    job_one_window(0, bytes, chip->sm_slots, &one);
    return time_windows(s, m, choice->strategy == REACH_WINDOWS ? &by_group.windows : &one.windows,
                        choice, why);
}

/* Reads with 1, 2, 4 .. SMs. */
static bool read_by_sms(state *s, const memory *m, memory_kind kind, u64 bytes, double gbps,
                        char *why)
{
    static gather_layout layout;
    const reach_fingerprint *chip = reach_answer_fingerprint(s->chip);
    gather_counts *c = &s->counts;
    c->kind = kind;
    c->bytes = bytes;
    for (u32 n = 1; n <= chip->sm_count && chip->group_count && c->count < GATHER_MAX_COUNTS;
         n *= 2) {
        gather_choice choice = {};
        choice.predicted = true;
        choice.predicted_gbps = gbps;
        gather_some_sms(chip, n, bytes, &layout);
        if (!time_windows(s, m, &layout.windows, &choice, why))
            return false;
        c->sms[c->count] = n;
        c->gbps[c->count++] = choice.gbps;
    }
    return true;
}

/* Reads all choices in memory of one kind, over all sizes that it can hold. */
static bool read_kind(state *s, memory_kind kind, const memory *m, char *why)
{
    for (u32 i = 0; i < s->options->size_count; i++) {
        gather_size *size = &s->sizes[i];
        for (u32 w = 0; w < size->choice_count && size->bytes <= m->bytes; w++) {
            if (size->choices[w].kind == kind &&
                !read_choice(s, m, size->bytes, &size->choices[w], why))
                return false;
        }
    }
    const gather_choice *first = &s->sizes[0].choices[0];
    return first->kind != kind || first->gbps <= 0 ||
           read_by_sms(s, m, kind, s->sizes[0].bytes, first->gbps, why);
}

/* Returns the largest size less than `below` with a choice in memory of this kind, or 0 if there is
 * none. */
static u64 largest_size(const state *s, memory_kind kind, u64 below)
{
    u64 bytes = 0;
    for (u32 i = 0; i < s->options->size_count; i++) {
        for (u32 w = 0; w < s->sizes[i].choice_count; w++) {
            if (s->sizes[i].choices[w].kind == kind && s->sizes[i].bytes < below)
                bytes = std::max(bytes, s->sizes[i].bytes);
        }
    }
    return bytes;
}

/* Writes into the choices of this kind and size why they are not measured. */
static void set_why(state *s, memory_kind kind, u64 bytes, const char *why)
{
    for (u32 i = 0; i < s->options->size_count; i++) {
        for (u32 w = 0; w < s->sizes[i].choice_count; w++) {
            if (s->sizes[i].choices[w].kind == kind && s->sizes[i].bytes == bytes)
                snprintf(s->sizes[i].choices[w].why, JOB_TEXT_BYTES, "%s", why);
        }
    }
}

/* Measures with an array of the largest available size. Returns false only if reading failed. */
static bool do_kind(state *s, memory_kind kind, char *why)
{
    const auto start = std::chrono::steady_clock::now();
    char refusal[JOB_TEXT_BYTES] = "";
    memory m = {};
    u64 bytes = largest_size(s, kind, UINT64_MAX);
    while (bytes && !make_memory(s, kind, bytes, &m, refusal)) {
        set_why(s, kind, bytes, refusal);
        bytes = largest_size(s, kind, bytes);
    }
    if (!bytes)
        return true;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    printf("%s: %.2f GiB allocated and filled in %.1f s\n", memory_kind_name(kind),
           (double)m.bytes / (1 << 30), seconds.count());
    const bool good = read_kind(s, kind, &m, why);
    free_memory(s, &m);
    return good;
}

/* ---- the program ---------------------------------------------------------------------------- */

static bool get_advice(state *s, char *why)
{
    reach_error error;
    if (reach_get_fingerprint(s->reach, s->gpu, &s->chip, &error) != REACH_OK)
        return job_fail(why, "%s", error.text);
    for (u32 i = 0; i < s->options->size_count; i++) {
        char target[256], *answer = NULL;
        gather_target(s->gpu, s->options->bytes[i], target, sizeof target);
        if (reach_get(s->reach, target, &answer, &error) != REACH_OK)
            job_fail(why, "%s", error.text);
        else
            gather_read_advice(answer, s->options->bytes[i], &s->sizes[i], why);
        reach_free(answer);
        if (s->sizes[i].choice_count == 0)
            return false;
    }
    return true;
}

static bool open_device(state *s, char *why)
{
    reach_pool_options options = {};
    reach_alloc_error error;
    options.size = sizeof options;
    options.device = atoi(s->options->gpu);
    if (!job_device_open(&s->device, options.device, s->gpu, why) ||
        !s->launches.open(&s->device, options.device, why))
        return false;
    return reach_pool_open(&options, &s->pool, &error) == REACH_ALLOC_OK ||
           job_fail(why, "%s", error.text);
}

static bool run(state *s, char *why)
{
    const job_options *o = s->options;
    reach_error error;
    u64 mismatches = 0;
    snprintf(s->gpu, sizeof s->gpu, "%s", o->gpu);
    if (!o->dry_run && !open_device(s, why))
        return false;
    if (reach_open(o->uri, &s->reach, &error) != REACH_OK)
        return job_fail(why, "%s", error.text);
    if (!get_advice(s, why) ||
        (!o->dry_run && reach_answer_check_gpu(s->chip, s->gpu, &error) != REACH_OK &&
         !job_fail(why, "%s", error.text)))
        return false;
    for (int kind = 0; kind < MEMORY_KIND_COUNT && !o->dry_run; kind++) {
        if (!do_kind(s, (memory_kind)kind, why))
            return false;
    }
    for (u32 i = 0; i < o->size_count; i++) {
        gather_report(stdout, &s->sizes[i], s->gpu, !o->dry_run);
        for (u32 w = 0; w < s->sizes[i].choice_count; w++)
            mismatches += s->sizes[i].choices[w].mismatches;
    }
    if (s->counts.count)
        gather_report_counts(stdout, &s->counts);
    if (o->json && !gather_write_json(o->json, s->gpu, o, s->sizes, o->size_count, &s->counts, why))
        return false;
    return mismatches == 0 ||
           job_fail(why, "%llu words were read wrong", (unsigned long long)mismatches);
}

int main(int argc, char **argv)
{
    static state s;
    static const job job = {
        .name = "host_gather",
        .help = help,
        .unit = "milliseconds",
        .default_count = 60,
        .limits = &limits,
    };
    job_options options;
    char why[JOB_TEXT_BYTES];
    if (!job_options_parse(argc, argv, &job, &options, why)) {
        fprintf(stderr, "host_gather: %s\n", why);
        return 2;
    }
    if (options.help) {
        fputs(help, stdout);
        return job_exit("host_gather", true);
    }
    if (options.size_count == 1 && options.bytes[0] == 0) {
        options.size_count = sizeof usual_bytes / sizeof usual_bytes[0];
        memcpy(options.bytes, usual_bytes, sizeof usual_bytes);
    }
    s.options = &options;
    const bool good = run(&s, why);
    if (!good)
        fprintf(stderr, "host_gather: %s\n", why);
    reach_answer_free(s.chip);
    reach_close(s.reach);
    reach_pool_close(s.pool);
    if (!options.dry_run)
        job_device_close(&s.device);
    return job_exit("host_gather", good);
}
