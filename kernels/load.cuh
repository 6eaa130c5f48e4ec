/* load.cuh: loads that L1 cannot answer, and their timing.
 *
 * Loads are ld.global.cg: they bypass L1, because a hit there would not be translated at all (Mei
 * 2016). A load is timed by two reads of %clock with the load and a use of its value between them.
 * The hardware issues in order, so the second read waits for the value. The two reads always cost
 * the same few cycles, which stay in the results, because analysis works with differences.
 */
#ifndef REACH_KERNELS_LOAD_CUH
#define REACH_KERNELS_LOAD_CUH

#include "grid.cuh"

/* Makes a load that L1 cannot answer. The assembler removes a load whose value is not used,
 * "volatile" or not. So every value must be part of a result that is stored (see keep). */
static __device__ __forceinline__ u32 load_line(u64 address)
{
    u32 v;
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(address) : "memory");
    return v;
}

/* Loads and times the load. *v depends on the address. The second read of the clock is predicated
 * on the value, which is always 0. Otherwise the assembler may move it before the use of the
 * value. */
static __device__ __forceinline__ u32 timed_load(u64 address, u32 *v)
{
    u32 t0, t1;
    asm volatile("{\n\t"
                 ".reg .pred p;\n\t"
                 "mov.u32 %0, %%clock;\n\t"
                 "ld.global.cg.u32 %2, [%3];\n\t"
                 "setp.eq.u32 p, %2, 0;\n\t"
                 "mov.u32 %1, 0;\n\t"
                 "@p mov.u32 %1, %%clock;\n\t"
                 "}"
                 : "=&r"(t0), "=&r"(t1), "=&r"(*v)
                 : "l"(address)
                 : "memory");
    return t1 - t0;
}

/* Adds 0 atomically to a line and times it. *v, which is 0, is both added and returned, so each add
 * depends on the one before. */
static __device__ __forceinline__ u32 timed_atomic(u64 address, u32 *v)
{
    u32 t0, t1;
    asm volatile("{\n\t"
                 ".reg .pred p;\n\t"
                 "mov.u32 %0, %%clock;\n\t"
                 "atom.global.add.u32 %2, [%3], %2;\n\t"
                 "setp.eq.u32 p, %2, 0;\n\t"
                 "mov.u32 %1, 0;\n\t"
                 "@p mov.u32 %1, %%clock;\n\t"
                 "}"
                 : "=&r"(t0), "=&r"(t1), "+r"(*v)
                 : "l"(address)
                 : "memory");
    return t1 - t0;
}

#endif
