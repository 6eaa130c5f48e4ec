/* encode_plan.h: the planner's answers as JSON. Pure; new references, NULL without memory. */
#ifndef REACH_API_ENCODE_PLAN_H
#define REACH_API_ENCODE_PLAN_H

#include "placement/explain.h"
#include "placement/split.h"
#include "placement/strategy.h"
#include "snapshot/snapshot.h"

#include <jansson.h>

json_t *encode_plan(const struct snapshot_gpu *gpu, const struct job_request *job,
                    const struct strategy_answer *answer);
json_t *encode_split(const struct snapshot_gpu *gpu, const struct split_request *request,
                     const struct split_answer *answer);
json_t *encode_explain(const struct snapshot_gpu *gpu, const struct explain_request *request,
                       const struct explain_answer *answer);

#endif
