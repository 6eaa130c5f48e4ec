/* mosaic.h: the figures of Mosaic (Ausavarungnirun et al., MICRO 2017) as targets M1 to M15: what
 * the simulation gives, what the paper's text says, the band in which it counts as reproduced. All
 * numbers are simulated. Bands are those of the design and are not changed to fit.
 */
#ifndef REACH_CLIENTS_LAB_MOSAIC_H
#define REACH_CLIENTS_LAB_MOSAIC_H

#include "clients/lab/mosaic_workloads.h"

/* Counts what it printed. */
struct mosaic_report {
    uint32_t reproduced, not_reproduced;
    bool whole; /* all workloads everywhere; otherwise sweeps take a part of them */
};

/* One line: a number within [low, high]. `unit` follows the number. */
void mosaic_target(struct mosaic_report *r, const char *id, const char *what, double value,
                   const char *unit, const char *paper, double low, double high);
/* One line: something that holds or does not. */
void mosaic_holds(struct mosaic_report *r, const char *id, const char *what, bool holds);

/* Each prints the targets of some figures and their rows. */
enum status mosaic_page_sizes(struct mosaic_report *r, struct err *err); /* M1 */
enum status mosaic_paging(struct mosaic_report *r, struct err *err);     /* M2, M3 */
enum status mosaic_bloat(struct mosaic_report *r, struct err *err);      /* M4, M14 */
enum status mosaic_speedups(struct mosaic_report *r, struct err *err);   /* M5 to M9 */
enum status mosaic_entries(struct mosaic_report *r, struct err *err);    /* M10, M11 */
enum status mosaic_compaction(struct mosaic_report *r, struct err *err); /* M12, M13 */
enum status mosaic_walk_cache(struct mosaic_report *r, struct err *err); /* M15 */

/* Prints one target (M1..M15), the targets of one figure (its number; table2), or all of them.
 * Adds to the counts. STATUS_NOT_FOUND if there is no such target. */
enum status mosaic_print(const char *which, struct mosaic_report *r, struct err *err);

#endif
