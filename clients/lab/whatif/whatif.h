/* whatif.h: computes the cost of a traced job on a measured GPU, and the effect of changes. The
 * TLBs of the fingerprint are simulated on the trace. The costs of memory and of a miss are
 * measured numbers of the fingerprint. The time of a job is the longer of memory time and
 * translation time (docs/planner.md).
 *
 * The same fingerprint, trace and options give the same answer. The functions may be called on any
 * thread. */
#pragma once

#include "clients/lab/trace/trace.h"
#include "clients/lab/whatif/whatif_answer.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"

/* Returns STATUS_INCONCLUSIVE if the fingerprint lacks groups, entries or speeds (measure again
 * with depth full). Returns STATUS_INVALID_ARGUMENT if an option is out of range, and
 * STATUS_NO_MEMORY if out of memory. */
enum status whatif_ask(const struct fingerprint *fp, const struct trace *trace,
                       const struct whatif_options *options, struct whatif_answer *out,
                       struct err *err);
