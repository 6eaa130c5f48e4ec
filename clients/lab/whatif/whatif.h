/* whatif.h: computes what a traced job costs on a measured GPU, and what would change that. The
 * TLBs of the fingerprint are simulated on the trace. The costs of memory and of a miss are
 * measured numbers of the fingerprint. The time of a job is the time of the busier of memory and
 * translation (docs/planner.md).
 *
 * The same fingerprint, trace and options give the same answer. Any thread. */
#ifndef REACH_CLIENTS_LAB_WHATIF_WHATIF_H
#define REACH_CLIENTS_LAB_WHATIF_WHATIF_H

#include "clients/lab/trace/trace.h"
#include "clients/lab/whatif/whatif_answer.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"

/* STATUS_INCONCLUSIVE if the fingerprint lacks groups, entries or speeds (measure again with depth
 * full); STATUS_INVALID_ARGUMENT if an option is out of range; STATUS_NO_MEMORY. */
enum status whatif_ask(const struct fingerprint *fp, const struct trace *trace,
                       const struct whatif_options *options, struct whatif_answer *out,
                       struct err *err);

#endif
