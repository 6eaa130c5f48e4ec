/* report_html.h: a report as one HTML page, which needs no other file and no script. */
#pragma once

#include "clients/profile/report.h"

/* Returns STATUS_IO if writing fails. */
enum status report_html_print(const struct report_source *source, const struct report *r, FILE *out,
                              struct err *err);
