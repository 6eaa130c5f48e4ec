/* import.h: published measurements of others as observations. Pure: texts in, values out.
 *
 * The input is the output of the public benchmark cuda-gpu-tlb (Karnagel and Werner 2017), two
 * kinds of text:
 *
 *   curve    TLB-Test-*.csv                        sharing    TLBsharing-STRIDE-PAGES.txt
 *     #NAME: cuda 3.7, reduction mode: avg           #NAME: cuda 3.7
 *     #,1024,2048,4096,         strides in KiB       , reduction mode: avg
 *     48,249,249,240,           MiB, mean cycles     #----- absolute values -----
 *     49,250,,,                                      #   000 001
 *                                                    000 284 276      row: the SM that is timed
 *                                                    001 279 287
 *
 * The sharing text does not contain the stride and the number of its pages: the file name must.
 * Its second part, marks that the benchmark derived from the numbers, is not read.
 *
 * The texts are not trusted. Every line is checked, everything has a limit, and an error names the
 * file and the line (STATUS_INVALID_ARGUMENT).
 */
#ifndef REACH_IMPORT_IMPORT_H
#define REACH_IMPORT_IMPORT_H

#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

enum {
    IMPORT_MAX_FILES = 64,
    IMPORT_MAX_FILE_BYTES = 16 << 20,
    IMPORT_MAX_LINE_BYTES = 16384, /* 512 SMs need 4 KB */
    IMPORT_MAX_ROWS = 65536,       /* rows of one curve file */
    IMPORT_MAX_STRIDES = 24,       /* strides of one curve file */
    IMPORT_MAX_STRIDE_KIB = 4 << 20,
    IMPORT_MAX_CYCLES = 1000000
};

/* One file, already in memory. */
struct import_file {
    const char *name; /* path or name; terminated */
    const char *text; /* any bytes; need not be terminated */
    size_t bytes;
};

struct import_options {
    const char *gpu_name; /* name for the GPU; NULL means the name in the files */
    int64_t imported_at;  /* seconds since 1970, UTC; the files have no time of measurement */
};

/* Reads 1..IMPORT_MAX_FILES files about one GPU into `*out`, which the caller then owns
 * (observation_set_free). The GPU has origin imported and its own UUID, "IMPORTED-" and a hash of
 * its name. So it is never taken for an attached one, and two imports under one name are one
 * history. On failure `*out` is empty. May return STATUS_INVALID_ARGUMENT or STATUS_NO_MEMORY. */
enum status import_read(const struct import_file *files, size_t count,
                        const struct import_options *options, struct observation_set *out,
                        struct err *err);

/* Reads the same, and derives a fingerprint. The depth is quick: the levels and groups that the
 * files show. */
enum status import_derive(const struct import_file *files, size_t count,
                          const struct import_options *options, struct observation_set *out_set,
                          struct fingerprint *out_fp, struct err *err);

#endif
