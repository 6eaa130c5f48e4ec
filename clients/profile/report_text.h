/* report_text.h: the cells of a report as text. The table and the page have the same text. */
#pragma once

#include "clients/profile/report.h"

enum { REPORT_CELL_BYTES = 512 };

/* Each function writes at most REPORT_CELL_BYTES to `out` and returns `out`. */

/* "110.1 GiB device, at random" */
char *report_text_touches(const struct report_row *row, char *out);
/* "41 %", or "" if the time is unknown */
char *report_text_time(const struct report_row *row, char *out);
/* "41 %", or "" if it is unknown */
char *report_text_misses(const struct report_row *row, char *out);
/* "4.1x", "<=4.1x" if it is an upper bound, or "" if it is unknown */
char *report_text_costs(const struct report_row *row, char *out);
/* "windows 4.0x, scopes 3.5x: reach.torch.gather_rows", or why there is nothing to do. The text of
 * an untimed kernel begins with "launched once, not timed: ". */
char *report_text_instead(const struct report_row *row, char *out);
/* "python train.py (process 17): NVIDIA H200, 3 kernels in 8.1 s" */
char *report_text_title(const struct report_section *section, char *out);
/* The sentence below the rows of a section, or "" */
char *report_text_advice(const struct report_section *section, char *out);
/* The sentence about all sections */
char *report_text_sum(const struct report *r, char *out);
/* The sentence about a recording without a section */
char *report_text_problem(const struct recording *r, char *out);

/* "scopes", "windows", "managed at the host": a row of the options of a kernel. */
const char *report_text_option(const struct report_option *option);
/* The function that follows the option, such as "reach.torch.gather_rows". */
const char *report_text_call(const struct report_row *row, const struct report_option *option);
