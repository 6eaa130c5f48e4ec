/* partition.cuh: partitions numbers by window before they are used, so that every SM reads work of
 * its own window only. In return, each number is written and read once more. */
#pragma once

#include "job_device.cuh"
#include "reach_partition.cuh"

/* Lists of numbers by window. The numbers of window w are numbers[offsets[w]] to before
 * numbers[offsets[w + 1]]. */
struct partition_lists {
    u32 *numbers;
    u64 *offsets; /* [windows + 1] */
    void *temp;
    size_t temp_bytes;
};

/* Partitions the numbers number(0) .. number(count - 1) by byte(number), the memory that a number
 * will access. Runs after earlier work in `stream`. */
template <class Number, class Byte>
static bool partition_run(const partition_lists *lists, const reach_windows &windows, Number number,
                          Byte byte, u32 count, cudaStream_t stream, char *why)
{
    u64 first[REACH_WINDOW_MAX];
    reach_ranges ranges;
    size_t temp_bytes = lists->temp_bytes;
    for (u32 w = 0; w < windows.window_count; w++)
        first[w] = windows.window[w].first_byte;
    if (!reach_ranges_make(&ranges, first, windows.window_count, 1))
        return job_fail(why, "the plan has no windows to partition by");
    TRY((reach_partition_computed<u32, reach_partition_nothing>(
        lists->temp, temp_bytes, number, byte, lists->numbers, {}, count, ranges, lists->offsets,
        nullptr, stream)));
    return true;
}

/* Allocates lists for at most `count` numbers. It names the functors of partition_run(), because
 * nvcc compiles all kernels once more for other types. */
template <class Number, class Byte>
static bool partition_make(job_device *d, partition_lists *out, u32 count, char *why)
{
    const reach_ranges most = {REACH_WINDOW_MAX, {}};
    TRY((reach_partition_computed<u32, reach_partition_nothing>(
        nullptr, out->temp_bytes, Number(), Byte(), out->numbers, {}, count, most, nullptr, nullptr,
        0)));
    return job_device_allocate(d, &out->numbers, count * sizeof(u32), why) &&
           job_device_allocate(d, &out->offsets, (REACH_WINDOW_MAX + 1) * sizeof(u64), why) &&
           job_device_allocate(d, &out->temp, out->temp_bytes, why);
}
