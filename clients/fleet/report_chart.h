/* report_chart.h: the signatures of a survey as SVG: a panel per kind, a bar per signature. */
#ifndef REACH_CLIENTS_FLEET_REPORT_CHART_H
#define REACH_CLIENTS_FLEET_REPORT_CHART_H

#include "clients/fleet/report_out.h"

struct report_chart {
    FILE *out; /* borrowed */
    const struct report_head *head;
    int64_t panels; /* so far; 0: nothing is printed yet */
    bool left_out;  /* there are more than are printed */
    double y;       /* of the next bar */
};

/* A fleet_row_fn: a row of report_chart.sql; `self` is the chart. */
enum status report_chart_row(void *self, int columns, const char *const *values, struct err *err);
/* After the last row. STATUS_IO: `out` cannot be written. */
enum status report_chart_end(struct report_chart *chart, struct err *err);

#endif
