/* trace.h: a trace in memory, ordered by warp. Its addresses are moved together: chunks of
 * TRACE_CHUNK_BYTES that the trace does not touch are removed. Addresses within a chunk keep their
 * distances. Accesses that share a TLB entry still share it if the entry is not larger than a
 * chunk.
 *
 * A trace takes 12 bytes per record and 4 per line. A loaded trace is read-only and may be used by
 * any thread. */
#pragma once

#include "base/json_writer.h"
#include "clients/lab/trace/rlt.h"

#define TRACE_CHUNK_BYTES ((uint64_t)1 << 28)
enum { TRACE_MAX_CHUNKS = 65536, TRACE_SECTOR_BYTES = 32 };

/* A range of adjacent chunks that the trace touches, or an allocation of the trace. */
struct trace_region {
    uint64_t base; /* traced address */
    uint64_t at;   /* the moved address of base */
    uint64_t bytes;
    uint64_t before; /* total bytes of the regions before this one */
};

struct trace_record {
    uint32_t first_unit; /* index into units[] */
    uint32_t mask;       /* active lanes */
    uint8_t line_count;
    uint8_t kind;    /* enum rlt_kind */
    uint8_t sectors; /* sectors that memory moves per line, 1 or more */
};

struct trace_warp {
    uint32_t first_record, record_count;
};

struct trace_block {
    uint32_t kernel;
    uint32_t first_warp, warp_count;
};

struct trace {
    uint32_t granule_bytes;
    uint64_t range_bytes; /* exclusive upper limit of all moved addresses */
    uint64_t bytes;       /* total bytes of all regions */
    uint64_t moved_bytes; /* bytes of the sectors of all lines */
    uint64_t line_count;
    uint32_t unit_shift; /* a moved address is a unit << unit_shift */
    uint32_t region_count, kernel_count, block_count, warp_count, record_count;
    struct trace_region *regions; /* sorted by address */
    struct rlt_kernel *kernels;
    uint32_t *kernel_blocks;    /* number of blocks of each kernel in `blocks` */
    struct trace_block *blocks; /* sorted by their first records */
    struct trace_warp *warps;
    struct trace_record *records;
    uint32_t *units;
    uint64_t kinds[RLT_KIND_COUNT]; /* records of each kind */
    uint64_t gaps;                  /* instructions that do not access memory */
    struct rlt_left_out left_out;
};

void trace_free(struct trace *take);

/* Returns the region that contains a moved address, or the region before the address. */
struct trace_region *trace_find_region(const struct trace *t, uint64_t moved);

/* Returns the bytes of all regions before a moved address. This is the position in a plan. An
 * address outside of all regions counts as the nearest byte of its region. */
uint64_t trace_position(const struct trace *t, uint64_t moved);

/* Prints at most two lines: accesses that have no record, and accesses that the recorder lost.
 * `records` is the number of records in the trace. */
void left_out_print(const struct rlt_left_out *l, uint64_t records, FILE *out);
/* Writes "left_out": {"share", "copies", "textures", "unknown", "lost"} */
void left_out_write(struct json_writer *t, const struct rlt_left_out *l, uint64_t records);
