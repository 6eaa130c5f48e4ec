/* trace_regions.h: moves the addresses of a trace together. Only trace_load.c includes this header.
 */
#ifndef REACH_CLIENTS_LAB_TRACE_TRACE_REGIONS_H
#define REACH_CLIENTS_LAB_TRACE_TRACE_REGIONS_H

#include "clients/lab/trace/number_set.h"
#include "clients/lab/trace/trace.h"

/* Sets the units, the range and the regions of `t`. `lines` contains addresses. `chunks` contains
 * the number of every chunk that a line touches; it is changed. */
enum status trace_regions_set(struct trace *t, struct number_set *chunks, const uint64_t *lines,
                              const struct rlt_allocation *allocations, uint32_t allocation_count,
                              struct err *err);

#endif
