/* metrics.h: a fingerprint as named values, to be stored one by one.
 *
 * Two kinds. The structure is what a model has by its design (levels, entries, page sizes): a fleet
 * has few different ones. The metrics are measured and differ from one measurement to the next.
 * What there is one of for every group or SM is reduced to least, median and most, so that chips
 * with different groups can be compared.
 */
#ifndef REACH_CLIENTS_FLEET_METRICS_H
#define REACH_CLIENTS_FLEET_METRICS_H

#include "fingerprint/fingerprint.h"

enum { METRIC_NAME_BYTES = 96 };

/* `v` and `text` mean nothing unless `known` is MAYBE_KNOWN. `text`: the number or word; of metrics
 * it is NULL. */
typedef void metric_fn(void *self, const char *name, enum known known, double v, const char *text);
void structure_visit(const struct fingerprint *fp, metric_fn *visit, void *self);
/* Every metric of `fp`, always in the same order; at most some 330. */
void metrics_visit(const struct fingerprint *fp, metric_fn *visit, void *self);

#endif
