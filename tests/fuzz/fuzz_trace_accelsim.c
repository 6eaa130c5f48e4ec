/* fuzz_trace_accelsim.c: imports any bytes as a kernel trace of Accel-Sim. An imported trace can be
 * read again and has all records that were counted. */
#include "fuzz_trace.h"

static enum status import(FILE *in, struct rlt_writer *w, struct import_counts *counts,
                          struct err *err)
{
    return import_accelsim_kernel(in, rlt_write_app(w, ""), w, counts, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_trace_import(import, data, size);
    return 0;
}
