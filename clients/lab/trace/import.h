/* import.h: converts the traces of other tools to .rlt: the output of NVBit's mem_trace, the traces
 * of Accel-Sim, and CSV. Each function reads its input as a stream and writes to the caller's
 * writer.
 *
 * Accesses to shared, local and constant memory are left out and counted. Bulk copies (TMA),
 * accesses to textures and surfaces, and accesses to global memory without an address are also left
 * out. The trace contains their number. STATUS_CORRUPT names the line that cannot be read, or the
 * reason why there is nothing to import. */
#ifndef REACH_CLIENTS_LAB_TRACE_IMPORT_H
#define REACH_CLIENTS_LAB_TRACE_IMPORT_H

#include "clients/lab/trace/rlt.h"

struct import_counts {
    uint64_t bytes;               /* of the input */
    uint64_t records;             /* written */
    uint64_t other_memory;        /* instructions on shared, local and constant memory, left out */
    struct rlt_left_out left_out; /* of global memory */
    uint64_t idle;                /* instructions without an active lane, left out */
    uint64_t other_lines;         /* printed by the traced program itself */
};

/* The output of mem_trace, which the traced program's own output may interrupt. Each context
 * becomes an application of the trace, because each context numbers its own launches. */
enum status import_nvbit(FILE *in, struct rlt_writer *out, struct import_counts *counts,
                         struct err *err);

/* Rows of `warp,address` or `address`, each one access of one warp. Rows without a warp are dealt
 * to IMPORT_CSV_WARPS warps in turn. Each warp becomes its own block. */
enum { IMPORT_CSV_WARPS = 4096 };
enum status import_csv(FILE *in, struct rlt_writer *out, struct import_counts *counts,
                       struct err *err);

/* One kernel of Accel-Sim (.traceg, tracer versions 3 to 5). `app` is a number from
 * rlt_write_app. */
enum status import_accelsim_kernel(FILE *in, uint32_t app, struct rlt_writer *out,
                                   struct import_counts *counts, struct err *err);

/* A kernelslist.g with its kernels in the same folder, or one .traceg. Compressed kernels are
 * unpacked. */
enum status import_accelsim(const char *path, struct rlt_writer *out, struct import_counts *counts,
                            struct err *err);

#endif
