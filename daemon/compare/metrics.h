/* metrics.h: a fingerprint as named values, to be stored and compared one by one.
 *
 * Two kinds. The structure is what a model has by its design (levels, entries, page sizes): a fleet
 * has few different ones. The metrics are measured and differ from one measurement to the next.
 * What there is one of for every group or SM is reduced to least, median and most, so that chips
 * with different groups can be compared. Pure; any thread.
 */
#ifndef REACH_COMPARE_METRICS_H
#define REACH_COMPARE_METRICS_H

#include "fingerprint/fingerprint.h"

#include <stdbool.h>

enum { METRIC_NAME_BYTES = 96 };

/* `v` and `text` mean nothing unless `known` is MAYBE_KNOWN. `text`: the number or word; of metrics
 * it is NULL. */
typedef void metric_fn(void *self, const char *name, enum known known, double v, const char *text);
void structure_visit(const struct fingerprint *fp, metric_fn *visit, void *self);
/* Every metric of `fp`, always in the same order; at most some 330, and 15 of each
 * kind of memory that was measured. */
void metrics_visit(const struct fingerprint *fp, metric_fn *visit, void *self);

/* Is it of the chip? Not so: how long a measurement took, and how sure it is. */
bool metrics_is_of_chip(const char *name);
/* Can a chip change by it? Not by what it has lost, which differs by design, nor by a median over
 * its groups or SMs: where those are of two classes, a lost group moves it from one class to the
 * other. */
bool metrics_is_tracked(const char *name);
/* Can it differ from other chips by it, too? Not by the miss penalty of a level beyond the first:
 * it is measured for one group, and which one is chance ("topology.groups.miss_penalty_cycles" has
 * the least and the most of all). */
bool metrics_is_judged(const char *name);

#endif
