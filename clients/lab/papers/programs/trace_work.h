/* trace_work.h: a recorded program as a job of the timed engine. Record i of a warp is iteration i
 * of its loop, and its mask is a branch. A record has the distinct lines of its lanes in order, but
 * not the line of each lane, so the lanes are spread evenly over the lines. A trace contains no
 * program counters, so compaction assumes that the warps of a block run the same instructions. */
#ifndef REACH_CLIENTS_LAB_PAPERS_PROGRAMS_TRACE_WORK_H
#define REACH_CLIENTS_LAB_PAPERS_PROGRAMS_TRACE_WORK_H

#include "base/status.h"
#include "clients/lab/papers/engine/work.h"
#include "clients/lab/trace/trace.h"

/* The job points to itself and to the trace, so it must not be moved. */
struct trace_work {
    const struct trace *trace; /* borrowed */
    struct lab_op op;
    struct lab_work work;
};

/* `gap` is the number of instructions before each access, at most 255, because recorders do not
 * count them. Returns STATUS_NOT_APPLICABLE if the trace touches more than 127 GiB. */
enum status trace_work_set(const struct trace *trace, uint32_t gap, struct trace_work *out,
                           struct err *err);

#endif
