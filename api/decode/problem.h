/* problem.h: the reason of a refusal, as a plain value for an RFC 9457 problem document.
 *
 *     {"type": "urn:reachd:problem:invalid-argument", "slug": "invalid-argument",
 *      "title": "The request asks for something that has no meaning.", "status": 400,
 *      "detail": "bytes must be at least one byte, not 0", "instance": "/v1/gpus/0/scope",
 *      "next_step": "Correct the value that the detail names and try again.",
 *      "errors": [{"parameter": "bytes", "detail": "..."}]}
 *
 * `slug` and `title` come from the status table. `errors` is present only if one field is to blame.
 */
#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { PROBLEM_POINTER_BYTES = 96 };

struct snapshot;

struct problem {
    unsigned http_status; /* HTTP status; 0 means the code of `status` (status_info) */
    enum status status;
    const char *slug;      /* slug of the problem; NULL means the text of the status */
    const char *title;     /* title of the problem; NULL means the text of the status */
    const char *next_step; /* what the client can do; NULL means the text of the status */
    const char *parameter; /* query parameter to blame, NULL if there is none */
    bool has_pointer;      /* the body is to blame, at `pointer`; "" is the whole body */
    char pointer[PROBLEM_POINTER_BYTES]; /* RFC 6901 */
    const struct snapshot *gpus; /* borrowed; GPUs whose states the document lists, or NULL */
    int64_t now;                 /* time of `gpus`: wall clock, seconds */
    char detail[sizeof(((struct err *)0)->text)];
};
