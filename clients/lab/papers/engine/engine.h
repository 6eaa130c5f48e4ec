/* engine.h: the timed engine. The cores of a simulated GPU run a job instruction by instruction,
 * with TLBs, page walks and caches in the path of each load. The machines are described in papers,
 * so all numbers are simulated.
 *
 * There is no loop over cycles. Each core has a heap of events, and the core with the earliest
 * event runs next. Instructions without memory do not use shared state, so a core may issue them
 * ahead of other cores. A warp issues in order and waits for each of its loads. Times are integers
 * in cycles of the cores. The result depends only on the arguments. A run uses one thread; runs are
 * independent. */
#pragma once

#include "base/status.h"
#include "clients/lab/papers/engine/job.h"
#include "clients/lab/papers/engine/machine_desc.h"

struct lab_result {
    uint64_t cycles; /* cycles until the last core ends */
    struct lab_counts all;
};

/* Runs all blocks of the job. Core c runs blocks c, c + cores, and so on. Returns STATUS_NO_MEMORY
 * if out of memory. Returns STATUS_INVALID_ARGUMENT if the machine is too large, or if the warps of
 * a core are not a multiple of the warps of a block. */
enum status lab_engine_run(const struct lab_machine *machine, const struct lab_job *job,
                           struct lab_result *out, struct err *err);
