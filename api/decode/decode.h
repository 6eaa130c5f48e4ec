/* decode.h: converts the texts of a request to values, strictly. A function that returns false has
 * filled the error or the problem. An error names the query parameter (err.field), and a problem
 * contains the JSON pointer. The functions are pure and may be called on any thread.
 */
#pragma once

#include "api/decode/planner_call.h"
#include "api/decode/problem.h"
#include "api/decode/request.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"

/* Limits of nesting and of values in a body, far above the needs of any request. */
enum { DECODE_MAX_DEPTH = 16, DECODE_MAX_VALUES = 1024 };

/* Decodes an optional decimal number from 1 to `most`. */
bool decode_count(const struct request *request, const char *name, uint64_t most, uint64_t *out,
                  struct err *err);
/* Decodes the page of a list whose newest element is first. The parameter "limit" is 1 to 1000, and
 * 100 by default. The parameter "cursor" is the end of the previous page; 0 means the first
 * page. */
bool decode_page(const struct request *request, uint32_t *out_limit, int64_t *out_cursor,
                 struct err *err);
/* Decodes the request of a function of the planner. `out` is the request struct of that function,
 * which param_layout describes. Missing parameters are 0. */
bool decode_planner_request(const struct request *request, enum planner_function function,
                            void *out, struct err *err);
/* Returns whether the value of this refused parameter is well-formed. A well-formed value fits its
 * schema in openapi.yaml, but its meaning is impossible. Returns false if `name` is NULL or the
 * request does not have the parameter. */
bool decode_is_well_formed(const struct request *request, enum planner_function function,
                           const char *name);
/* Decodes the number of an observation in a path, which is 1 to 2^63 - 1. Returns false if the text
 * is not such a number. */
bool decode_number(const char *text, int64_t *out);

/* Decodes the body of POST measurements: nothing, or {"depth": "quick|full|memory|matrix"}. If the
 * body names no depth, `*out` is unchanged. (decode_body.c) */
bool decode_depth_body(const struct request *request, enum depth *out, struct problem *out_problem);

/* Returns how well the value of an Accept field matches `type`, such as "text/csv", in thousandths.
 * The result is the weight of the most exact range that covers `type` (RFC 9110, section 12.5.1). A
 * NULL field accepts every type. Returns ACCEPT_NOT if no range covers `type`. (accept.c) */
enum { ACCEPT_NOT = -1 };
int accept_weight(const char *accept, const char *type);
