/* predict.h: reads a fingerprint's throughput curve at a size that was not measured. Pure; any
 * thread. Part of placement. */
#ifndef REACH_PLANNER_PREDICT_H
#define REACH_PLANNER_PREDICT_H

#include "fingerprint/fingerprint.h"

enum predict_column { PREDICT_NAIVE = 0, PREDICT_BY_GROUP };

/* GB/s of random 128-byte reads over `bytes`. Unknown, with the reason, where no curve was measured
 * or the size is beyond it. */
struct maybe_f64 predict_gbps(const struct throughput *t, enum predict_column column,
                              uint64_t bytes);

#endif
