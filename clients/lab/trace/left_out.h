/* left_out.h: prints how many accesses to global memory a trace lacks. */
#ifndef REACH_CLIENTS_LAB_TRACE_LEFT_OUT_H
#define REACH_CLIENTS_LAB_TRACE_LEFT_OUT_H

#include "base/json_writer.h"
#include "clients/lab/trace/rlt.h"

/* Prints at most two lines: accesses that have no record, and accesses that the recorder lost.
 * `records` are those that the trace has. */
void left_out_print(const struct rlt_left_out *l, uint64_t records, FILE *out);
/* Writes "left_out": {"share", "copies", "textures", "unknown", "lost"} */
void left_out_write(struct json_writer *t, const struct rlt_left_out *l, uint64_t records);

#endif
