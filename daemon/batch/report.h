/* report.h: prints the document of a fingerprint as text for a person. The tables of
 * fingerprint/members.h list the numbers to print. Numbers that were not measured are left out. The
 * caller owns `out` and checks it for errors. */
#pragma once

#include "base/status.h"
#include "fingerprint/fingerprint.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Prints the whole document, without long lists of points. */
void report_print(FILE *out, const json_t *fp);

/* Prints a fingerprint like report_print, and its evidence if requested. Returns STATUS_NO_MEMORY
 * if memory runs out. */
enum status report_fingerprint(FILE *out, const struct fingerprint *fp, bool evidence,
                               struct err *err);

/* Prints the member `name` of that document, with its long lists if `all` is true. */
void report_member(FILE *out, const char *name, const json_t *value, bool all);

/* Prints the numbers of `object`, which come from several objects of the document, one per line. */
void report_numbers(FILE *out, const json_t *object);

/* Prints the evidence of each number as one table. */
void report_evidence(FILE *out, const json_t *fp);

/* Writes integers in ascending order as ranges: "0-3,8,10-11", cut with "..." if they do not fit.
 */
void report_put_ranges(const json_t *array, char *out, size_t out_size);
