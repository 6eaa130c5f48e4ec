/* fuzz_trace_csv.c: imports any bytes as rows of addresses. An imported trace can be read again and
 * has all records that were counted. */
#include "fuzz_trace.h"

static enum status import(FILE *in, struct rlt_writer *w, struct import_counts *counts,
                          struct err *err)
{
    return import_csv(in, w, counts, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_trace_import(import, data, size);
    return 0;
}
