/* written_trace.h: writes a trace to memory and loads it. An error fails the test. */
#pragma once

#include "clients/lab/trace/rlt.h"
#include "clients/lab/trace/trace.h"

#include <stdio.h>

struct written_trace {
    struct rlt_writer *w; /* writes lines of 128 bytes */
    FILE *out;
    char *text;
    size_t size;
};

/* Begins an empty trace. The members of `t` must not move until written_trace_load. */
void written_trace_begin(struct written_trace *t);
/* Ends the trace and returns what a reader loads from it. Free it with trace_free. */
struct trace written_trace_load(struct written_trace *t);
