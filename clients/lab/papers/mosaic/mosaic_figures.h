/* mosaic_figures.h: page sizes, demand paging and the 235 workloads of Mosaic's evaluation. */
#ifndef REACH_CLIENTS_LAB_PAPERS_MOSAIC_MOSAIC_FIGURES_H
#define REACH_CLIENTS_LAB_PAPERS_MOSAIC_MOSAIC_FIGURES_H

#include "clients/lab/papers/mosaic/mosaic_report.h"

/* Each function simulates, prints the rows of its figures and adds their targets. Returns
 * STATUS_NO_MEMORY if out of memory. */
enum status mosaic_page_sizes(struct mosaic_report *r, struct err *err); /* M1 */
enum status mosaic_paging(struct mosaic_report *r, struct err *err);     /* M2, M3 */
enum status mosaic_speedups(struct mosaic_report *r, struct err *err);   /* adds targets M5 to M9 */

#endif
