/* left_out.h: prints the number of accesses to global memory that a trace lacks. */
#ifndef REACH_CLIENTS_LAB_TRACE_LEFT_OUT_H
#define REACH_CLIENTS_LAB_TRACE_LEFT_OUT_H

#include "base/json_writer.h"
#include "clients/lab/trace/rlt.h"

/* Prints at most two lines: accesses that have no record, and accesses that the recorder lost.
 * `records` is the number of records in the trace. */
void left_out_print(const struct rlt_left_out *l, uint64_t records, FILE *out);
/* Writes "left_out": {"share", "copies", "textures", "unknown", "lost"} */
void left_out_write(struct json_writer *t, const struct rlt_left_out *l, uint64_t records);

#endif
