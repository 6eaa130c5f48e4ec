/* decode.h: strict conversion of the texts of a request to values. A function that returns false
 * has filled the error, which names the query parameter (err.field), or the problem, which names
 * the JSON pointer. Pure; any thread.
 */
#ifndef REACH_API_DECODE_DECODE_H
#define REACH_API_DECODE_DECODE_H

#include "api/decode/planner_call.h"
#include "api/decode/problem.h"
#include "api/decode/request.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"

/* The most that a body may have of nesting and of values, far more than any request needs. */
enum { DECODE_MAX_DEPTH = 16, DECODE_MAX_VALUES = 1024 };

/* Decimal digits, 1 .. most; optional. */
bool decode_count(const struct request *request, const char *name, uint64_t most, uint64_t *out,
                  struct err *err);
/* A page of a list, newest first: its "limit" (1..1000, default 100), and the "cursor" at which
 * the page before ended (0: none). */
bool decode_page(const struct request *request, uint32_t *out_limit, int64_t *out_cursor,
                 struct err *err);
/* The request of a function of the planner: `out` is its struct, as param_layout describes it. What
 * a request leaves out is 0. */
bool decode_planner_request(const struct request *request, enum planner_function function,
                            void *out, struct err *err);
/* Is the value of this parameter well-formed although it was refused? It then fits its schema in
 * openapi.yaml, and means something that cannot be. False for NULL, and if it is missing. */
bool decode_is_well_formed(const struct request *request, enum planner_function function,
                           const char *name);
/* The number of an observation in a path: 1..2^63-1. False if it is not one. */
bool decode_number(const char *text, int64_t *out);

/* The body of POST measurements: nothing, or {"depth": "quick|full|memory|matrix"}. `*out` is
 * unchanged if no depth is named. (decode_body.c) */
bool decode_depth_body(const struct request *request, enum depth *out, struct problem *out_problem);

/* How well the value of an Accept field (NULL: anything) matches `type`, such as "text/csv", in
 * thousandths: the weight of the most exact range that covers it (RFC 9110, section 12.5.1).
 * ACCEPT_NOT if none does. (accept.c) */
enum { ACCEPT_NOT = -1 };
int accept_weight(const char *accept, const char *type);

#endif
