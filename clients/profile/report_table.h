/* report_table.h: a report as a table for a terminal. */
#pragma once

#include "clients/profile/report.h"

/* Prints a table for each section, a sentence for each recording without a section, and the sum.
 * Returns STATUS_IO if writing fails. */
enum status report_table_print(const struct report_source *source, const struct report *r,
                               FILE *out, struct err *err);
