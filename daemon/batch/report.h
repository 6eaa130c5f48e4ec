/* report.h: the document of a fingerprint as text for a person. The tables of fingerprint/members.h
 * say what there is to print; a number that was not measured is left out. The caller owns `out` and
 * checks it for errors.
 */
#ifndef REACH_BATCH_REPORT_H
#define REACH_BATCH_REPORT_H

#include "base/status.h"
#include "fingerprint/fingerprint.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* The whole document, but for long lists of points. */
void report_print(FILE *out, const json_t *fp);

/* The same of a fingerprint, and its evidence if that is wanted. STATUS_NO_MEMORY. */
enum status report_fingerprint(FILE *out, const struct fingerprint *fp, bool evidence,
                               struct err *err);

/* The member `name` of that document. `all`: its long lists too. */
void report_member(FILE *out, const char *name, const json_t *value, bool all);

/* The numbers of `object`, which come from several objects of the document, one in a line. */
void report_numbers(FILE *out, const json_t *object);

/* The evidence of each number as one table. */
void report_evidence(FILE *out, const json_t *fp);

#endif
