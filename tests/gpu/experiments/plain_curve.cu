/* For docs/methods.md. */
/* plain_curve.cu: runs the random-read probes of the daemon again, over a plain allocation of
 * nearly all memory. The daemon reads through the alias arena, which maps little memory at many
 * addresses. This program shows that its curves, with windows and without, hold for the whole
 * memory, and so do its rates of other kinds of access.
 *
 *     plain_curve OBSERVATIONS.jsonl [GPU]
 *
 * The input is an exported run. The program takes its READ probes in which all SMs read: the curve
 * and the rates, not the probes of single groups or pairs of groups. It runs the same kernels
 * (kernels/read_kernels.cu) with the same windows and regions over plain memory. It prints one line
 * for each region, "access bytes region_bytes windows alias plain ratio". Then it prints "worst
 * RATIO", the largest deviation of the curve from 1, and "worst rate RATIO" for the other kinds of
 * access. Regions that do not fit into free memory are left out, with a message.
 *
 * Limit: the two runs happen at different times, so clocks and the traffic of a neighbor may
 * differ.
 */
#include "kernels/latency_kernels.cu"
#include "kernels/read_kernels.cu"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <jansson.h>

enum {
    REPEATS = 5,
    MOST_REPEATS = 64, /* repeats of a probe in the daemon */
    SM_SLOTS = 512,
    RUN_NS = 4000000, /* long compared with the start of a kernel, short enough for sixteen regions */
    WARM_NS = RUN_NS / 2,
    LIMIT_NS = 2000000000,
    LINE = 128
};

#define CHECK(call) check((call), #call)

static void check(cudaError_t result, const char *call)
{
    if (result == cudaSuccess)
        return;
    fprintf(stderr, "plain_curve: %s: %s\n", call, cudaGetErrorString(result));
    exit(EXIT_FAILURE);
}

/* Device memory of a launch. */
struct setup {
    u64 memory;
    u64 bytes;
    u32 sm_count;
    int shared_bytes;
    u32 *control; /* arrived, gave_up and sink, a line each */
    u32 *positions;
    reach_window *windows;
    u32 *lines;
    u64 *started;
    u64 *ended;
};

/* Selects the kernel by the JSON of a probe; a probe of the curve has no such member. */
static const struct kernel {
    const char *access;
    u32 bytes;
    void (*run)(struct reach_read_args);
} kernels[] = {
    {"read", 128, reach_read},          {"read", 32, reach_read_sectors},
    {"read", 512, reach_read_blocks},   {"atomic", 32, reach_atomic},
    {"write", 32, reach_write},
};

template <typename T> static T *allocate(size_t count)
{
    T *p = NULL;
    CHECK(cudaMalloc((void **)&p, count * sizeof(T)));
    CHECK(cudaMemset(p, 0, count * sizeof(T)));
    return p;
}

/* Takes all free memory, or as much as one allocation can have, and zeroes it, because the kernel
 * requires that. */
static void take_memory(struct setup *s)
{
    const u64 step = 32ull << 20;
    size_t free_bytes, total_bytes;
    void *memory = NULL;
    CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    for (s->bytes = free_bytes / step * step; s->bytes >= step; s->bytes -= step) {
        const cudaError_t result = cudaMalloc(&memory, s->bytes);
        if (result == cudaSuccess)
            break;
        if (result != cudaErrorMemoryAllocation)
            CHECK(result);
        (void)cudaGetLastError();
    }
    CHECK(cudaMemset(memory, 0, s->bytes));
    s->memory = (u64)memory;
}

static reach_grid grid_of(const struct setup *s)
{
    reach_grid g = {};
    g.arrived = (u64)s->control;
    g.gave_up = (u64)(s->control + 32);
    g.positions = (u64)s->positions;
    g.limit_ns = LIMIT_NS;
    g.blocks = s->sm_count;
    g.sm_slots = SM_SLOTS;
    return g;
}

static void launch_check(const struct setup *s)
{
    u32 control[64];
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(control, s->control, sizeof control, cudaMemcpyDeviceToHost));
    if (control[32]) {
        fprintf(stderr, "plain_curve: the blocks did not meet: is another job on this GPU?\n");
        exit(EXIT_FAILURE);
    }
    CHECK(cudaMemset(s->control, 0, 96 * sizeof(u32)));
}

/* Finds the ids of the SMs that exist. */
static void take_census(struct setup *s)
{
    u32 seen[SM_SLOTS], positions[SM_SLOTS] = {0}, n = 0;
    u32 *on_device = allocate<u32>(SM_SLOTS);
    reach_census_args args = {};
    args.grid = grid_of(s);
    args.seen = (u64)on_device;
    reach_census<<<s->sm_count, 32, s->shared_bytes>>>(args);
    launch_check(s);
    CHECK(cudaMemcpy(seen, on_device, sizeof seen, cudaMemcpyDeviceToHost));
    for (u32 id = 0; id < SM_SLOTS; id++) {
        if (seen[id])
            positions[id] = n++;
    }
    if (n != s->sm_count) {
        fprintf(stderr, "plain_curve: %u blocks on %u SMs\n", s->sm_count, n);
        exit(EXIT_FAILURE);
    }
    CHECK(cudaMemcpy(s->positions, positions, sizeof positions, cudaMemcpyHostToDevice));
    CHECK(cudaFree(on_device));
}

static void open_setup(int gpu, struct setup *s)
{
    int sms = 0, shared = 0;
    *s = {};
    CHECK(cudaSetDevice(gpu));
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, gpu));
    CHECK(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerMultiprocessor, gpu));
    s->sm_count = (u32)sms;
    s->shared_bytes = shared / 2 + 1024;
    CHECK(cudaFuncSetAttribute(reach_census, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               s->shared_bytes));
    for (const struct kernel &k : kernels)
        CHECK(cudaFuncSetAttribute(k.run, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   s->shared_bytes));
    s->control = allocate<u32>(96);
    s->positions = allocate<u32>(SM_SLOTS);
    s->windows = allocate<reach_window>(SM_SLOTS);
    s->lines = allocate<u32>(SM_SLOTS);
    s->started = allocate<u64>(SM_SLOTS);
    s->ended = allocate<u64>(SM_SLOTS);
    take_memory(s);
    take_census(s);
}

/* A READ probe, and the result of the daemon. */
struct probe {
    const struct kernel *kernel; /* NULL if its kind is not supported here */
    u32 window_count;
    u32 repeats;
    u32 sm_count;
    u32 sm_ids[SM_SLOTS];
    int window_of_sm[SM_SLOTS]; /* window by SM id; -1 means idle */
    const json_t *regions;
    const json_t *values; /* [region][repeat][1 + sm]: elapsed ns, then lines */
};

static void read_probe(const json_t *observation, struct probe *out)
{
    const json_t *spec = json_object_get(observation, "probe");
    const json_t *sms = json_object_get(observation, "sm_ids");
    const json_t *windows = json_object_get(spec, "window_of_sm");
    const char *access = json_string_value(json_object_get(spec, "access"));
    const u32 bytes = (u32)json_integer_value(json_object_get(spec, "transaction_bytes"));
    *out = {};
    for (const struct kernel &k : kernels) {
        if (strcmp(k.access, access ? access : "read") == 0 && k.bytes == (bytes ? bytes : 128))
            out->kernel = &k;
    }
    out->window_count = (u32)json_integer_value(json_object_get(spec, "window_count"));
    out->repeats = (u32)json_integer_value(json_object_get(spec, "repeats"));
    out->sm_count = (u32)json_array_size(sms);
    for (u32 i = 0; i < out->sm_count && i < SM_SLOTS; i++)
        out->sm_ids[i] = (u32)json_integer_value(json_array_get(sms, i)) % SM_SLOTS;
    for (u32 id = 0; id < SM_SLOTS; id++) {
        const json_t *w = json_array_get(windows, id);
        out->window_of_sm[id] = json_is_integer(w) ? (int)json_integer_value(w) : -1;
    }
    out->regions = json_object_get(spec, "points");
    out->values = json_object_get(observation, "values");
}

/* The windows lie side by side. Their length is their share of the SMs: see daemon/gpu/probe.h. */
static void place_windows(const struct probe *p, u64 region, reach_window *out)
{
    u64 all = 0;
    memset(out, 0, SM_SLOTS * sizeof *out);
    for (u32 i = 0; i < p->sm_count; i++)
        all += p->window_of_sm[p->sm_ids[i]] >= 0;
    for (u32 i = 0; i < p->sm_count; i++) {
        const int mine = p->window_of_sm[p->sm_ids[i]];
        u64 before = 0, inside = 0;
        for (u32 k = 0; k < p->sm_count && mine >= 0; k++) {
            const int w = p->window_of_sm[p->sm_ids[k]];
            before += w >= 0 && w < mine;
            inside += w == mine;
        }
        const u64 lines = region / LINE;
        out[p->sm_ids[i]].first_line = lines * before / all;
        out[p->sm_ids[i]].lines = lines * (before + inside) / all - out[p->sm_ids[i]].first_line;
    }
}

/* Returns GB/s over plain memory, counted like the daemon's. */
static double read_once(const struct setup *s, const struct probe *p, u64 region, u32 seed)
{
    reach_window windows[SM_SLOTS];
    u32 lines[SM_SLOTS];
    u64 started[SM_SLOTS], ended[SM_SLOTS], total = 0, first = ~0ull, last = 0;
    reach_read_args args = {};
    place_windows(p, region, windows);
    CHECK(cudaMemcpy(s->windows, windows, sizeof windows, cudaMemcpyHostToDevice));
    args.grid = grid_of(s);
    args.base = s->memory;
    args.windows = (u64)s->windows;
    args.lines = (u64)s->lines;
    args.started = (u64)s->started;
    args.ended = (u64)s->ended;
    args.sink = (u64)(s->control + 64);
    args.warm_ns = WARM_NS;
    args.run_ns = RUN_NS;
    args.seed = seed;
    p->kernel->run<<<s->sm_count, REACH_READ_THREADS, s->shared_bytes>>>(args);
    launch_check(s);
    CHECK(cudaMemcpy(lines, s->lines, sizeof lines, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(started, s->started, sizeof started, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(ended, s->ended, sizeof ended, cudaMemcpyDeviceToHost));
    for (u32 i = 0; i < s->sm_count; i++) {
        total += lines[i];
        first = started[i] < first ? started[i] : first;
        last = ended[i] > last ? ended[i] : last;
    }
    return (double)total * p->kernel->bytes / (double)(last - first);
}

/* Returns GB/s from the numbers of the daemon. */
static double daemon_once(const struct probe *p, size_t region_index, u32 repeat)
{
    const size_t row = (region_index * p->repeats + repeat) * (1 + p->sm_count);
    const double ns = (double)json_integer_value(json_array_get(p->values, row));
    double lines = 0;
    for (u32 i = 0; i < p->sm_count; i++)
        lines += (double)json_integer_value(json_array_get(p->values, row + 1 + i));
    return ns > 0 ? lines * p->kernel->bytes / ns : 0;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, u32 count)
{
    qsort(values, count, sizeof *values, by_size);
    return values[count / 2];
}

/* Prints the line of one probe. Returns the deviation of plain / alias from 1, or 0 if one of the
 * two rates is unknown. */
static double compare(const struct setup *s, const struct probe *p, size_t index)
{
    const u64 region = (u64)json_integer_value(json_array_get(p->regions, index));
    double alias[MOST_REPEATS], plain[REPEATS];
    for (u32 r = 0; r < p->repeats; r++)
        alias[r] = daemon_once(p, index, r);
    const double by_daemon = median(alias, p->repeats);
    printf("%-7s %5u ", p->kernel->access, p->kernel->bytes);
    if (region > s->bytes) {
        printf("%-16llu %7u %9.1f %9s %7s\n", (unsigned long long)region, p->window_count,
               by_daemon, "no room", "-");
        return 0;
    }
    for (u32 r = 0; r < REPEATS; r++)
        plain[r] = read_once(s, p, region, r + 1);
    const double by_us = median(plain, REPEATS);
    printf("%-16llu %7u %9.1f %9.1f %7.4f\n", (unsigned long long)region, p->window_count,
           by_daemon, by_us, by_daemon / by_us);
    return fabs(by_daemon / by_us - 1);
}

/* Returns whether every SM has a window. */
static bool all_work(const struct probe *p)
{
    for (u32 i = 0; i < p->sm_count; i++) {
        if (p->window_of_sm[p->sm_ids[i]] < 0)
            return false;
    }
    return true;
}

static bool is_read(const json_t *observation)
{
    const char *kind =
        json_string_value(json_object_get(json_object_get(observation, "probe"), "kind"));
    return kind && strcmp(kind, "read") == 0;
}

int main(int argc, char **argv)
{
    FILE *in = argc == 2 || argc == 3 ? fopen(argv[1], "r") : NULL;
    struct setup s;
    double worst[2] = {0, 0}; /* worst ratios of the curve and of other kinds */
    u32 found = 0;

    if (!in) {
        fprintf(stderr, "usage: plain_curve OBSERVATIONS.jsonl [GPU]\n");
        return 2;
    }
    open_setup(argc > 2 ? atoi(argv[2]) : 0, &s);
    printf("%-7s %5s %-16s %7s %9s %9s %7s\n", "access", "bytes", "region_bytes", "windows", "alias",
           "plain", "ratio");
    for (json_t *o; (o = json_loadf(in, JSON_DISABLE_EOF_CHECK, NULL)) != NULL; json_decref(o)) {
        struct probe p;
        if (!is_read(o))
            continue;
        read_probe(o, &p);
        if (p.sm_count != s.sm_count || p.repeats < 1 || p.repeats > MOST_REPEATS) {
            fprintf(stderr, "plain_curve: %s is of another GPU\n", argv[1]);
            return EXIT_FAILURE;
        }
        if (!all_work(&p))
            continue;
        if (!p.kernel) {
            fprintf(stderr, "plain_curve: %s has a kind of access that is not known\n", argv[1]);
            return EXIT_FAILURE;
        }
        double *const most = &worst[p.kernel == kernels ? 0 : 1];
        for (size_t i = 0; i < json_array_size(p.regions); i++, found++)
            *most = fmax(*most, compare(&s, &p, i));
    }
    fclose(in);
    if (!found) {
        fprintf(stderr, "plain_curve: %s has no reads; depth full has\n", argv[1]);
        return EXIT_FAILURE;
    }
    printf("worst %.4f\nworst rate %.4f\n", worst[0], worst[1]);
    return EXIT_SUCCESS;
}
