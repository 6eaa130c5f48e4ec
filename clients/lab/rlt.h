/* rlt.h: traces of memory accesses in files (.rlt), written and read as streams. docs/lab.md has
 * the format byte by byte. A trace is what warps accessed: applications, allocations, kernels, and
 * one record for each memory instruction of a warp, with its distinct lines.
 *
 * Lines are addresses divided by the granule of the file, 128 bytes or a larger power of two. A
 * writer and a reader belong to one thread.
 */
#ifndef REACH_CLIENTS_LAB_RLT_H
#define REACH_CLIENTS_LAB_RLT_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
    RLT_LANES = 32, /* of a warp: the most lines of a record */
    RLT_NAME_BYTES = 128,
    RLT_MIN_GRANULE = 128,
    RLT_MAX_GRANULE = 1 << 26,
    RLT_MAX_WIDTH_LOG2 = 5, /* 32 bytes by one lane */
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

/* Blocks of a grid and threads of a block; 0 is "not known". */
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
    uint32_t kernel; /* number, from 0, in the order in which the file has them */
    uint32_t warp;   /* of the block */
    uint32_t gap;    /* instructions without memory since the last record of this warp */
    uint32_t mask;   /* lanes that take part, never 0 */
    enum rlt_kind kind;
    uint32_t width_log2; /* bytes of one lane, 0..RLT_MAX_WIDTH_LOG2 */
    uint32_t line_count; /* 1..RLT_LANES */
    uint64_t lines[RLT_LANES];
};

/* Instructions of warps that access global memory and have no record. */
struct rlt_left_out {
    uint64_t copies;   /* bulk copies of the tensor memory accelerator (TMA) */
    uint64_t textures; /* loads from textures, accesses of surfaces */
    uint64_t unknown;  /* without an address, or with one in the first page, which has no memory */
    uint64_t lost;     /* that the recorder's buffer had no room for */
};
/* The part of all accesses of global memory that is left out on account of what they are; `lost`
 * does not count, because it is left out whatever it is, like the warps between those sampled. */
double rlt_left_out_share(const struct rlt_left_out *l, uint64_t records);

/* ---- writing ---- */

struct rlt_writer;

/* Writes the header to `out`, which is borrowed until rlt_writer_end. `granule_bytes`: a power of
 * two from RLT_MIN_GRANULE to RLT_MAX_GRANULE. NULL: no memory. What cannot be written is reported
 * by rlt_writer_end alone. */
struct rlt_writer *rlt_writer_new(FILE *out, uint32_t granule_bytes);

/* Each gets the next number of its kind, from 0. Names are cut to RLT_NAME_BYTES - 1. The app of
 * an allocation or kernel and the kernel of a record must have been written before. */
uint32_t rlt_write_app(struct rlt_writer *w, const char *name);
uint32_t rlt_write_kernel(struct rlt_writer *w, const struct rlt_kernel *kernel);
void rlt_write_allocation(struct rlt_writer *w, const struct rlt_allocation *allocation);
void rlt_write_record(struct rlt_writer *w, const struct rlt_record *record);

/* Adds to what is left out. */
void rlt_write_left_out(struct rlt_writer *w, const struct rlt_left_out *left_out);

/* Fills in the distinct lines of the lanes in record->mask, in the order of lanes. */
void rlt_set_lines(const struct rlt_writer *w, const uint64_t addresses[RLT_LANES],
                   struct rlt_record *record);

/* Records written so far. */
uint64_t rlt_writer_records(const struct rlt_writer *w);

/* Writes the end and frees the writer. STATUS_IO if any write failed. */
enum status rlt_writer_end(struct rlt_writer *take, struct err *err);

/* Frees it without an end: what was written so far is refused by every reader. */
void rlt_writer_abandon(struct rlt_writer *take);

/* ---- reading ---- */

struct rlt_reader;

/* Reads the header. NULL: `err` says what is wrong with the file. `in` is borrowed until
 * rlt_reader_free. */
struct rlt_reader *rlt_reader_new(FILE *in, struct err *err);
void rlt_reader_free(struct rlt_reader *take);

/* The next record. False at the end (err->status is STATUS_OK), or where the file is damaged:
 * STATUS_CORRUPT with the place; STATUS_NO_MEMORY. A file without its end is damaged. */
bool rlt_read(struct rlt_reader *r, struct rlt_record *out, struct err *err);

/* What was read so far; valid until the next call of rlt_read. */
uint32_t rlt_granule_bytes(const struct rlt_reader *r);
const struct rlt_app *rlt_apps(const struct rlt_reader *r, uint32_t *out_count);
const struct rlt_kernel *rlt_kernels(const struct rlt_reader *r, uint32_t *out_count);
const struct rlt_allocation *rlt_allocations(const struct rlt_reader *r, uint32_t *out_count);
/* The sum; all 0 in a trace of version 1, which does not contain it. */
struct rlt_left_out rlt_left_out(const struct rlt_reader *r);

#endif
