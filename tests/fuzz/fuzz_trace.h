/* fuzz_trace.h: the checks shared by the targets of the trace importers. */
#pragma once

#include "fuzz.h"

#include "clients/lab/trace/import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum status fuzz_import_fn(FILE *in, struct rlt_writer *w, struct import_counts *counts,
                                   struct err *err);

static inline void fuzz_trace_read(char *bytes, size_t size, uint64_t records)
{
    FILE *in = fmemopen(bytes, size, "r");
    struct err err = {0};
    struct rlt_record r;
    uint64_t count = 0;
    REACH_ASSERT(in);
    struct rlt_reader *reader = rlt_reader_new(in, &err);
    REACH_ASSERT(reader);
    while (rlt_read(reader, &r, &err))
        count++;
    REACH_ASSERT(err.status == STATUS_OK && count == records);
    rlt_reader_free(reader);
    fclose(in);
}

static inline void fuzz_trace_import(fuzz_import_fn *import, const uint8_t *data, size_t size)
{
    char *copy = malloc(size + 1);
    char *written = NULL;
    size_t written_size = 0;
    struct import_counts counts = {0};
    struct err err = {0};
    FILE *out = open_memstream(&written, &written_size);
    REACH_ASSERT(copy && out);
    memcpy(copy, data, size);
    FILE *in = size > 0 ? fmemopen(copy, size, "r") : fopen("/dev/null", "re");
    struct rlt_writer *w = rlt_writer_new(out, RLT_MIN_GRANULE);
    REACH_ASSERT(in && w);
    if (import(in, w, &counts, &err) == STATUS_OK)
        REACH_ASSERT(counts.bytes == size);
    else
        REACH_ASSERT(err.status != STATUS_OK && err.text[0] != '\0');
    REACH_ASSERT(rlt_writer_records(w) == counts.records);
    REACH_ASSERT(rlt_writer_end(w, NULL) == STATUS_OK);
    fclose(out);
    fuzz_trace_read(written, written_size, counts.records);
    fclose(in);
    free(written);
    free(copy);
}
