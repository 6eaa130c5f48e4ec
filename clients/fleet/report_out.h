/* report_out.h: prints tables row by row, and the lines of a chart.
 *
 * Texts come from hosts that may be hostile, so each format escapes what it gives a meaning to:
 * control and direction characters for terminals, pipes and markup for Markdown, quotes and what
 * begins a formula for CSV, markup for SVG.
 */
#ifndef REACH_CLIENTS_FLEET_REPORT_OUT_H
#define REACH_CLIENTS_FLEET_REPORT_OUT_H

#include "clients/fleet/db.h"

#include <stdio.h>

enum { REPORT_MAX_COLUMNS = 16 };

enum fleet_format {
    FLEET_FORMAT_TABLE = 0,
    FLEET_FORMAT_JSON,
    FLEET_FORMAT_CSV,
    FLEET_FORMAT_MARKDOWN,
    FLEET_FORMAT_HTML, /* a page of all reports, or of some, that needs nothing else */
    FLEET_FORMAT_COUNT
};
/* What is the same on every page. */
struct report_head {
    int64_t survey;
    char at[40];
    int64_t gpus; /* that count */
    int64_t hosts;
    bool simulated; /* are some? */
    bool measured;  /* are some that are not? */
};

struct report_table {
    const char *name;                        /* of the report: "signatures" */
    const char *part;                        /* of its parts, if there are several: "counts"; "" */
    const char *title;                       /* for people */
    const char *columns[REPORT_MAX_COLUMNS]; /* NULL after the last */
    /* What the values of a column are: 't' text, 'c' an integer, 'r' a number (all its digits in
     * JSON and CSV, six elsewhere), 'p' a number of 100 (one digit for people), 'a' two of a row:
     * a text, or else a number. */
    char kinds[REPORT_MAX_COLUMNS];
};

/* Begin with the first two; the rest is zero and belongs to report_out.c. */
struct report_out {
    FILE *out; /* borrowed */
    enum fleet_format format;
    const struct report_table *table; /* the current one, borrowed */
    uint64_t rows;                    /* of this table */
    uint32_t tables;                  /* so far */
    bool no_memory;
    FILE *held; /* rows held back for a terminal, a line for each of their cells */
    char *held_text;
    size_t held_bytes;
    bool numeric[REPORT_MAX_COLUMNS]; /* aligned to the right */
    int widths[REPORT_MAX_COLUMNS];
};

void report_begin(struct report_out *r, const struct report_head *head);
void report_table_begin(struct report_out *r, const struct report_table *table);
/* Texts and NULLs, as a query gives them. `for_people`: a total, say; JSON and CSV leave it out. */
void report_row(struct report_out *r, const char *const *values, bool for_people);
/* With sentences below the table; NULL: none. */
void report_table_end(struct report_out *r, const char *note, const char *more);
/* Ends what `so_far` has become of it, and frees. STATUS_IO, STATUS_NO_MEMORY: something of all
 * that could not be written. */
enum status report_end(struct report_out *r, enum status so_far, struct err *err);

#endif
