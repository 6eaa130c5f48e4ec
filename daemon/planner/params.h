/* params.h: the parameters of requests to the planner: one table. HTTP requests are decoded by it
 * (api/decode), reachctl takes its options from it, libreach writes requests by it, and the tables
 * of openapi.yaml, the manual page, the completion of shells and the methods of the Python package
 * are generated from it (`make generated`). A new parameter is one row. Pure; any thread.
 */
#ifndef REACH_PLANNER_PARAMS_H
#define REACH_PLANNER_PARAMS_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum planner_function {
    PLANNER_NONE = 0,
    PLANNER_SCOPE,
    PLANNER_PLACEMENT,
    PLANNER_PLAN,
    PLANNER_SPLIT,
    PLANNER_EXPLAIN,
    PLANNER_MEMORY,
    PLANNER_FIT,
    PLANNER_COUNT
};

/* The type of a member of a request struct, and the text that is its value. 0 is the default. */
enum param_kind {
    PARAM_SIZE = 0,    /* uint64_t: "80G", at least 1 byte */
    PARAM_MAYBE_SIZE,  /* struct maybe_u64: a size or 0, unknown if it is not given */
    PARAM_ACCESS_SIZE, /* uint32_t: the size of one access, at most `most` */
    PARAM_COUNT,       /* uint32_t, 1 .. most */
    PARAM_LONG_COUNT,  /* uint64_t, 1 .. most */
    PARAM_FLAG,        /* bool: "true", "false" */
    PARAM_REAL,        /* double, PARAM_LEAST_REAL .. most */
    PARAM_REAL_OR_0,   /* double: the same, or 0, which is not the default */
    PARAM_COMPLEMENT,  /* double: 1 less the number that is given, 0 .. 1 */
    PARAM_WORD         /* an enum: one of `word` */
};

/* Less of anything means nothing, and what is divided by it would not be finite. */
#define PARAM_LEAST_REAL 0.000001

/* How a function takes a parameter. Items are the allocations or the jobs of a request. */
enum param_form {
    PARAM_ABSENT = 0,
    PARAM_ONE,
    PARAM_ITEMS,      /* one value for each item: it determines how many there are */
    PARAM_EACH,       /* one value for each item, or one for all */
    PARAM_EACH_ALWAYS /* one value for each item */
};

struct param_use {
    enum param_form form;
    size_t offset;      /* in the request, or in an item of it */
    const char *member; /* in the request struct of reach.h; NULL: it is not there */
    const char *needed; /* what to say if it is missing; NULL if it is optional */
    bool unless_alone;  /* a request without any parameter needs it not */
    const char *about;  /* instead of the row's; NULL if there is no other */
};

struct param {
    const char *name;
    enum param_kind kind;
    const char *operand; /* its value on the command line; NULL: a switch */
    double most;
    const char *(*word)(uint32_t i); /* NULL after the last */
    const char *by_default;          /* the value; NULL: `about` says what it is, if anything */
    const char *about;               /* one sentence or two */
    struct param_use uses[PLANNER_COUNT];
};

/* "scope", "placement", .. */
const char *planner_function_name(enum planner_function function);

/* The rows, in the order in which every interface lists them. NULL after the last. */
enum { PARAM_MOST_ROWS = 48 };
const struct param *param_at(uint32_t i);
/* NULL if the function takes no such parameter. */
const struct param *param_find(enum planner_function function, const char *name);

/* The request struct of a function. */
struct param_layout {
    size_t size;
    size_t count_offset; /* of a uint32_t, the number of items */
    size_t items_offset; /* of the first item; 0: it has no items */
    size_t item_size;
    uint32_t most_items;
};
const struct param_layout *param_layout(enum planner_function function);

/* Are the real numbers of a request in range? STATUS_INVALID_ARGUMENT names the parameter. */
enum status param_check(enum planner_function function, const void *request, struct err *err);

#endif
