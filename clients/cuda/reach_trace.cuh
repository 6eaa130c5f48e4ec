/* reach_trace.cuh: records the accesses of your kernel, for `reach-lab what-if`. It is header only
 * and needs nothing but CUDA C++17. Add a call beside each random access:
 *
 *     __global__ void kernel(reach_trace trace, const float *table, ..)
 *     {
 *         reach_trace_access(trace, table + i, REACH_TRACE_LOAD, sizeof(float));
 *         x = table[i];
 *
 *     reach_trace trace;                  // records one warp in 16, at most 2^20 accesses of warps
 *     reach_trace_open(&trace, 1 << 20, 16);
 *     kernel<<<grid, block>>>(trace, ..);
 *     cudaDeviceSynchronize();
 *     reach_trace_file file("job.rlt", "job");
 *     file.allocation("table", table, bytes);
 *     file.kernel(&trace, "kernel", grid, block);   // once for each launch; empties the buffer
 *     bool good = file.end();                       // false if writing failed
 *
 * A traced kernel is several times slower: do not time it. Once the buffer is full, accesses are
 * lost and counted (file.lost, and in the trace): sample fewer warps, or launch a part of the work.
 * A warp may return to data that it accessed shortly before, for example to count an inserted key.
 * Then record all warps (`every` is 1) of less work, because the hits depend on the number of
 * accesses in between. A trace whose `entries` is NULL, such as reach_trace{}, records nothing. */
#ifndef REACH_TRACE_CUH
#define REACH_TRACE_CUH

#include <algorithm>
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <string>
#include <vector>

enum { REACH_TRACE_LOAD = 0, REACH_TRACE_STORE = 1, REACH_TRACE_ATOMIC = 2 };

struct reach_trace_entry {
    uint64_t block;
    uint32_t warp, mask, kind, bytes;
    uint64_t address[32];
};

struct reach_trace {
    reach_trace_entry *entries; /* managed memory, like `used` */
    unsigned long long *used;   /* number of accesses; if more than `room`, the excess was lost */
    uint64_t room;
    uint32_t every; /* one warp in `every` is recorded */
};

/* Call this function with exactly the lanes that make the access. `bytes` of one lane must be 1 to
 * 32. */
static __device__ __forceinline__ void reach_trace_access(const reach_trace &t, const void *address,
                                                          uint32_t kind, uint32_t bytes)
{
    const uint32_t thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const uint64_t block =
        blockIdx.x + (uint64_t)gridDim.x * (blockIdx.y + (uint64_t)gridDim.y * blockIdx.z);
    const uint32_t id = (uint32_t)block * 0x9e3779b1u + thread / 32 * 0x85ebca6bu;
    if (t.entries == NULL || __umulhi((id ^ id >> 15) * 0xc2b2ae35u, t.every) != 0)
        return;
    const uint32_t mask = __activemask(), leader = __ffs(mask) - 1;
    unsigned long long at = 0;
    if (thread % 32 == leader)
        at = atomicAdd(t.used, 1ull);
    at = __shfl_sync(mask, at, leader);
    if (at >= t.room)
        return;
    reach_trace_entry *e = &t.entries[at];
    e->address[thread % 32] = (uint64_t)address;
    if (thread % 32 == leader) {
        e->block = block;
        e->warp = thread / 32;
        e->mask = mask;
        e->kind = kind;
        e->bytes = bytes;
    }
}

/* Allocates a buffer for `room` accesses of warps, 280 bytes each. */
static inline cudaError_t reach_trace_open(reach_trace *t, uint64_t room, uint32_t every)
{
    *t = {NULL, NULL, room, every ? every : 1};
    cudaError_t e = cudaMallocManaged((void **)&t->entries, room * sizeof *t->entries);
    if (e == cudaSuccess)
        e = cudaMallocManaged((void **)&t->used, sizeof *t->used);
    if (e == cudaSuccess)
        *t->used = 0;
    return e;
}

static inline void reach_trace_close(reach_trace *t)
{
    cudaFree(t->entries);
    cudaFree(t->used);
    *t = reach_trace{};
}

/* Writes .rlt files (docs/lab.md has the format): chunks, each with its length and its checksum. */
class reach_trace_file
{
    typedef std::vector<uint8_t> bytes;
    FILE *out;
    bool good;
    uint32_t kernels = 0;
    uint64_t chunks = 0, records = 0;

    static void number(bytes &to, uint64_t v)
    {
        for (; v >= 0x80; v >>= 7)
            to.push_back((uint8_t)(v | 0x80));
        to.push_back((uint8_t)v);
    }
    static void text(bytes &to, const std::string &s)
    {
        const std::string cut = s.substr(0, 127);
        number(to, cut.size());
        to.insert(to.end(), cut.begin(), cut.end());
    }
    static void word(bytes &to, uint32_t v)
    {
        for (int i = 0; i < 4; i++)
            to.push_back((uint8_t)(v >> 8 * i));
    }
    static uint32_t check(uint8_t type, const bytes &of)
    {
        uint64_t h = 0xcbf29ce484222325u ^ ((uint64_t)of.size() << 8 | type);
        for (size_t at = 0; at < of.size(); at += 8) {
            uint64_t v = 0;
            for (size_t i = at; i < std::min(at + 8, of.size()); i++)
                v |= (uint64_t)of[i] << 8 * (i - at);
            h = (h ^ v) * 0x9e3779b97f4a7c15u;
            h ^= h >> 32;
        }
        return (uint32_t)h;
    }
    void put(const bytes &b)
    {
        good = good && fwrite(b.data(), 1, b.size(), out) == b.size();
    }
    void chunk(uint8_t type, const bytes &payload)
    {
        bytes head = {type, 0, 0, 0};
        word(head, (uint32_t)payload.size());
        word(head, check(type, payload));
        put(head);
        put(payload);
        chunks++;
    }
    /* Writes lines of 128 bytes as differences. Each line is written once, in the order of
     * lanes. */
    static void record(bytes &to, const reach_trace_entry &e, uint64_t &previous)
    {
        std::vector<uint64_t> lines;
        for (int lane = 0; lane < 32; lane++) {
            const uint64_t line = e.address[lane] / 128;
            if (e.mask >> lane & 1 && std::find(lines.begin(), lines.end(), line) == lines.end())
                lines.push_back(line);
        }
        uint32_t width = 0;
        while (width < 5 && 1u << width < e.bytes)
            width++;
        const bool full = e.mask == 0xffffffff, one = lines.size() == 1;
        number(to, 0);
        to.push_back((uint8_t)(e.kind | width << 2 | (one ? 0 : 2 << 5) | (full ? 0 : 0x80)));
        if (!full)
            number(to, e.mask);
        for (size_t i = 0; i < lines.size(); i++) {
            const uint64_t d = lines[i] - (i > 0 ? lines[i - 1] : previous);
            number(to, d << 1 ^ (0 - (d >> 63)));
            if (i == 0 && !one)
                number(to, lines.size());
        }
        previous = lines[0];
    }

  public:
    uint64_t lost = 0; /* accesses for which no buffer had room */

    reach_trace_file(const char *path, const char *app) : out(fopen(path, "wb")), good(out != NULL)
    {
        bytes head = {0x89, 'R', 'L', 'T', '\r', '\n', 0x1a, '\n', 2, 7, 0, 0}, name;
        if (good) {
            word(head, check(0, head));
            put(head);
            text(name, app);
            chunk('P', name);
        }
    }
    reach_trace_file(const reach_trace_file &) = delete;
    ~reach_trace_file()
    {
        if (out)
            fclose(out);
    }
    void allocation(const char *name, const void *base, uint64_t length)
    {
        bytes b;
        number(b, 0);
        number(b, (uint64_t)base);
        number(b, length);
        text(b, name);
        if (good)
            chunk('A', b);
    }
    /* Writes the accesses of one launch warp by warp, so that the same work gives the same bytes.
     * The launch must have ended. */
    void kernel(reach_trace *t, const char *name, dim3 grid, dim3 block)
    {
        const uint64_t count = std::min<uint64_t>(*t->used, t->room);
        bytes b;
        number(b, 0);
        for (uint32_t v : {grid.x, grid.y, grid.z, block.x, block.y, block.z})
            number(b, v);
        text(b, name);
        if (!good)
            return;
        chunk('K', b);
        std::stable_sort(t->entries, t->entries + count,
                         [](const reach_trace_entry &x, const reach_trace_entry &y) {
                             return x.block != y.block ? x.block < y.block : x.warp < y.warp;
                         });
        for (uint64_t i = 0, end = 0; i < count; i = end) {
            uint64_t previous = 0;
            bytes run, all;
            const reach_trace_entry &e = t->entries[i];
            for (end = i; end < count && run.size() < 60000 && t->entries[end].block == e.block &&
                          t->entries[end].warp == e.warp;
                 end++)
                record(run, t->entries[end], previous);
            for (uint64_t v : {(uint64_t)kernels, e.block, (uint64_t)e.warp, end - i})
                number(all, v);
            all.insert(all.end(), run.begin(), run.end());
            chunk('W', all);
        }
        lost += *t->used - count;
        records += count;
        kernels++;
        *t->used = 0;
    }
    bool end()
    {
        bytes b, left_out;
        if (good && lost > 0) {
            for (uint64_t v : {(uint64_t)0, (uint64_t)0, (uint64_t)0, lost})
                number(left_out, v);
            chunk('L', left_out);
        }
        number(b, chunks);
        number(b, records);
        if (good)
            chunk('E', b);
        good = out && fclose(out) == 0 && good;
        out = NULL;
        return good;
    }
};

#endif
