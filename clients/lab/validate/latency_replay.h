/* latency_replay.h: compares the model with the latency traces of a GPU, load by load. Only one
 * thread may use the module at a time.
 *
 * The model repeats the chases of a measurement in their order. Like the GPU, it keeps its state
 * from one chase to the next. It is flushed after every other probe. A chase is judged if its
 * stride is one entry and if it begins within the last level and ends beyond it.
 *
 * The kernel stores the times of a point before it reads the next point. The page of these stores
 * also needs a translation, so it occupies an entry of one set. Its address is not recorded. The
 * check tries each set that has wrong loads without that page. It takes the set with the fewest
 * wrong loads.
 */
#pragma once

#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "gpu/sim/sim_desc.h"
#include "observe/observe.h"

struct latency_score {
    uint64_t walks, loads; /* numbers of judged walks and loads */
    uint64_t wrong;        /* loads that hit in the model and missed on the GPU, or vice versa */
    uint64_t wrong_alone;  /* wrong loads if the kernel's own page needs no translation */
    uint64_t wrong_fewer, wrong_more; /* wrong loads if the model keeps one recent miss less, and if
                                         it keeps one more */
};

/* The last level of the machine must have equal sets, and recent misses beside the sets. Returns
 * STATUS_NO_MEMORY if out of memory. */
enum status latency_replay(const struct observation_set *set, const struct fingerprint *fp,
                           const struct sim_desc *machine, struct latency_score *out,
                           struct err *err);
