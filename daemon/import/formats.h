/* formats.h: declares the readers of the two kinds of text that import.c distinguishes, and the
 * readers of lines and numbers of untrusted text (lines.c). The functions are pure and may be
 * called on any thread. */
#pragma once

#include "import/import.h"

/* ---- lines and numbers ---- */

/* A text that is read line by line. */
struct lines {
    const char *file; /* name of the file for messages; borrowed */
    const char *next; /* the remaining text */
    const char *end;
    uint32_t number; /* number of the line at `at`, from 1; 0 before the first line */
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

/* Reads the next line, without "\n" or "\r\n". Returns STATUS_NOT_FOUND, without a message, after
 * the last line. Returns STATUS_INVALID_ARGUMENT if the line is too long or contains control
 * characters. */
enum status lines_next(struct lines *l, struct err *err);

/* Sets the message "FILE, line N: ..." and returns STATUS_INVALID_ARGUMENT. */
enum status lines_wrong(const struct lines *l, struct err *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Moves the next field from `rest` to `*out`: up to `separator`, or to the end. Returns false if
 * there is no further field. */
bool field_cut(struct field *rest, char separator, struct field *out);
/* Returns the field without blanks at both ends. */
struct field field_trim(struct field f);
bool field_is(struct field f, const char *text);
bool field_begins(struct field f, const char *text);

/* Reads a whole number of at most `max`, which must have only digits and no sign. */
bool field_u64(struct field f, uint64_t max, uint64_t *out);
/* Reads a number of at most `max_whole` with up to six digits after the point, without sign or
 * exponent. Writes the exact number of millionths. */
bool field_millionths(struct field f, uint64_t max_whole, uint64_t *out);

/* Reads a number of cycles above 0 and up to IMPORT_MAX_CYCLES. Writes it times
 * PROBE_MEAN_SCALE. */
bool field_cycles(struct field f, uint32_t *out);

/* Writes at most 40 bytes of a field for a message, with '?' for each byte that is not printable.
 * Returns `out`. */
enum { FIELD_TEXT_BYTES = 48 };
const char *field_text(struct field f, char *out);

/* ---- the two kinds of text ---- */

/* The contents of the first line: "#NAME: cuda MAJOR.MINOR[, reduction mode: avg|min]". */
struct import_head {
    char name[96];
    uint32_t compute_major;
    uint32_t compute_minor;
    bool smallest; /* the reduction mode is min: each number is the smallest of several */
};

/* Reads the rest of a curve text, and appends observations of kind MEANS. `l` must be at the line
 * of the strides ("#,64,128,256,"). */
enum status import_read_curves(struct lines *l, struct observation_set *set, struct err *err);

/* Reads the rest of a sharing text, and appends an observation of kind MEAN_PAIRS. `l` must be at
 * the line of the column heads ("# 000 001"). */
enum status import_read_sharing(struct lines *l, const struct import_head *head,
                                struct observation_set *set, struct err *err);
