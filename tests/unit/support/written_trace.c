/* written_trace.c: see written_trace.h. */
#include "tests/unit/support/written_trace.h"

#include "clients/lab/trace/trace_load.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

enum { LINE = 128 };

void written_trace_begin(struct written_trace *t)
{
    t->out = open_memstream(&t->text, &t->size);
    assert_non_null(t->out);
    t->w = rlt_writer_new(t->out, LINE);
}

struct trace written_trace_load(struct written_trace *t)
{
    struct err err = {0};
    struct trace out;

    assert_int_equal(rlt_writer_end(t->w, NULL), STATUS_OK);
    fclose(t->out);
    FILE *const in = fmemopen(t->text, t->size, "r");
    if (trace_load(in, &out, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    fclose(in);
    free(t->text);
    return out;
}
