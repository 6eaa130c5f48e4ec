/* report_chart.h: the signatures of a survey as SVG: a panel per kind, a bar per signature. */
#ifndef REACH_CLIENTS_FLEET_REPORT_CHART_H
#define REACH_CLIENTS_FLEET_REPORT_CHART_H

#include "clients/fleet/report_out.h"

struct report_chart;
/* Free with free(). NULL without memory. */
struct report_chart *report_chart_new(void);
/* A fleet_row_fn: a row of report_signatures.sql; `self` is the chart. */
enum status report_chart_row(void *self, int columns, const char *const *values, struct err *err);
/* STATUS_IO: `out` cannot be written. */
enum status report_chart_print(const struct report_chart *chart, const struct report_head *head,
                               FILE *out, struct err *err);

#endif
