/* lines.h: lines and numbers of untrusted text. Pure; any thread. */
#ifndef REACH_IMPORT_LINES_H
#define REACH_IMPORT_LINES_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* A text, line by line. */
struct lines {
    const char *file; /* its name, for messages; borrowed */
    const char *next; /* the text that is left */
    const char *end;
    uint32_t number; /* of the line below, from 1; 0 at first */
    const char *at;  /* the line, without its end; not terminated */
    size_t bytes;
    bool ended; /* it ended with a newline */
};

/* A part of a line. */
struct field {
    const char *at;
    size_t bytes;
};

void lines_begin(struct lines *l, const char *file, const char *text, size_t bytes);

/* The next line, without "\n" or "\r\n". STATUS_NOT_FOUND at the end, without a message.
 * STATUS_INVALID_ARGUMENT if the line is too long or contains control characters. */
enum status lines_next(struct lines *l, struct err *err);

/* "FILE, line N: ..." with STATUS_INVALID_ARGUMENT. */
enum status lines_wrong(const struct lines *l, struct err *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Cuts the next field off `rest`: up to `separator`, or to the end. False if nothing is left. */
bool field_cut(struct field *rest, char separator, struct field *out);
/* Without blanks at either end. */
struct field field_trim(struct field f);
bool field_is(struct field f, const char *text);
bool field_begins(struct field f, const char *text);

/* A whole number of digits alone, no sign, at most `max`. */
bool field_u64(struct field f, uint64_t max, uint64_t *out);
/* Digits, and up to six more after a point, no sign, no exponent: in millionths, exactly. */
bool field_millionths(struct field f, uint64_t max_whole, uint64_t *out);

/* Reads a number of cycles in PROBE_MEAN_SCALE, above 0 and at most IMPORT_MAX_CYCLES. */
bool field_cycles(struct field f, uint32_t *out);

/* For messages: at most 40 bytes of a field, with '?' for what is not printable. */
enum { FIELD_TEXT_BYTES = 48 };
const char *field_text(struct field f, char *out);

#endif
