/* mosaic_sweeps.h: Mosaic's numbers over TLB entries, fragmentation and the walk cache. */
#ifndef REACH_CLIENTS_LAB_PAPERS_MOSAIC_MOSAIC_SWEEPS_H
#define REACH_CLIENTS_LAB_PAPERS_MOSAIC_MOSAIC_SWEEPS_H

#include "clients/lab/papers/mosaic/mosaic_report.h"

/* Each function simulates, prints the rows of its figures and adds their targets. Returns
 * STATUS_NO_MEMORY if out of memory. */
enum status mosaic_bloat(struct mosaic_report *r, struct err *err);      /* M4, M14 */
enum status mosaic_entries(struct mosaic_report *r, struct err *err);    /* M10, M11 */
enum status mosaic_compaction(struct mosaic_report *r, struct err *err); /* M12, M13 */
enum status mosaic_walk_cache(struct mosaic_report *r, struct err *err); /* M15 */

#endif
