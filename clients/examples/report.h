/* report.h: what random_read prints and writes. Host code without CUDA. */
#ifndef REACH_CLIENTS_EXAMPLES_REPORT_H
#define REACH_CLIENTS_EXAMPLES_REPORT_H

#include "ask_daemon.h"
#include "strategies.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { REPORT_MAX_REPEATS = 64 };

/* One strategy, measured. */
struct timing {
    uint64_t lines; /* read in each repeat */
    double milliseconds[REPORT_MAX_REPEATS];
    double median_milliseconds;
    double gbps;         /* from the median: 10^9 bytes a second */
    uint64_t mismatches; /* words that did not have the value of their address, over all repeats */
};

/* All that one run knows. */
struct report {
    const struct ask_placement *placement;
    const struct ask_chip *chip;
    const struct ask_scope *scope;
    const struct strategy *strategies; /* [STRATEGY_COUNT] */
    const struct timing *timings;      /* [STRATEGY_COUNT]; NULL: only planned */
    uint64_t bytes;
    uint32_t repeats;
    uint32_t seed;
};

/* The median of `count` values. */
double report_median(const double *values, uint32_t count);

void report_print(FILE *out, const struct report *report);

/* The same as one JSON document. False, and `why`, where `path` cannot be written. */
bool report_write_json(const char *path, const struct report *report, char *why);

#ifdef __cplusplus
}
#endif

#endif
