/* import.h: converts published measurements of others to observations. The functions are pure.
 *
 * The input is the output of the public benchmark cuda-gpu-tlb (Karnagel and Werner 2017). It has
 * two kinds of text:
 *
 *   curve    TLB-Test-*.csv                        sharing    TLBsharing-STRIDE-PAGES.txt
 *     #NAME: cuda 3.7, reduction mode: avg           #NAME: cuda 3.7
 *     #,1024,2048,4096,         strides in KiB       , reduction mode: avg
 *     48,249,249,240,           MiB, mean cycles     #----- absolute values -----
 *     49,250,,,                                      #   000 001
 *                                                    000 284 276      row: the SM that is timed
 *                                                    001 279 287
 *
 * The stride and the number of pages of a sharing text are in the name of its file. The second part
 * of a sharing text is not read: it has marks that the benchmark derived from the numbers.
 *
 * The texts are not trusted. Every line is checked, and all numbers and sizes have limits. An error
 * (STATUS_INVALID_ARGUMENT) contains the file and the line.
 */
#pragma once

#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

enum {
    IMPORT_MAX_FILES = 64,
    IMPORT_MAX_FILE_BYTES = 16 << 20,
    IMPORT_MAX_LINE_BYTES = 16384, /* a line with 512 SMs has 4 KB */
    IMPORT_MAX_ROWS = 65536,       /* largest number of rows of one curve file */
    IMPORT_MAX_STRIDES = 24,       /* largest number of strides of one curve file */
    IMPORT_MAX_STRIDE_KIB = 4 << 20,
    IMPORT_MAX_CYCLES = 1000000
};

/* One file, already in memory. */
struct import_file {
    const char *name; /* path or name; terminated */
    const char *text; /* content of the file; any bytes without a terminating NUL */
    size_t bytes;
};

struct import_options {
    const char *gpu_name; /* name for the GPU; NULL means the name in the files */
    int64_t imported_at;  /* seconds since 1970, UTC; the files have no time of measurement */
};

/* Reads 1..IMPORT_MAX_FILES files about one GPU into `*out`, which the caller must free with
 * observation_set_free. The GPU has the origin imported, and "IMPORTED-" with a hash of its name as
 * its UUID. So it is never confused with an attached GPU, and imports with the same name belong to
 * the same GPU. On failure `*out` is empty. Returns STATUS_INVALID_ARGUMENT or STATUS_NO_MEMORY. */
enum status import_read(const struct import_file *files, size_t count,
                        const struct import_options *options, struct observation_set *out,
                        struct err *err);

/* Reads files like import_read, and derives a fingerprint of depth quick, with the levels and
 * groups that the files show. */
enum status import_derive(const struct import_file *files, size_t count,
                          const struct import_options *options, struct observation_set *out_set,
                          struct fingerprint *out_fp, struct err *err);
