/* report_out.h: prints tables row by row.
 *
 * Texts come from hosts that may be hostile, so each format escapes the characters that have a
 * meaning in it. These are control and direction characters for terminals, pipes and markup for
 * Markdown, and markup for HTML. For CSV they are quotes and the beginning of a formula. */
#pragma once

#include "clients/fleet/db.h"

#include <stdio.h>

enum { REPORT_MAX_COLUMNS = 16 };

enum fleet_format {
    FLEET_FORMAT_TABLE = 0,
    FLEET_FORMAT_JSON,
    FLEET_FORMAT_CSV,
    FLEET_FORMAT_MARKDOWN,
    FLEET_FORMAT_HTML, /* a self-contained page of all or some reports */
    FLEET_FORMAT_COUNT
};
/* The head of a report. */
struct report_head {
    int64_t survey;
    char at[40];
    int64_t gpus; /* number of counted GPUs */
    int64_t hosts;
    bool simulated; /* some GPUs are simulated */
    bool measured;  /* some GPUs are not simulated */
};

struct report_table {
    const char *name;  /* name of the report: "signatures" */
    const char *part;  /* name of the part, "counts", or "" if there is one part */
    const char *title; /* for people */
    const char *columns[REPORT_MAX_COLUMNS]; /* ends with NULL */
    /* The kind of each column. 't' is a text, 'c' is an integer, and 'p' is a percentage with one
     * digit for people. 'r' is a number with all digits in JSON and CSV, and six digits elsewhere.
     * 'a' is a text and a number in two values of a row; the number is printed if the text is NULL.
     */
    char kinds[REPORT_MAX_COLUMNS];
};

/* The caller sets the first two members; the other members are zero and belong to report_out.c. */
struct report_out {
    FILE *out; /* borrowed */
    enum fleet_format format;
    const struct report_table *table; /* the current table, borrowed */
    uint64_t rows;                    /* rows of this table */
    uint32_t tables;                  /* so far */
    bool no_memory;
    FILE *held; /* rows held back for a terminal, one line per cell */
    char *held_text;
    size_t held_bytes;
    bool numeric[REPORT_MAX_COLUMNS]; /* columns that are aligned to the right */
    int widths[REPORT_MAX_COLUMNS];
};

void report_begin(struct report_out *r, const struct report_head *head);
void report_table_begin(struct report_out *r, const struct report_table *table);
/* Prints a row of texts and NULLs, the form that a query returns. JSON and CSV omit a row
 * `for_people`, such as a total. */
void report_row(struct report_out *r, const char *const *values, bool for_people);
/* Ends a table, with up to two sentences below it. NULL prints nothing. */
void report_table_end(struct report_out *r, const char *note, const char *more);
/* Ends the output and frees its memory. Returns `so_far` if that is an error, and otherwise
 * STATUS_IO or STATUS_NO_MEMORY if any part could not be written. */
enum status report_end(struct report_out *r, enum status so_far, struct err *err);
