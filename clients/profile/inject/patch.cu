/* patch.cu: the functions that patched instructions call. Compile with
 * `nvcc --fatbin --compile-as-tools-patch`. The Sanitizer API calls a function in each active lane,
 * and its argument `data` is NULL in launches that are not recorded. The functions return 0, which
 * means success. */
#include "clients/profile/inject/abi.h"

static __device__ __forceinline__ unsigned lowest_lane(unsigned mask)
{
    return __ffs(mask) - 1;
}

static __device__ __forceinline__ unsigned lane_number()
{
    unsigned lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

/* Returns whether the launch has been running for longer than its limit. */
static __device__ __forceinline__ bool is_late(profile_launch *l)
{
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    unsigned long long begin = l->begin_ns;
    if (begin == 0)
        begin = atomicCAS(&l->begin_ns, 0ull, now);
    if (l->limit_ns == 0 || begin == 0 || (long long)(now - begin) <= (long long)l->limit_ns)
        return false;
    l->is_late = 1;
    return true;
}

/* Adds a key to a set of `room` slots. Returns its slot, or -1 if no slot is free. */
static __device__ __forceinline__ int find(uint64_t *first, size_t words, unsigned room, uint64_t key)
{
    const unsigned hash = (unsigned)((key * 0x9e3779b97f4a7c15ull) >> 40);
    for (unsigned i = 0; i < PROFILE_PROBES; i++) {
        const unsigned slot = (hash + i) & (room - 1);
        uint64_t *at = first + slot * words;
        uint64_t seen = *at;
        if (seen == 0)
            seen = atomicCAS((unsigned long long *)at, 0ull, (unsigned long long)key);
        if (seen == key || seen == 0)
            return (int)slot;
    }
    return -1;
}

static __device__ __forceinline__ void add_page(profile_launch *l, uint64_t address)
{
    if (find(l->pages, 1, PROFILE_PAGES, (address >> PROFILE_PAGE_SHIFT) + 1) < 0)
        atomicAdd(&l->pages_lost, 1ull);
}

static __device__ __forceinline__ uint64_t block_number()
{
    return blockIdx.x + (uint64_t)gridDim.x * (blockIdx.y + (uint64_t)gridDim.y * blockIdx.z);
}

static __device__ __forceinline__ void count(profile_launch *l, uint64_t pc, uint32_t kind_bytes,
                                             unsigned lanes, unsigned runs)
{
    profile_instruction *const set = l->instructions + block_number() % PROFILE_COPIES * PROFILE_INSTRUCTIONS;
    const int slot = find(&set->pc, sizeof *set / 8, PROFILE_INSTRUCTIONS, pc + 1);
    const unsigned width = (32 - __clz(kind_bytes & 0xff)) % PROFILE_WIDTHS;
    profile_instruction *const i = slot < 0 ? &l->others[kind_bytes >> 8][width] : &set[slot];
    i->kind_bytes = kind_bytes;
    atomicAdd((unsigned long long *)&i->warps, 1ull);
    atomicAdd((unsigned long long *)&i->lanes, (unsigned long long)lanes);
    atomicAdd((unsigned long long *)&i->runs, (unsigned long long)runs);
}

static __device__ __forceinline__ void access(profile_launch *l, uint64_t pc, uint64_t address,
                                              uint32_t kind, uint32_t bytes)
{
    const unsigned mask = __activemask(), lane = lane_number(), before = mask & ((1u << lane) - 1);
    const unsigned leader = lowest_lane(mask), rank = __popc(before);
    const uint32_t kind_bytes = kind << 8 | bytes;

    if (__any_sync(mask, lane == leader && is_late(l)))
        return;

    /* The distance from the active lane before this one; the first active lane has none. */
    const unsigned previous = before ? 31 - __clz(before) : lane;
    const int64_t step = (int64_t)(address - __shfl_sync(mask, address, previous));
    const unsigned second = mask & (mask - 1) ? lowest_lane(mask & (mask - 1)) : leader;
    const int64_t stride = __shfl_sync(mask, step, second);
    const bool begins = before == 0 || (step != bytes && step != 0);
    const unsigned starts = __ballot_sync(mask, begins);
    const bool listed = __any_sync(mask, (before != 0 && step != stride) ||
                                             stride != (int32_t)stride);

    if (before == 0 || (uint64_t)step >> PROFILE_PAGE_SHIFT != 0 ||
        (address ^ (address - (uint64_t)step)) >> PROFILE_PAGE_SHIFT != 0)
        add_page(l, address);
    if (lane == leader)
        count(l, pc, kind_bytes, __popc(mask), __popc(starts));

    const uint64_t block = block_number();
    if ((uint32_t)(block >> l->run_shift) % l->every != 0)
        return;
    const unsigned words = PROFILE_HEAD_WORDS + (listed ? 2 * __popc(mask) : 0);
    unsigned long long at = 0;
    if (lane == leader)
        at = atomicAdd(&l->used, (unsigned long long)words);
    at = __shfl_sync(mask, at, leader);
    if (at + words > l->room) {
        if (lane == leader) {
            atomicAdd(&l->records_lost, 1ull);
            if (at + PROFILE_HEAD_WORDS <= l->room)
                ((profile_record *)(l->words + at))->mask = 0; /* the end of the records */
        }
        return;
    }
    if (lane == leader) {
        const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        profile_record *const r = (profile_record *)(l->words + at);
        r->block = block;
        r->warp = thread / 32;
        r->mask = mask;
        r->kind_bytes = kind_bytes | (listed ? PROFILE_LISTED : 0);
        r->stride = (int32_t)stride;
        r->base = address;
    }
    if (listed)
        ((uint64_t *)(l->words + at + PROFILE_HEAD_WORDS))[rank] = address;
}

/* A bulk copy: one lane copies `bytes` contiguous bytes. It is counted as an access of 0 bytes, because it has no
 * record that its number could be compared with. */
static __device__ __forceinline__ void bulk(profile_launch *l, uint64_t pc, uint64_t address, uint32_t kind,
                                            uint64_t bytes)
{
    if (is_late(l))
        return;
    for (uint64_t page = address >> PROFILE_PAGE_SHIFT; page <= (address + bytes - 1) >> PROFILE_PAGE_SHIFT;
         page++)
        add_page(l, page << PROFILE_PAGE_SHIFT);
    count(l, pc, kind << 8, 1, 1);
}

/* SanitizerCallbackMemoryAccess. Bit 0 of `flags` is a read, bit 1 a write, both an atomic; bit 3 is
 * a prefetch. */
extern "C" __device__ __noinline__ int reach_profile_access(void *data, uint64_t pc, void *address,
                                                            uint32_t bytes, uint32_t flags, const void *)
{
    if (data != NULL && !(flags & 8))
        access((profile_launch *)data, pc, (uint64_t)address,
               (flags & 3) == 3 || (flags & 0x104) ? PROFILE_ATOMIC : (flags & 2) ? PROFILE_STORE : PROFILE_LOAD,
               bytes);
    return 0;
}

/* SanitizerCallbackMemcpyAsync: a copy of a lane from global to shared memory (cp.async). */
extern "C" __device__ __noinline__ int reach_profile_copy(void *data, uint64_t pc, void *address, uint32_t,
                                                          uint32_t bytes)
{
    if (data != NULL)
        access((profile_launch *)data, pc, (uint64_t)address, PROFILE_LOAD, bytes);
    return 0;
}

/* SanitizerCallbackBulkCopyGlobalToShared and SharedToGlobal. The low 16 bits of the size are the
 * number of 16-byte units. */
extern "C" __device__ __noinline__ int reach_profile_bulk_load(void *data, uint64_t pc, uint64_t address,
                                                               uint32_t, uint32_t, uint32_t size, uint32_t)
{
    if (data != NULL && lane_number() == lowest_lane(__activemask()))
        bulk((profile_launch *)data, pc, address, PROFILE_LOAD, (size & 0xffff) * 16ull);
    return 0;
}

extern "C" __device__ __noinline__ int reach_profile_bulk_store(void *data, uint64_t pc, uint64_t address,
                                                                uint32_t, uint32_t size, uint32_t)
{
    if (data != NULL && lane_number() == lowest_lane(__activemask()))
        bulk((profile_launch *)data, pc, address, PROFILE_STORE, (size & 0xffff) * 16ull);
    return 0;
}

/* SanitizerCallbackTensorMemoryLoad: the address is in an opaque descriptor, so the instruction is
 * only counted, as a load of 0 bytes. */
extern "C" __device__ __noinline__ int reach_profile_tensor(void *data, uint64_t pc, uint64_t, uint32_t, uint32_t,
                                                            int, int, int, int, int, uint32_t, uint32_t,
                                                            uint32_t, uint32_t)
{
    if (data != NULL && lane_number() == lowest_lane(__activemask()))
        count((profile_launch *)data, pc, PROFILE_LOAD << 8, 1, 1);
    return 0;
}
