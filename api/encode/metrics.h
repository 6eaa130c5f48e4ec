/* metrics.h: writes pages of metrics in Prometheus text 0.0.4 or OpenMetrics text 1.0. The
 * functions are pure and may be called on any thread.
 *
 * OpenMetrics names the family of a counter without the _total of its samples, and marks the end of
 * the page with a line. Numbers are in base units, and the label of a GPU is its UUID. SMs have no
 * series of their own, so a GPU has about fifty series. A number that is not known has no sample.
 */
#pragma once

#include "snapshot/snapshot.h"

#include <stdio.h>

struct metrics_page {
    FILE *out;
    bool is_open; /* OpenMetrics */
};

enum metrics_kind { METRICS_GAUGE = 0, METRICS_COUNTER };

/* Writes the head of a family; `name` is without _total. */
void metrics_family(const struct metrics_page *p, const char *name, enum metrics_kind kind,
                    const char *help);
/* Writes a family of one sample without labels. */
void metrics_single(const struct metrics_page *p, const char *name, enum metrics_kind kind,
                    const char *help, double value);
/* Writes name="value", escaped and cut at 511 bytes. The result is one line of valid UTF-8 for
 * every `value`. */
void metrics_label(const struct metrics_page *p, const char *name, const char *value);
/* Writes all families of the GPUs. */
void metrics_gpu(const struct metrics_page *p, const struct snapshot *s);
