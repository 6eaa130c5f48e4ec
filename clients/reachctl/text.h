/* text.h: fields of a JSON document as text: in lines, and in tables.
 *
 * A template is text with fields in braces. A field is a path ("gpu.sm_count", "groups.0") and a
 * format:
 *
 *     {name}             a string; "-" if it is null or empty
 *     {count:d}          an integer
 *     {bytes:B}          a size: "64 GiB"
 *     {gbps:1 GB/s}      a real number with 0 to 9 digits after the point, and a unit
 *     {fits:y}           "yes" if it is true, else "no"
 *     {sms:n}            the number of elements of an array
 *     {sms:r}            integers in ascending order as ranges: "0-3,8,10-11", cut with "..."
 *     {count:-d}         "-" for 0
 *     {gbps?:0}          nothing if the field is missing
 *
 * A number that is null reads "not sure (not-measured)", "not observable (beyond-memory)", or "-"
 * if it has no meaning; see the field NAME_reason.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

enum { TEXT_CELL_BYTES = 96, TEXT_MAX_COLUMNS = 12, TEXT_LINE_BYTES = 4096 };

/* Writes the template with the fields of `object` to `out`, truncated if it does not fit; returns
 * `out`. */
char *text_expand(const json_t *object, const char *template, char *out, size_t out_size);
/* Prints the filled template to stdout, at most TEXT_LINE_BYTES. */
void text_print(const json_t *object, const char *template);

/* Prints a table with a row for each object of the array. `columns` has, for each column, its title
 * and the template of its cells: ">SMs {sm_count:d}|state {state}". A title that begins with ">" is
 * right-aligned. Columns have the width of their longest cell. "{#}" is the index of the row. */
void text_table(const json_t *rows, const char *columns);
