/* launch_cost.h: predicts the time of a recorded launch on a measured GPU, and the time that other
 * strategies and other kinds of memory would take.
 *
 * A launch takes as long as its busiest resource: memory of the device, translation, or the link to
 * other memory. What-if counts the misses of accesses at random in device memory. Accesses in order
 * miss so rarely that their misses do not count. Random accesses to host memory miss a table
 * whose entries together have the reach of that kind of memory.
 *
 * A launch is a part of a job that repeats it, so the TLBs are full when it begins. */
#pragma once

#include "clients/profile/costing.h"

const char *access_order_name(enum access_order order); /* "unknown", "in-order", "at-random" */

/* Reads the trace of the launch. Returns STATUS_IO if the trace cannot be opened, the errors of
 * access_pattern_read and whatif_ask, and STATUS_NOT_APPLICABLE if too many accesses are missing
 * from the trace. */
enum status launch_cost_predict(const struct launch_context *context,
                                const struct recording_launch *l, struct launch_cost *out,
                                struct err *err);

/* Writes the trace from which the misses in device memory are counted, or the whole trace if there
 * is no random access to device memory. Returns the errors of launch_cost_predict. */
enum status launch_cost_write_trace(const struct launch_context *context,
                                    const struct recording_launch *l, FILE *out, struct err *err);
