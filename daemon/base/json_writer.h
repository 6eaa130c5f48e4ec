/* json_writer.h: writes JSON straight into a buffer, for answers that are worked out for each
 * request. jansson's way over a tree of values costs tens of microseconds for an answer with a
 * number for each SM; this costs one or two.
 *
 *     struct json_writer t;
 *     json_writer_begin(&t, 2048);
 *     json_writer_open(&t, NULL, '{');
 *     json_writer_u64(&t, "bytes", 65);
 *     json_writer_open(&t, "list", '[');
 *     json_writer_u64(&t, NULL, 1);             (no names inside a list)
 *     json_writer_close(&t, ']');
 *     json_writer_close(&t, '}');
 *     char *text = json_writer_end(&t, &bytes); (NULL where anything failed)
 *
 * What it writes is what jansson writes of the same values, but for real numbers: those have as few
 * digits as are read as the same number, so that 0.911 is not 0.91100000000000003. Names are the
 * program's own: plain ASCII that needs no escape.
 */
#ifndef REACH_BASE_JSON_WRITER_H
#define REACH_BASE_JSON_WRITER_H

#include "base/maybe.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_writer {
    char *text; /* owned until json_writer_end */
    size_t bytes;
    size_t room;
    uint32_t indent; /* blanks a level, each value on a line of its own; 0: all on one line */
    uint32_t depth;
    bool follows; /* something stands before in this object or list */
    bool failed;
};

/* `room` is a guess at the length; more is made as it is needed. */
void json_writer_begin(struct json_writer *t, size_t room);
void json_writer_open(struct json_writer *t, const char *name, char bracket);
void json_writer_close(struct json_writer *t, char bracket);
void json_writer_null(struct json_writer *t, const char *name);
void json_writer_bool(struct json_writer *t, const char *name, bool v);
void json_writer_u64(struct json_writer *t, const char *name, uint64_t v); /* 2^63 and above fail */
void json_writer_real(struct json_writer *t, const char *name, double v);  /* infinities fail */
/* Bytes of a text that is no UTF-8 become '?'. */
void json_writer_text(struct json_writer *t, const char *name, const char *v);
/* A list of numbers; null where one is negative. */
void json_writer_i16s(struct json_writer *t, const char *name, const int16_t *values, size_t count);
/* As maybe.h has it. */
void json_writer_u64_maybe(struct json_writer *t, const char *name, struct maybe_u64 v);
void json_writer_f64_maybe(struct json_writer *t, const char *name, struct maybe_f64 v);
/* The same of a prediction, to six significant digits. */
void json_writer_figure_maybe(struct json_writer *t, const char *name, struct maybe_f64 v);
/* All of a value of jansson's; names and texts in it may be anything. */
void json_writer_value(struct json_writer *t, const char *name, const json_t *v);
/* The text with one line feed at its end, terminated, from malloc: the caller's. */
char *json_writer_end(struct json_writer *t, size_t *out_bytes);

#endif
