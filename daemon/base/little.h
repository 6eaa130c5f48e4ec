/* little.h: Little's law: the number of loads in flight is the rate at which loads finish, times
 * the latency of a load. The functions are pure. */
#pragma once

/* Returns the number of loads that must be in flight to move `bytes_per_cycle` with loads of
 * `load_bytes` and a latency of `latency_cycles`. Mei 2016, section 6.1: 47 cycles and 256 bytes a
 * cycle need 94 loads of a warp of 128 bytes. */
static inline double little_loads(double latency_cycles, double bytes_per_cycle, double load_bytes)
{
    return latency_cycles * bytes_per_cycle / load_bytes;
}

/* Returns the latency of a load in nanoseconds, if `loads` of `load_bytes` are in flight and move
 * `gbps` (10^9 bytes a second). */
static inline double little_latency_ns(double loads, double load_bytes, double gbps)
{
    return loads * load_bytes / gbps;
}
