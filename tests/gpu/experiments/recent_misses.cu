/* For docs/lab.md. */
/* recent_misses.cu: measures which SMs share the store of the latest misses, which a TLB has beside
 * its sets (docs/lab.md, V4). tests/gpu/test_recent.py runs it.
 *
 *     recent_misses ENTRY SETS WAYS SM ..
 *
 *         The TLB has entries of ENTRY bytes in SETS sets of WAYS ways. The set of an entry is its
 *         number, folded by XOR. The program prints for each SM the mean cycles of a load:
 *
 *         alone SM COUNT:CYCLES ..   for cycles of COUNT entries of one set, up to all of its
 *                                    entries in memory
 *         full SM CYCLES CYCLES      for cycles of WAYS and of WAYS + 4 entries, which also contain
 *                                    all entries of another set
 *         beside SM OTHER:CYCLES ..  for a cycle of WAYS + 4 entries, while the SM OTHER walks all
 *                                    entries of a third set, and all of its loads miss
 *
 * Between these entries the cycle contains entries of other sets, so that no nearer TLB keeps any
 * of them. Sets depend on virtual addresses. The program takes most of the free memory. Loads
 * bypass L1.
 */
#include "tests/gpu/common.cuh"

#include <cuda_runtime.h>

#include <algorithm>
#include <vector>

typedef uint32_t u32;
typedef uint64_t u64;

enum {
    MOST = 96,   /* entries of a cycle */
    OTHERS = 48, /* entries of the cycle in sets of their own */
    BEYOND = 4,  /* entries that only the store beside the sets can keep */
    MOST_COUNT = 24,
    LAPS = 12,
    WARM_LAPS = 4,
    FIRST_LAPS = 3, /* warm-up laps of the neighbor, before the SM begins */
    LINE = 128
};
static const u64 SPARE = (u64)1 << 30; /* bytes left for the driver */
static const u32 NEIGHBOR_LAPS = 100000;

struct cycle {
    u32 sm;
    u32 length, timed; /* only the first `timed` loads are counted */
    const u32 *at[MOST];
};

struct job {
    struct cycle own, neighbor; /* the same SM means no neighbor */
    u32 ready, done;            /* set by the neighbor; set at the end */
    u64 cycles, loads;
    u64 neighbor_cycles; /* stored, so that the compiler keeps the loads */
};

/* Returns the cycles of a load; the second clock waits for the value, which is 0. */
static __device__ u32 timed_load(const u32 *at)
{
    u32 value, after;
    const u32 before = clock();
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    asm volatile("{ .reg .pred p; setp.eq.u32 p, %1, 0;"
                 " @p mov.u32 %0, %%clock; @!p mov.u32 %0, 0; }"
                 : "=r"(after)
                 : "r"(value)
                 : "memory");
    return after - before;
}

static __device__ u64 lap(const struct cycle *c)
{
    u64 cycles = 0;
    for (u32 i = 0; i < c->length; i++) {
        const u32 taken = timed_load(c->at[i]);
        cycles += i < c->timed ? taken : 0;
    }
    return cycles;
}

static __device__ void own_work(job *j)
{
    volatile u32 *const ready = &j->ready;
    while (j->own.sm != j->neighbor.sm && !*ready)
        ;
    for (u32 k = 0; k < WARM_LAPS + LAPS; k++) {
        const u64 cycles = lap(&j->own);
        if (k < WARM_LAPS)
            continue;
        j->cycles += cycles;
        j->loads += j->own.timed;
    }
    *(volatile u32 *)&j->done = 1;
}

static __device__ void neighbor_work(job *j)
{
    volatile u32 *const done = &j->done;
    for (u32 k = 0; !*done && k < NEIGHBOR_LAPS; k++) {
        j->neighbor_cycles += lap(&j->neighbor);
        if (k + 1 == FIRST_LAPS)
            *(volatile u32 *)&j->ready = 1;
    }
}

/* A block fills an SM, so each SM has one. */
__global__ void walk(job *j)
{
    if (threadIdx.x > 0)
        return;
    if (sm_id() == j->own.sm)
        own_work(j);
    else if (sm_id() == j->neighbor.sm)
        neighbor_work(j);
}

struct setup {
    u64 entry_bytes;
    u32 sets, ways, sms, shared_bytes;
    u32 *memory;
    job *now;                                      /* memory on the device */
    std::vector<std::vector<const u32 *>> entries; /* entries of each set */
};

static u32 set_of(const setup &s, u64 address)
{
    u32 set = 0;
    for (u64 number = address / s.entry_bytes; number > 0; number /= s.sets)
        set ^= number % s.sets;
    return set;
}

/* Places within an entry differ between entries and sets. Otherwise the lines would meet in few
 * sets of a data cache. */
static void add(setup &s, cycle *c, u32 set, u32 which)
{
    const std::vector<const u32 *> &all = s.entries[set % s.sets];
    if (which >= all.size() || c->length == MOST) {
        fprintf(stderr, "there are too few entries in a set: a GPU with more memory is needed\n");
        exit(EXIT_FAILURE);
    }
    c->at[c->length++] = all[which] + (set * 31 + which * 37) % 997 * (LINE / sizeof(u32));
}

/* Makes a cycle of `count` entries of `set`, `more` entries of the next set, and one entry each of
 * the sets from `others` on. */
static cycle make(setup &s, u32 sm, u32 set, u32 count, u32 more, u32 others)
{
    cycle c = {};
    c.sm = sm;
    c.timed = count;
    for (u32 i = 0; i < count; i++)
        add(s, &c, set, i);
    for (u32 i = 0; i < more; i++)
        add(s, &c, set + 1, i);
    for (u32 i = more; i < OTHERS; i++)
        add(s, &c, others + i, 0);
    return c;
}

static double run(setup &s, const cycle &own, const cycle &neighbor)
{
    job j = {};
    j.own = own;
    j.neighbor = neighbor;
    CHECK(cudaMemcpy(s.now, &j, sizeof j, cudaMemcpyHostToDevice));
    walk<<<s.sms, 32, s.shared_bytes>>>(s.now);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&j, s.now, sizeof j, cudaMemcpyDeviceToHost));
    return (double)j.cycles / (double)j.loads;
}

enum { OWN_SET = 10, NEIGHBORS_SET = 20, OWN_OTHERS = 60, NEIGHBORS_OTHERS = 140 };

static double alone(setup &s, u32 sm, u32 count, u32 more)
{
    const cycle own = make(s, sm, OWN_SET, count, more, OWN_OTHERS);
    return run(s, own, own);
}

static void beside_all(setup &s, u32 sm, u32 misses)
{
    const cycle own = make(s, sm, OWN_SET, s.ways + BEYOND, 0, OWN_OTHERS);
    printf("beside %u", sm);
    for (u32 other = 0; other < s.sms; other++) {
        if (other != sm)
            printf(" %u:%.0f", other,
                   run(s, own, make(s, other, NEIGHBORS_SET, misses, 0, NEIGHBORS_OTHERS)));
    }
    printf("\n");
}

static void look_at(setup &s, u32 sm, u32 misses)
{
    printf("alone %u", sm);
    for (u32 count = s.ways / 2; count <= misses; count++)
        printf(" %u:%.0f", count, alone(s, sm, count, 0));
    printf("\nfull %u %.0f %.0f\n", sm, alone(s, sm, s.ways, misses),
           alone(s, sm, s.ways + BEYOND, misses));
    beside_all(s, sm, misses);
    fflush(stdout);
}

static void open_all(setup &s)
{
    size_t bytes, all;
    int sms, shared;
    CHECK(cudaMemGetInfo(&bytes, &all));
    bytes = (bytes - SPARE) / s.entry_bytes * s.entry_bytes;
    CHECK(cudaMalloc((void **)&s.memory, bytes));
    CHECK(cudaMemset(s.memory, 0, bytes));
    CHECK(cudaMalloc((void **)&s.now, sizeof *s.now));
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    CHECK(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    CHECK(cudaFuncSetAttribute(walk, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    s.sms = (u32)sms;
    s.shared_bytes = (u32)shared;
    s.entries.resize(s.sets);
    const u64 begin = ((u64)s.memory + s.entry_bytes - 1) / s.entry_bytes * s.entry_bytes;
    for (u64 at = begin; at + s.entry_bytes <= (u64)s.memory + bytes; at += s.entry_bytes)
        s.entries[set_of(s, at)].push_back((const u32 *)at);
}

int main(int argc, char **argv)
{
    setup s = {};
    if (argc < 5) {
        fprintf(stderr, "usage: recent_misses ENTRY SETS WAYS SM ..\n");
        return 2;
    }
    s.entry_bytes = strtoull(argv[1], NULL, 10);
    s.sets = (u32)atoi(argv[2]);
    s.ways = (u32)atoi(argv[3]);
    if (s.entry_bytes == 0 || s.sets < 2 || s.ways == 0) {
        fprintf(stderr, "ENTRY, SETS and WAYS must be numbers\n");
        return 2;
    }
    open_all(s);
    size_t least = MOST_COUNT;
    for (const auto &set : s.entries)
        least = std::min(least, set.size());
    for (int i = 4; i < argc; i++)
        look_at(s, (u32)atoi(argv[i]), (u32)least);
    return 0;
}
