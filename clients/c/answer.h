/* answer.h: one answer of the API: its body, its provenance, and its fields in the structs of
 * reach.h. An answer does not change, and any thread may read it. */
#pragma once

#include "clients/c/answer_content.h"

#include "snapshot/snapshot.h"

struct reach_answer {
    struct answer_content *content; /* held */
    uint32_t http_status;
    enum reach_source source;
    uint64_t confirmed_ms;              /* CLOCK_MONOTONIC */
    struct reach_provenance provenance; /* provenance of the content, but with a newer `stale` */
};

/* The source of an answer. */
struct answer_origin {
    enum answer_kind kind; /* kind of the body if the HTTP status is 200 */
    uint32_t http_status;
    enum reach_source source;
    uint64_t confirmed_ms;
    /* The plan and its GPU, if the planner made the plan in this process. answer_new always takes
     * ownership of the plan. */
    struct planner_call *call;
    const struct snapshot_gpu *gpu;
};

/* Takes the body (terminated), and fills and checks the fields from the call or the body. Returns
 * REACH_PROTOCOL if the body is not of the kind in `origin`. A body of an HTTP status other than
 * 200 has no fields. */
enum reach_status answer_new(const struct answer_origin *origin, char *take, size_t bytes,
                             struct reach_answer **out, struct reach_error *error);

/* Does the same with content that is also held elsewhere. */
enum reach_status answer_share(const struct answer_origin *origin, struct answer_content *content,
                               struct reach_answer **out, struct reach_error *error);

/* Returns the kind of the body that a successful GET of this target returns. */
enum answer_kind answer_kind_from_target(const char *target);

/* decode.c: fills the fields of the content's kind from its JSON, and checks them. Returns
 * REACH_PROTOCOL with the name of the field, or REACH_NO_MEMORY. */
enum reach_status decode_answer(struct answer_content *answer, struct reach_error *error);
/* planned.c: fills the same fields from the plan, the `call` of the content. */
enum reach_status planned_answer(struct answer_content *answer, const struct snapshot_gpu *gpu,
                                 struct reach_error *error);
/* check.c: checks the relations between the fields. Returns REACH_PROTOCOL if one is violated. */
enum reach_status answer_check(const struct answer_content *answer, struct reach_error *error);
/* planned.c: fills the ranges of the passes of a plan over one allocation, derived from its
 * scope_bytes. */
void answer_set_scopes(struct answer_content *answer, struct reach_plan *plan);
