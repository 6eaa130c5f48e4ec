/* trace.h: a trace in memory, by warps, with its addresses moved together, so that the model can
 * work with them: chunks of TRACE_CHUNK_BYTES that nobody touches are taken out. What lies within
 * a chunk stays as it was, and so does what shares a TLB entry of up to a chunk.
 *
 * 8 bytes for each record and 4 for each line. Read-only once it is loaded; any thread.
 */
#ifndef REACH_CLIENTS_LAB_TRACE_H
#define REACH_CLIENTS_LAB_TRACE_H

#include "clients/lab/rlt.h"

#define TRACE_CHUNK_BYTES ((uint64_t)1 << 28)
enum { TRACE_MAX_CHUNKS = 65536, TRACE_SECTOR_BYTES = 32 };

/* Adjacent memory that the trace touches, or an allocation of it. */
struct trace_region {
    uint64_t base; /* as traced */
    uint64_t at;   /* moved */
    uint64_t bytes;
    uint64_t before; /* bytes of the regions before it */
};

struct trace_record {
    uint32_t first_unit; /* in units[] */
    uint8_t line_count;
    uint8_t kind;    /* enum rlt_kind */
    uint8_t sectors; /* that memory moves for each line, 1.. */
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
    uint64_t range_bytes; /* moved addresses are below */
    uint64_t bytes;       /* of all regions */
    uint64_t moved_bytes; /* sectors of all lines, in bytes */
    uint64_t line_count;
    uint32_t unit_shift; /* a moved address is a unit << unit_shift */
    uint32_t region_count, kernel_count, block_count, warp_count, record_count;
    struct trace_region *regions; /* by rising address */
    struct rlt_kernel *kernels;
    struct trace_block *blocks; /* in the order of their first records */
    struct trace_warp *warps;
    struct trace_record *records;
    uint32_t *units;
    uint64_t kinds[RLT_KIND_COUNT]; /* records of each kind */
    uint64_t gaps;                  /* instructions without memory */
    struct rlt_left_out left_out;
};

/* Reads a whole .rlt. STATUS_CORRUPT, STATUS_NO_MEMORY, STATUS_NOT_APPLICABLE: it has no record, or
 * more than 2^32 of them, or touches more than 16 TiB. Free it in either case. */
enum status trace_load(FILE *in, struct trace *out, struct err *err);
void trace_free(struct trace *take);

/* How many bytes of the regions lie before this moved address: the position of a plan. */
uint64_t trace_position(const struct trace *t, uint64_t moved);

#endif
