/* cuda_read.h: runs READ and CONCURRENCY on the device, with one launch for each point and repeat.
 * It is internal to the cuda source. Each row of `values` has the elapsed nanoseconds, then the
 * lines (or accesses) of each SM. */
#pragma once

#include "gpu/cuda/cuda_arena.h"
#include "gpu/cuda/cuda_launch.h"

/* The range that is read. */
struct cuda_read_range {
    cu_deviceptr base;
    uint64_t period_bytes; /* period of the memory behind the range; 0 if it does not repeat */
    cu_deviceptr output;   /* device memory for the output of a probe that has output */
    uint64_t output_bytes;
};

enum status cuda_read_run(const struct cuda_probe *p, const struct cuda_read_range *range,
                          const struct probe_spec *spec, uint32_t *values, struct err *err);
/* Runs a READ with run_bytes. The memory behind its range does not repeat. */
enum status cuda_read_scattered(const struct cuda_probe *p, struct cuda_arena *arena,
                                const struct probe_spec *spec, uint32_t *values, struct err *err);

/* Writes the row of a read that has ended, for launches in other files that count like READ. */
enum status cuda_read_row(const struct cuda_probe *p, uint32_t *row, struct err *err);
