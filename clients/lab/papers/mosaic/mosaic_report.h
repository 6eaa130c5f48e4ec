/* mosaic_report.h: collects the numbers of the figures of Mosaic (Ausavarungnirun et al., MICRO
 * 2017) as targets M1 to M15. A target has the simulated numbers, the numbers of the paper's text,
 * and bands. The bands come from the design and are not fitted. All numbers are simulated. */
#ifndef REACH_CLIENTS_LAB_PAPERS_MOSAIC_MOSAIC_REPORT_H
#define REACH_CLIENTS_LAB_PAPERS_MOSAIC_MOSAIC_REPORT_H

#include "clients/lab/papers/mosaic/mosaic_workloads.h"

/* A part of a target: a number with a band, or a statement. */
struct mosaic_part {
    char id[4]; /* id of the target */
    char what[60];
    const char *unit;  /* unit, or NULL for a statement */
    const char *paper; /* number in the paper's text */
    double value, low, high;
    bool holds;
};

enum { MOSAIC_MAX_PARTS = 64 };

struct mosaic_report {
    struct mosaic_part parts[MOSAIC_MAX_PARTS];
    uint32_t part_count;
    struct mosaic_alone alone; /* valid if has_alone */
    bool has_alone;
    bool quiet; /* no rows are printed */
    bool whole; /* sweeps run all workloads instead of a part of them */
};

/* Adds a number that should be within [low, high]. `unit` and `paper` are borrowed. */
void mosaic_report_number(struct mosaic_report *r, const char *id, const char *what, double value,
                          const char *unit, const char *paper, double low, double high);
/* Adds a statement that is true or false. */
void mosaic_report_statement(struct mosaic_report *r, const char *id, const char *what, bool holds);
/* Sets `alone`, which all weighted speed-ups share, if it is not set. */
enum status mosaic_report_alone(struct mosaic_report *r, struct err *err);
/* Prints a row of a figure like printf, unless the report is quiet. */
void mosaic_report_row(const struct mosaic_report *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
