/* decode.h: from texts of a request to values, strictly. On false `out_problem` names the parameter
 * or the JSON pointer to blame.
 */
#ifndef REACH_API_DECODE_H
#define REACH_API_DECODE_H

#include "api/decode/problem.h"
#include "api/decode/request.h"
#include "fingerprint/fingerprint.h"
#include "placement/explain.h"
#include "placement/split.h"

enum decode_need { DECODE_OPTIONAL = 0, DECODE_REQUIRED };

/* Nesting and number of values of a body, far beyond what any request needs. */
enum { DECODE_MAX_DEPTH = 16, DECODE_MAX_VALUES = 1024 };

/* A size ("80G"); `*out` stays as it is where an optional one is not there. */
bool decode_bytes(const struct request *request, const char *name, enum decode_need need,
                  uint64_t *out, struct problem *out_problem);
/* Decimal digits, least..most; optional. */
bool decode_count(const struct request *request, const char *name, uint64_t least, uint64_t most,
                  uint64_t *out, struct problem *out_problem);
/* A decimal number, above 0 and at most `most`; optional. */
bool decode_real(const struct request *request, const char *name, double most, double *out,
                 struct problem *out_problem);
/* true or false; optional. */
bool decode_flag(const struct request *request, const char *name, bool *out,
                 struct problem *out_problem);
/* Sizes, or numbers, apart by commas: 1 to `most` of them. An optional list that is not there
 * leaves `*out_count` as it is. */
bool decode_sizes(const struct request *request, const char *name, uint32_t most, uint64_t *out,
                  uint32_t *out_count, struct problem *out_problem);
bool decode_reals(const struct request *request, const char *name, uint32_t most, double highest,
                  double *out, uint32_t *out_count, struct problem *out_problem);
bool decode_access(const struct request *request, enum access *out, struct problem *out_problem);
/* What plan, split and explain take: all their parameters. */
bool decode_job(const struct request *request, struct job_request *out,
                struct problem *out_problem);
/* The parameters that decode_job takes, one after the other; NULL behind the last. */
const char *decode_job_param(uint32_t i);
bool decode_split(const struct request *request, struct split_request *out,
                  struct problem *out_problem);
bool decode_explain(const struct request *request, struct explain_request *out,
                    struct problem *out_problem);
/* The number of an observation or a cursor in a path or text: 1..2^63-1. False where it is none. */
bool decode_number(const char *text, int64_t *out);

/* The body of POST fingerprint: nothing, or {"depth": "quick|full|matrix"}. `*out` stays as it is
 * where no depth is named. */
bool decode_depth_body(const struct request *request, enum depth *out, struct problem *out_problem);

#endif
