/* json_writer.h: writes JSON into a buffer, for answers that are computed per request. A tree of
 * jansson's values costs tens of microseconds for an answer with a number per SM; the writer takes
 * one or two.
 *
 *     struct json_writer t;
 *     json_writer_begin(&t, 2048);
 *     json_writer_open(&t, NULL, '{');
 *     json_writer_u64(&t, "bytes", 65);
 *     json_writer_open(&t, "list", '[');
 *     json_writer_u64(&t, NULL, 1);             (no names inside a list)
 *     json_writer_close(&t, ']');
 *     json_writer_close(&t, '}');
 *     char *text = json_writer_end(&t, &bytes); (NULL if anything failed)
 *
 * jansson would write the same text, except for real numbers: these have the fewest digits that are
 * read as the same number, so that 0.911 is not 0.91100000000000003. Names are the program's own:
 * ASCII that needs no escape.
 */
#pragma once

#include "base/maybe.h"
#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json_writer {
    char *text; /* the text so far; owned until json_writer_end */
    size_t bytes;
    size_t room;
    uint32_t indent; /* blanks per level, one value per line; 0 means all on one line */
    uint32_t depth;
    bool sorted; /* the members of each object are sorted by name, all on one line; the depth must
                    be below 64 */
    uint64_t objects; /* if sorted: bit k is set if level k is an object */
    size_t *members;  /* if sorted: where the members of the open objects begin; owned until
                         json_writer_end */
    size_t member_count;
    size_t member_room;
    bool follows; /* a value was already written in this object or list */
    bool named;   /* the name of the next value was written */
    bool failed;
};

/* Begins a text. `room` is an estimate of its length in bytes; the buffer grows. */
void json_writer_begin(struct json_writer *t, size_t room);
void json_writer_open(struct json_writer *t, const char *name, char bracket);
void json_writer_close(struct json_writer *t, char bracket);
void json_writer_null(struct json_writer *t, const char *name);
void json_writer_bool(struct json_writer *t, const char *name, bool v);
void json_writer_u64(struct json_writer *t, const char *name, uint64_t v); /* 2^63 and above fail */
void json_writer_i64(struct json_writer *t, const char *name, int64_t v);
void json_writer_real(struct json_writer *t, const char *name, double v); /* infinities fail */
/* Bytes that are not UTF-8 become '?', so that one bad text of a driver does not lose the
 * document. */
void json_writer_text(struct json_writer *t, const char *name, const char *v);
/* Writes the text, or null if it is "". */
void json_writer_text_or_null(struct json_writer *t, const char *name, const char *v);
/* Writes seconds since 1970 as RFC 3339. Years beyond 9999 fail. */
void json_writer_time(struct json_writer *t, const char *name, int64_t wall_seconds);
/* Writes the time, or null if it is 0. */
void json_writer_time_or_null(struct json_writer *t, const char *name, int64_t wall_seconds);
/* Writes a list of numbers. A negative number is written as null. */
void json_writer_i16s(struct json_writer *t, const char *name, const int16_t *values, size_t count);
void json_writer_u32s(struct json_writer *t, const char *name, const uint32_t *values,
                      size_t count);
/* Write numbers that may be absent in the form of maybe.h. */
void json_writer_u32_maybe(struct json_writer *t, const char *name, struct maybe_u32 v);
void json_writer_u64_maybe(struct json_writer *t, const char *name, struct maybe_u64 v);
void json_writer_f64_maybe(struct json_writer *t, const char *name, struct maybe_f64 v);
/* Writes a prediction like json_writer_f64_maybe, rounded to six significant digits. */
void json_writer_figure_maybe(struct json_writer *t, const char *name, struct maybe_f64 v);
/* Writes a value of jansson. Its names and texts may have any characters. */
void json_writer_value(struct json_writer *t, const char *name, const json_t *v);
/* Returns the text, terminated, with a line feed at its end. The caller frees it. */
char *json_writer_end(struct json_writer *t, size_t *out_bytes);
/* Ends the text and prints it. Returns STATUS_NO_MEMORY if anything failed before, STATUS_IO if
 * printing fails. */
enum status json_writer_print(struct json_writer *t, FILE *out, struct err *err);
/* Ends the text and discards it. */
void json_writer_discard(struct json_writer *t);

/* Returns the text of one value in the form of json_writer_end, or NULL if memory ran out or `v` is
 * NULL. Do not use json_dumps: if memory ends in the middle of a name, jansson 2.14 omits the name
 * and reports no error. */
char *json_writer_render(const json_t *v, size_t *out_bytes);
