/* report_out.h: prints tables row by row, in any format but SVG (report_chart.h).
 *
 * Texts come from hosts that may be hostile, so each format escapes what it gives a meaning to:
 * control and direction characters for terminals, pipes and markup for Markdown, quotes and what
 * begins a formula for CSV, markup for SVG.
 */
#ifndef REACH_CLIENTS_FLEET_REPORT_OUT_H
#define REACH_CLIENTS_FLEET_REPORT_OUT_H

#include "clients/fleet/report.h"

enum { REPORT_MAX_COLUMNS = 16 };

struct cell {
    enum {
        CELL_NONE = 0, /* "-", null, or nothing */
        CELL_TEXT,
        CELL_COUNT,  /* an integer */
        CELL_REAL,   /* all its digits in JSON and CSV, six elsewhere */
        CELL_PERCENT /* of 100; one digit for people */
    } kind;
    const char *text; /* borrowed */
    double v;         /* counts below 2^53 */
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
};

struct report_out;

/* `out` is borrowed. NULL without memory. */
struct report_out *report_out_new(enum fleet_format format, FILE *out);
void report_out_free(struct report_out *take);

void report_begin(struct report_out *r, const struct report_head *head);
void report_table_begin(struct report_out *r, const struct report_table *table);
/* A cell for each column. `for_people`: a total, say; JSON and CSV leave it out. */
void report_row(struct report_out *r, const struct cell *cells, bool for_people);
/* With sentences below the table; NULL: none. */
void report_table_end(struct report_out *r, const char *note, const char *more);
/* STATUS_IO, STATUS_NO_MEMORY: something of all that could not be written. */
enum status report_end(struct report_out *r, struct err *err);

/* For XML: as text or attribute value; what XML cannot have becomes a question mark. */
void report_put_xml(FILE *out, const char *text);

#endif
