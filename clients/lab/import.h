/* import.h: what other tools write, as .rlt: the text of NVBit's mem_trace, the traces of
 * Accel-Sim, and CSV. Each function reads a text as a stream and writes to a writer that is the
 * caller's.
 *
 * Accesses of shared, local and constant memory are left out and counted. Accesses of global memory
 * that the text does not have the addresses of, bulk copies (TMA), textures and surfaces are left
 * out too, and the trace says how many. STATUS_CORRUPT names the line that cannot be read, or says
 * why there is nothing to import.
 */
#ifndef REACH_CLIENTS_LAB_IMPORT_H
#define REACH_CLIENTS_LAB_IMPORT_H

#include "clients/lab/rlt.h"

struct import_counts {
    uint64_t bytes;               /* of text */
    uint64_t records;             /* written */
    uint64_t other_memory;        /* instructions of shared, local and constant memory, left out */
    struct rlt_left_out left_out; /* of global memory */
    uint64_t idle;                /* instructions of which no lane took part, left out */
    uint64_t other_lines;         /* of the program that was traced, not of the tracer */
};

/* NVBit mem_trace: what it prints, with what the program itself printed between. Each context is
 * an application of the trace: its launches are numbered for themselves. */
enum status import_nvbit(FILE *in, struct rlt_writer *out, struct import_counts *counts,
                         struct err *err);

/* `warp,address` or `address` in each row; one access by one warp. Without warps the rows are dealt
 * to IMPORT_CSV_WARPS of them in turn. Each warp counts as a block of its own. */
enum { IMPORT_CSV_WARPS = 4096 };
enum status import_csv(FILE *in, struct rlt_writer *out, struct import_counts *counts,
                       struct err *err);

/* One kernel of Accel-Sim (.traceg, tracer versions 3 to 5). `app` is one of the writer. */
enum status import_accelsim_kernel(FILE *in, uint32_t app, struct rlt_writer *out,
                                   struct import_counts *counts, struct err *err);

/* A kernelslist.g with the kernels beside it (.xz and .zst are unpacked with xz and zstd), or one
 * .traceg. */
enum status import_accelsim(const char *path, struct rlt_writer *out, struct import_counts *counts,
                            struct err *err);

#endif
