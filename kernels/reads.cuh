/* reads.cuh: random draws of a lane, and the count of accesses, for the kernels of random reads. */
#ifndef REACH_KERNELS_READS_CUH
#define REACH_KERNELS_READS_CUH

#include "grid.cuh"

/* Returns the next random number of a lane. The state advances by a Weyl step and is mixed
 * (Murmur3's finalizer). So every lane has its own sequence. */
static __device__ __forceinline__ u32 next_random(u32 *state)
{
    u32 z = (*state += 0x9e3779b9u);
    z = (z ^ (z >> 16)) * 0x85ebca6bu;
    z = (z ^ (z >> 13)) * 0xc2b2ae35u;
    return z ^ (z >> 16);
}

/* Returns the part of the `made` accesses between `from` and `to` that falls between start and end.
 * If accesses are slow, a warp needs a tenth of the run for a few of them. */
static __device__ __forceinline__ u32 counted(u32 made, u64 from, u64 to, u64 start, u64 end)
{
    if (from >= start && to <= end)
        return made;
    if (to <= start || from >= end)
        return 0;
    return (u32)(made * (min(to, end) - max(from, start)) / (to - from));
}

#endif
