/* planner_call.h: one call of the planner: its request and its answer. The struct is a plain value
 * of about 14 KB. */
#pragma once

#include "planner/explain.h"
#include "planner/fit.h"
#include "planner/memory_choices.h"
#include "planner/params.h"
#include "planner/split.h"

struct scope_call {
    struct scope_request request;
    struct scope_answer answer;
};
struct placement_call {
    struct placement_request request;
    struct placement_answer answer;
};
struct plan_call {
    struct job_request request;
    struct strategy_answer answer;
};
struct split_call {
    struct split_request request;
    struct split_answer answer;
};
struct explain_call {
    struct explain_request request;
    struct explain_answer answer;
};
struct fit_call {
    struct fit_request request;
    struct fit_answer answer;
};

/* This struct is not a member of struct planner_call, because it would double the size of that
 * struct. No typed function of libreach uses this struct. */
struct memory_call {
    struct memory_request request;
    struct memory_answer answer;
};

struct planner_call {
    enum planner_function function; /* selects the member of the union */
    union {                         /* each begins with its request */
        struct scope_call scope;
        struct placement_call placement;
        struct plan_call plan;
        struct split_call split;
        struct explain_call explain;
        struct fit_call fit;
    };
};
