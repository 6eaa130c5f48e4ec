/* mosaic.h: the figures of Mosaic (Ausavarungnirun et al., MICRO 2017) as targets M1 to M15: what
 * the simulation gives, what the paper's text says, the band in which it counts as reproduced. All
 * numbers are simulated. Bands are those of the design and are not changed to fit.
 */
#ifndef REACH_CLIENTS_LAB_MOSAIC_H
#define REACH_CLIENTS_LAB_MOSAIC_H

#include "clients/lab/mosaic_workloads.h"

/* A part of a target: a number in its band, or something that holds. */
struct mosaic_part {
    char id[4]; /* of the target */
    char what[60];
    const char *unit;  /* NULL: not a number */
    const char *paper; /* as its text has it */
    double value, low, high;
    bool holds;
};

enum { MOSAIC_MAX_PARTS = 64 };

struct mosaic_report {
    struct mosaic_part parts[MOSAIC_MAX_PARTS];
    uint32_t part_count;
    struct mosaic_alone alone; /* once has_alone */
    bool has_alone;
    bool quiet; /* no rows */
    bool whole; /* sweeps over all workloads and not over a part of them */
};

/* Adds a number within [low, high]. `unit` and `paper` are kept. */
void mosaic_target(struct mosaic_report *r, const char *id, const char *what, double value,
                   const char *unit, const char *paper, double low, double high);
/* Adds something that holds or does not. */
void mosaic_holds(struct mosaic_report *r, const char *id, const char *what, bool holds);
/* Fills in `alone`, which all weighted speed-ups share. */
enum status mosaic_need_alone(struct mosaic_report *r, struct err *err);
/* The numbers added so far as a picture, to stdout. */
void mosaic_print_svg(const struct mosaic_report *r, const char *figure);
/* Prints a row of a figure, as printf does, unless quiet. */
void mosaic_row(const struct mosaic_report *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Each simulates, prints the rows of some figures and adds their targets. */
enum status mosaic_page_sizes(struct mosaic_report *r, struct err *err); /* M1 */
enum status mosaic_paging(struct mosaic_report *r, struct err *err);     /* M2, M3 */
enum status mosaic_bloat(struct mosaic_report *r, struct err *err);      /* M4, M14 */
enum status mosaic_speedups(struct mosaic_report *r, struct err *err);   /* M5 to M9 */
enum status mosaic_entries(struct mosaic_report *r, struct err *err);    /* M10, M11 */
enum status mosaic_compaction(struct mosaic_report *r, struct err *err); /* M12, M13 */
enum status mosaic_walk_cache(struct mosaic_report *r, struct err *err); /* M15 */

#endif
