/* text.h: numbers and tables for people. */
#ifndef REACHCTL_TEXT_H
#define REACHCTL_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { TEXT_CELL_BYTES = 96, TEXT_MAX_COLUMNS = 12 };

/* All of these write to `out`, which has TEXT_CELL_BYTES, and return it. A number that is not there
 * reads "not sure (not-measured)", or "not observable (beyond-memory)"; "-" where it has no
 * meaning. */

/* "64 GiB" */
char *text_size(const json_t *object, const char *name, char *out);
/* "65" */
char *text_count(const json_t *object, const char *name, char *out);
/* "3950 GB/s", "212.5 cycles": `digits` behind the point, then `unit`, which may be "". */
char *text_real(const json_t *object, const char *name, int digits, const char *unit, char *out);
/* A string; "-" for null. */
char *text_word(const json_t *object, const char *name, char *out);

/* "0-3,8,10-11" of an array of integers in rising order. Cut with "..." where it does not fit. */
char *text_ranges(const json_t *array, char *out, size_t out_size);

/* A table: columns as wide as they must be, numbers to the right. Rows are kept until printed. */
struct text_table {
    uint32_t columns;
    bool right[TEXT_MAX_COLUMNS];
    uint32_t rows;
    char *cells; /* owned: rows * columns * TEXT_CELL_BYTES */
    bool failed; /* no memory */
};

/* `head` has the titles, one a column, apart by "|"; one that begins with ">" is right-aligned. */
void text_table_begin(struct text_table *t, const char *head);
/* A new empty row; returns its cells, which are `columns` texts of TEXT_CELL_BYTES. Never NULL:
 * without memory all rows share one. */
char (*text_table_row(struct text_table *t))[TEXT_CELL_BYTES];
/* Prints and frees. */
void text_table_end(struct text_table *t, FILE *out);

#endif
