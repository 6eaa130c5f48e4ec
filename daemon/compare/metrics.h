/* metrics.h: splits a fingerprint into named values, which are stored and compared one by one.
 *
 * There are two kinds of values. The structure is fixed by the design of a model (levels, entries,
 * page sizes), and a fleet has few different structures. The metrics are measured and differ from
 * one measurement to the next. Numbers of every group or SM are reduced to least, median and most,
 * so that chips with different groups can be compared. The functions are pure and may be called on
 * any thread.
 */
#pragma once

#include "fingerprint/fingerprint.h"

#include <stdbool.h>

enum { METRIC_NAME_BYTES = 96 };

/* Receives a value. `v` and `text` are valid only if `known` is MAYBE_KNOWN. `text` is the number
 * or word of a structure, and NULL for metrics. */
typedef void metric_fn(void *self, const char *name, enum known known, double v, const char *text);
void structure_visit(const struct fingerprint *fp, metric_fn *visit, void *self);
/* Visits every metric of `fp`, always in the same order. There are about 330 metrics, and 15 more
 * for each kind of memory that was measured. */
void metrics_visit(const struct fingerprint *fp, metric_fn *visit, void *self);

/* Returns whether the number describes the chip. The duration and the confidence of a measurement
 * do not. */
bool metrics_is_of_chip(const char *name);
/* Returns whether a change of the number shows that the chip changed. Numbers of disabled SMs are
 * excluded. A median over groups or SMs is excluded, because one lost group can move it from one
 * class to another. */
bool metrics_is_tracked(const char *name);
/* Returns whether the number can also be compared with other chips. The miss penalty of a level
 * beyond the first is excluded, because it is measured for one random group. The smallest and
 * the largest penalty of all groups are in "topology.groups.miss_penalty_cycles". */
bool metrics_is_judged(const char *name);
