/* maybe_json.h: numbers that may be absent, in JSON.
 *
 *     known            "x": 65
 *     unknown          "x": null, "x_reason": "not-measured"
 *     not observable   "x": null, "x_reason": "not-observable: beyond-memory"
 *
 * The reason is the slug of base/maybe.h. An absent number is null, never 0 or -1.
 */
#ifndef REACH_BASE_MAYBE_JSON_H
#define REACH_BASE_MAYBE_JSON_H

#include "base/maybe.h"

#include <jansson.h>
#include <stdbool.h>

/* Adds the field, and its reason where the number is absent. An absent number without a reason is
 * written as not measured. 0, or -1 (as jansson) without memory or where JSON cannot hold the
 * number: 2^63 and above, infinite, not a number. */
int maybe_json_set_u32(json_t *object, const char *name, struct maybe_u32 m);
int maybe_json_set_u64(json_t *object, const char *name, struct maybe_u64 m);
int maybe_json_set_f64(json_t *object, const char *name, struct maybe_f64 m);

/* The reason alone, "beyond-memory" or "not-observable: beyond-memory", for those who render a
 * number in a way of their own. `out` needs MAYBE_JSON_REASON_BYTES; "" where it is known. */
enum { MAYBE_JSON_REASON_BYTES = 48 };
char *maybe_json_reason(enum known known, enum reason reason, char *out, size_t out_size);

/* Reads the field; one that is not there is unknown, not measured. False where it is neither null
 * nor a number of this type and range (floats also read integers), or where a number has a reason.
 * A reason of a newer release reads as not measured. `*out` is then untouched. */
bool maybe_json_get_u32(const json_t *object, const char *name, struct maybe_u32 *out);
bool maybe_json_get_u64(const json_t *object, const char *name, struct maybe_u64 *out);
bool maybe_json_get_f64(const json_t *object, const char *name, struct maybe_f64 *out);

/* "x_reason" for "x", in `out` of MAYBE_JSON_NAME_BYTES. */
enum { MAYBE_JSON_NAME_BYTES = 64 };
char *maybe_json_reason_name(const char *name, char *out, size_t out_size);

#endif
