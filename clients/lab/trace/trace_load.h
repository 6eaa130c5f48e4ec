/* trace_load.h: reads a whole .rlt file. */
#pragma once

#include "clients/lab/trace/trace.h"

/* Returns STATUS_CORRUPT if the file is damaged and STATUS_NO_MEMORY if out of memory. Returns
 * STATUS_NOT_APPLICABLE if the trace has no record, more than 2^32 lines, or touches more than 16
 * TiB. Free `out` with trace_free in every case. */
enum status trace_load(FILE *in, struct trace *out, struct err *err);
