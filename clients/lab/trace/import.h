/* import.h: converts the traces of other tools to .rlt: the output of NVBit's mem_trace, the traces
 * of Accel-Sim, and CSV. Each function reads its input as a stream and writes to the caller's
 * writer.
 *
 * Accesses to shared, local and constant memory are left out and counted. Bulk copies (TMA),
 * accesses to textures and surfaces, and accesses to global memory without an address are also left
 * out. The trace contains their number. The message of STATUS_CORRUPT names the invalid line, or
 * the reason why no access was imported. */
#pragma once

#include "clients/lab/trace/rlt.h"

struct import_counts {
    uint64_t bytes;               /* bytes of input that were read */
    uint64_t records;             /* records that were written */
    uint64_t other_memory;        /* left-out instructions on shared, local and constant memory */
    struct rlt_left_out left_out; /* left-out accesses to global memory */
    uint64_t idle;                /* left-out instructions without an active lane */
    uint64_t other_lines;         /* lines that the traced program printed */
};

/* Imports the output of mem_trace. Lines of the traced program may be mixed in. Each context
 * becomes an application of the trace, because each context numbers its own launches. */
enum status import_nvbit(FILE *in, struct rlt_writer *out, struct import_counts *counts,
                         struct err *err);

/* Imports rows of `warp,address` or `address`. Each row is one access of one warp. Rows without a
 * warp are dealt to IMPORT_CSV_WARPS warps in turn. Each warp becomes its own block. */
enum { IMPORT_CSV_WARPS = 4096 };
enum status import_csv(FILE *in, struct rlt_writer *out, struct import_counts *counts,
                       struct err *err);

/* Imports one kernel of Accel-Sim (.traceg, tracer versions 3 to 5). `app` is a number that
 * rlt_write_app returned. */
enum status import_accelsim_kernel(FILE *in, uint32_t app, struct rlt_writer *out,
                                   struct import_counts *counts, struct err *err);

/* Imports a kernelslist.g and its kernels in the same folder, or one .traceg. Compressed kernels
 * are unpacked. */
enum status import_accelsim(const char *path, struct rlt_writer *out, struct import_counts *counts,
                            struct err *err);
