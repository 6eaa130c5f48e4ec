/* encode_plan.h: the planner's answers as JSON. Pure; texts from malloc, the caller's; NULL without
 * memory. */
#ifndef REACH_API_ENCODE_PLAN_H
#define REACH_API_ENCODE_PLAN_H

#include "placement/explain.h"
#include "placement/split.h"
#include "placement/strategy.h"
#include "snapshot/snapshot.h"

char *encode_plan(const struct snapshot_gpu *gpu, const struct job_request *job,
                  const struct strategy_answer *answer, size_t *out_bytes);
char *encode_split(const struct snapshot_gpu *gpu, const struct split_request *request,
                   const struct split_answer *answer, size_t *out_bytes);
char *encode_explain(const struct snapshot_gpu *gpu, const struct explain_request *request,
                     const struct explain_answer *answer, size_t *out_bytes);

#endif
