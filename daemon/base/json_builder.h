/* json_builder.h: builds a JSON object field by field and reports failures at the end, in one
 * place, so that the callers need no check per line.
 *
 *     struct json_builder o;
 *     json_builder_begin(&o);
 *     json_builder_u64(&o, "entries", 65);
 *     json_builder_value(&o, "more", other_to_json(..));   (NULL is a failure, reported at the end)
 *     return json_builder_end(&o);
 */
#ifndef REACH_BASE_JSON_BUILDER_H
#define REACH_BASE_JSON_BUILDER_H

#include "base/maybe.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

struct json_builder {
    json_t *object; /* owned until json_builder_end */
    bool failed;
};

void json_builder_begin(struct json_builder *o);
void json_builder_u64(struct json_builder *o, const char *name,
                      uint64_t v); /* 2^63 and above fail */
void json_builder_real(struct json_builder *o, const char *name, double v); /* infinities fail */
void json_builder_bool(struct json_builder *o, const char *name, bool v);
/* Bytes that are not UTF-8 become '?': one bad text of a driver must not lose the document. */
void json_builder_text(struct json_builder *o, const char *name, const char *v);
/* The text, or null if it is "". */
void json_builder_text_or_null(struct json_builder *o, const char *name, const char *v);
/* Seconds since 1970 as RFC 3339; years beyond 9999 fail. */
void json_builder_time(struct json_builder *o, const char *name, int64_t wall_seconds);
void json_builder_u32_maybe(struct json_builder *o, const char *name, struct maybe_u32 v);
void json_builder_u64_maybe(struct json_builder *o, const char *name, struct maybe_u64 v);
void json_builder_f64_maybe(struct json_builder *o, const char *name, struct maybe_f64 v);
void json_builder_value(struct json_builder *o, const char *name, json_t *take);
/* The object, a new reference; NULL if anything failed (everything is then freed). */
json_t *json_builder_end(struct json_builder *o);

/* For arrays: appends and returns true, or throws both away, sets `*array` to NULL and returns
 * false. A NULL array stays NULL. */
bool json_builder_append(json_t **array, json_t *take);
/* A JSON text for `v`, with the same rule for bad bytes. NULL without memory. */
json_t *json_new_text(const char *v);

/* The text of a document, on one line, with a line feed and a NUL after it, as json_writer.h
 * writes it; `*out_bytes` is its length with the line feed. The caller frees it. NULL (and 0)
 * without memory or value, or with a number that is not finite. Not json_dumps: if memory ends
 * in the middle of a name, jansson 2.14 omits the name and reports no error. */
char *json_render(const json_t *json, size_t *out_bytes);
/* Prints it, one value per line if `indent` is above 0. Not 0: what json_render
 * says, or an error of the file. */
int json_print(const json_t *json, uint32_t indent, FILE *out);

#endif
