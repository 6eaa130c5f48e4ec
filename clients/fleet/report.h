/* report.h: prints reports about surveys of a fleet.
 *
 * Every report is a query of schema/fleet, printed row by row, so memory does not grow with the
 * fleet. Chips are counted by model and origin, so a simulated chip is never in one row with a
 * measured one. A GPU is compared with the other GPUs of its model, and with itself in the previous
 * survey. docs/fleet.md has the rules. */
#pragma once

#include "clients/fleet/report_out.h"

enum fleet_report_bit {
    FLEET_REPORT_SIGNATURES = 1 << 0,
    FLEET_REPORT_MAPS = 1 << 1,
    FLEET_REPORT_QUARTILES = 1 << 2,
    FLEET_REPORT_OUTLIERS = 1 << 3,
    FLEET_REPORT_DRIFT = 1 << 4,
    FLEET_REPORT_HOSTS = 1 << 5,
    FLEET_REPORT_INVENTORY = 1 << 6,
    FLEET_REPORT_GPUS = 1 << 7,
    FLEET_REPORT_COSTS = 1 << 8,
    FLEET_REPORT_SUMMARY = 1 << 9,
    FLEET_REPORT_CHANGES = 1 << 10
};
/* Names are "signatures", "maps", ... Returns false if no report has that name; `*out` is then
 * unchanged. */
bool fleet_report_from_name(const char *name, unsigned *out);

/* Names are "table", "json", "csv", "markdown" and "html". */
bool fleet_format_from_name(const char *name, enum fleet_format *out);

struct fleet_report_options {
    int64_t survey;    /* number of the survey; 0 for the latest */
    const char *model; /* model name reported by the driver; NULL for all models */
    enum fleet_format format;
    unsigned reports; /* bits of fleet_report_bit; 0 for the summary */
};

/* Prints the reports, hosts that failed first, then what changed, all from one state of the
 * database. Returns STATUS_NOT_FOUND if the survey does not exist or no survey was made yet.
 * Returns STATUS_IO if `out` cannot be written, and STATUS_CONFLICT if a survey is in progress in
 * `db`. */
enum status fleet_report(struct fleet_db *db, const struct fleet_report_options *options, FILE *out,
                         struct err *err);
