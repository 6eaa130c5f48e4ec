/* params.h: the table of the parameters of requests to the planner. It is used to decode HTTP
 * requests (api/decode), for the options of reachctl, and to write requests in libreach. The tables
 * of openapi.yaml, the manual page, the completion of shells and the methods of the Python package
 * are generated from it (`make generated`). A new parameter is one row. The functions are pure and
 * may be called on any thread. */
#pragma once

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

/* The type of a member of a request struct, and the form of its value in text. The value 0 stands
 * for the default. */
enum param_kind {
    PARAM_SIZE = 0,    /* uint64_t: "80G", at least 1 byte */
    PARAM_MAYBE_SIZE,  /* struct maybe_u64: a size or 0; unknown if not given */
    PARAM_ACCESS_SIZE, /* uint32_t: the size of one access, at most `most` */
    PARAM_COUNT,       /* uint32_t, 1 .. most */
    PARAM_LONG_COUNT,  /* uint64_t, 1 .. most */
    PARAM_FLAG,        /* bool: "true", "false" */
    PARAM_REAL,        /* double, PARAM_LEAST_REAL .. most */
    PARAM_REAL_OR_0,   /* double: PARAM_LEAST_REAL .. most, or 0, which differs from the default */
    PARAM_COMPLEMENT,  /* double: 1 less the given number, 0 .. 1 */
    PARAM_WORD         /* an enum: one of `word` */
};

/* The smallest real number. A smaller divisor would give quotients that are not finite. */
#define PARAM_LEAST_REAL 0.000001

/* The way in which a function takes a parameter. Items are the allocations or the jobs of a
 * request. */
enum param_form {
    PARAM_ABSENT = 0,
    PARAM_ONE,
    PARAM_ITEMS,      /* one value for each item, which determines the number of items */
    PARAM_EACH,       /* one value for each item, or one for all */
    PARAM_EACH_ALWAYS /* one value for each item */
};

struct param_use {
    enum param_form form;
    size_t offset;      /* offset in the request, or in an item of it */
    const char *member; /* name in the request struct of reach.h, or NULL */
    const char *needed; /* error message if the parameter is missing; NULL if it is optional */
    bool unless_alone;  /* true if a request without any parameters is valid */
    const char *about;  /* description that replaces the description of the row, or NULL */
};

struct param {
    const char *name;
    enum param_kind kind;
    const char *operand; /* name of the value on the command line; NULL for a switch */
    double most;
    const char *(*word)(uint32_t i); /* returns NULL after the last word */
    const char *by_default;          /* default value; if NULL, `about` may describe the default */
    const char *about;               /* description in one or two sentences */
    struct param_use uses[PLANNER_COUNT];
};

/* "scope", "placement", .. */
const char *planner_function_name(enum planner_function function);

/* Returns row `i`, or NULL after the last row. Every interface lists the rows in this order. */
enum { PARAM_MOST_ROWS = 48 };
const struct param *param_at(uint32_t i);
/* Returns the row of a parameter, or NULL if the function has no such parameter. */
const struct param *param_find(enum planner_function function, const char *name);

/* The request struct of a function. */
struct param_layout {
    size_t size;
    size_t count_offset; /* offset of a uint32_t, the number of items */
    size_t items_offset; /* offset of the first item; 0 if it has no items */
    size_t item_size;
    uint32_t most_items;
};
const struct param_layout *param_layout(enum planner_function function);

/* Checks that the real numbers of a request are in range. Returns STATUS_INVALID_ARGUMENT, with the
 * parameter in the message, if one is not. */
enum status param_check(enum planner_function function, const void *request, struct err *err);
