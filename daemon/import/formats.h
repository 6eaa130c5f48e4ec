/* formats.h: readers of the two kinds of text that import.c distinguishes (see import.h), and of
 * the lines and numbers of untrusted text (lines.c). The functions are pure and may be called on
 * any thread. */
#ifndef REACH_IMPORT_FORMATS_H
#define REACH_IMPORT_FORMATS_H

#include "import/import.h"

/* ---- lines and numbers ---- */

/* A text, line by line. */
struct lines {
    const char *file; /* its name, for messages; borrowed */
    const char *next; /* the remaining text */
    const char *end;
    uint32_t number; /* number of the line at `at`, from 1; 0 at first */
    const char *at;  /* the line, without its newline; not NUL-terminated */
    size_t bytes;
    bool ended; /* the line ended with a newline */
};

/* A part of a line. */
struct field {
    const char *at;
    size_t bytes;
};

void lines_begin(struct lines *l, const char *file, const char *text, size_t bytes);

/* Reads the next line, without "\n" or "\r\n". Returns STATUS_NOT_FOUND at the end, without a
 * message. Returns STATUS_INVALID_ARGUMENT if the line is too long or contains control
 * characters. */
enum status lines_next(struct lines *l, struct err *err);

/* Sets the message "FILE, line N: ..." and returns STATUS_INVALID_ARGUMENT. */
enum status lines_wrong(const struct lines *l, struct err *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Cuts the next field off `rest`: up to `separator`, or to the end. Returns false if nothing is
 * left. */
bool field_cut(struct field *rest, char separator, struct field *out);
/* Removes blanks at either end. */
struct field field_trim(struct field f);
bool field_is(struct field f, const char *text);
bool field_begins(struct field f, const char *text);

/* Reads a whole number of at most `max`: digits alone, no sign. */
bool field_u64(struct field f, uint64_t max, uint64_t *out);
/* Reads digits, and up to six more after a point, without sign or exponent. The result is exact, in
 * millionths. */
bool field_millionths(struct field f, uint64_t max_whole, uint64_t *out);

/* Reads a number of cycles in PROBE_MEAN_SCALE, above 0 and at most IMPORT_MAX_CYCLES. */
bool field_cycles(struct field f, uint32_t *out);

/* For messages: at most 40 bytes of a field, with '?' for each byte that is not printable. */
enum { FIELD_TEXT_BYTES = 48 };
const char *field_text(struct field f, char *out);

/* ---- the two kinds of text ---- */

/* The contents of the first line: "#NAME: cuda MAJOR.MINOR[, reduction mode: avg|min]". */
struct import_head {
    char name[96];
    uint32_t compute_major;
    uint32_t compute_minor;
    bool smallest; /* reduction mode min: the smallest of several numbers is reported */
};

/* Reads the rest of the text: `l` is at the line of the strides ("#,64,128,256,"). Appends
 * MEANS. */
enum status import_read_curves(struct lines *l, struct observation_set *set, struct err *err);

/* Reads the rest of the text: `l` is at the line of the column heads ("# 000 001"). Appends one
 * MEAN_PAIRS. */
enum status import_read_sharing(struct lines *l, const struct import_head *head,
                                struct observation_set *set, struct err *err);

#endif
