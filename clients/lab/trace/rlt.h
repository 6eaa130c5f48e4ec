/* rlt.h: writes and reads traces of memory accesses (.rlt) as streams. docs/lab.md describes the
 * format byte by byte. A trace contains applications, allocations, kernels and records. A record is
 * one memory instruction of a warp with its distinct lines.
 *
 * A line is an address divided by the granule of the file, which is 128 bytes or a larger power of
 * two. A writer or reader belongs to one thread. */
#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
    RLT_LANES = 32, /* lanes of a warp, and maximum number of lines per record */
    RLT_NAME_BYTES = 128,
    RLT_MIN_GRANULE = 128,
    RLT_MAX_GRANULE = 1 << 26,
    RLT_MAX_WIDTH_LOG2 = 5, /* 32 bytes per lane */
    RLT_CHUNK_BYTES = 1 << 16
};

#define RLT_FULL_MASK UINT32_MAX

enum rlt_kind { RLT_LOAD = 0, RLT_STORE, RLT_ATOMIC, RLT_KIND_COUNT };
const char *rlt_kind_name(enum rlt_kind kind); /* "load", "store", "atomic" */

struct rlt_allocation {
    uint32_t app;
    uint64_t base;
    uint64_t bytes; /* 1 or more; base + bytes is at most 2^64 - 1 */
    char name[RLT_NAME_BYTES];
};

/* Blocks per grid and threads per block. A dimension of 0 means unknown. */
struct rlt_kernel {
    uint32_t app;
    uint32_t grid[3];
    uint32_t block[3];
    char name[RLT_NAME_BYTES];
};

struct rlt_app {
    char name[RLT_NAME_BYTES];
};

/* One memory instruction of one warp. */
struct rlt_record {
    uint64_t block;  /* x + y grid[0] + z grid[0] grid[1] */
    uint32_t kernel; /* number from 0, in the order of the file */
    uint32_t warp;   /* number of the warp in its block */
    uint32_t gap;    /* instructions without memory since the last record of this warp */
    uint32_t mask;   /* active lanes, never 0 */
    enum rlt_kind kind;
    uint32_t width_log2; /* log2 of the bytes per lane, 0..RLT_MAX_WIDTH_LOG2 */
    uint32_t line_count; /* 1..RLT_LANES */
    uint64_t lines[RLT_LANES];
};

/* Numbers of warp instructions that access global memory and have no record. */
struct rlt_left_out {
    uint64_t copies;   /* bulk copies of the tensor memory accelerator (TMA) */
    uint64_t textures; /* loads from textures and accesses to surfaces */
    uint64_t unknown;  /* instructions without an address outside of the first page */
    uint64_t lost;     /* accesses lost because the recorder's buffer was full */
};
/* Returns the share of the accesses to global memory that is left out because of its kind. `lost`
 * does not count, because lost accesses are of all kinds, like the warps that are not sampled. */
double rlt_left_out_share(const struct rlt_left_out *l, uint64_t records);

/* ---- writing ---- */

struct rlt_writer;

/* Writes the header to `out`, which is borrowed until rlt_writer_end. `granule_bytes` is a power of
 * two from RLT_MIN_GRANULE to RLT_MAX_GRANULE. Returns NULL if out of memory. rlt_writer_end
 * reports all write errors. */
struct rlt_writer *rlt_writer_new(FILE *out, uint32_t granule_bytes);

/* The functions number applications and kernels from 0 and return the number. Names are truncated
 * to RLT_NAME_BYTES - 1. An application must be written before its allocations and kernels, and a
 * kernel before its records. */
uint32_t rlt_write_app(struct rlt_writer *w, const char *name);
uint32_t rlt_write_kernel(struct rlt_writer *w, const struct rlt_kernel *kernel);
void rlt_write_allocation(struct rlt_writer *w, const struct rlt_allocation *allocation);
void rlt_write_record(struct rlt_writer *w, const struct rlt_record *record);

/* Adds `left_out` to the numbers of accesses that are left out. */
void rlt_write_left_out(struct rlt_writer *w, const struct rlt_left_out *left_out);

/* Sets the distinct lines of the lanes in record->mask, in the order of lanes. */
void rlt_set_lines(const struct rlt_writer *w, const uint64_t addresses[RLT_LANES],
                   struct rlt_record *record);

/* Returns the number of records that were written. */
uint64_t rlt_writer_records(const struct rlt_writer *w);

/* Writes the end and frees the writer. Returns STATUS_IO if any write failed. */
enum status rlt_writer_end(struct rlt_writer *take, struct err *err);

/* Frees the writer without writing the end, so that every reader rejects the file. */
void rlt_writer_abandon(struct rlt_writer *take);

/* ---- reading ---- */

struct rlt_reader;

/* Reads the header. Returns NULL after an error. `in` is borrowed until rlt_reader_free. */
struct rlt_reader *rlt_reader_new(FILE *in, struct err *err);
void rlt_reader_free(struct rlt_reader *take);

/* Reads the next record. Returns false at the end, with STATUS_OK in err->status, and after an
 * error. The errors are STATUS_CORRUPT with the position in the file, and STATUS_NO_MEMORY. A file
 * without its end is damaged. */
bool rlt_read(struct rlt_reader *r, struct rlt_record *out, struct err *err);

/* What was read so far. The tables move when rlt_read reads more of them. */
struct rlt_tables {
    uint32_t granule_bytes;
    uint32_t app_count, kernel_count, allocation_count;
    struct rlt_app *apps;
    struct rlt_kernel *kernels;
    struct rlt_allocation *allocations;
    struct rlt_left_out left_out; /* sums; 0 in version 1, which does not have these numbers */
};
const struct rlt_tables *rlt_tables(const struct rlt_reader *r);
