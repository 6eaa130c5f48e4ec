/* check_traces.h: the model beside the latency traces of a GPU, load by load. Private to reach-lab;
 * one thread.
 *
 * The chases of a measurement are repeated in their order on the model, which keeps its state from
 * one to the next, as the GPU does. It begins anew after any other probe. Judged are walks at the
 * stride of an entry that begin within the last level and go beyond it.
 *
 * Behind each point the kernel stores what it timed, and reads the next. That page is translated
 * too, so it takes room in one set. Which one is not recorded: the sets in which loads come out
 * wrong without it are tried, and the best is taken.
 */
#ifndef REACH_CLIENTS_LAB_CHECK_TRACES_H
#define REACH_CLIENTS_LAB_CHECK_TRACES_H

#include "fingerprint/fingerprint.h"
#include "gpu/sim/sim_desc.h"
#include "observe/observe.h"

struct trace_score {
    uint64_t walks, loads;
    uint64_t wrong;       /* loads that hit in the model and missed on the GPU, or vice versa */
    uint64_t wrong_alone; /* likewise, if nothing but the walks is translated */
    uint64_t wrong_fewer, wrong_more; /* with one translation less and more beside the sets */
};

/* The last level of the machine has equal sets, and translations beside them. STATUS_NO_MEMORY. */
enum status trace_score_of(const struct observation_set *set, const struct fingerprint *fp,
                           const struct sim_desc *machine, struct trace_score *out,
                           struct err *err);

#endif
