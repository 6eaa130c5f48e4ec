/* random_read.h: the host side of random_read: its strategies and its report. The code is plain C
 * without CUDA, so that a plan can be printed on any machine (random_read --dry-run). */
#pragma once

#include "element.h"
#include "job.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { STRATEGY_IN_REACH = 0, STRATEGY_NAIVE, STRATEGY_BY_SM, STRATEGY_PLACED, STRATEGY_COUNT };

/* The answers of reachd about one GPU and one size, which the program owns. */
struct answers {
    struct reach_answer *fingerprint;
    struct reach_answer *scope;
    struct reach_answer *placement;
};

/* The window of each SM. `windows` may point to the two arrays, so do not copy or move the
 * struct. */
struct strategy {
    const char *name;
    struct reach_windows windows;
    struct reach_window window[REACH_WINDOW_MAX];
    int16_t window_of_sm[REACH_SM_MAX];
    uint64_t region_bytes; /* length of all windows together */
    struct reach_number predicted_gbps;
};

/* Fills strategies[STRATEGY_COUNT] for an allocation of `bytes`:
 *   in reach   every SM anywhere in a region within the reach of all: the upper bound
 *   naive      every SM anywhere: a job without reachd
 *   by SM      the recommended number of windows, but the SMs of each group are spread over all of
 *              them: the control, which shows that windows alone gain nothing
 *   placed     the recommended placement
 * The strategies borrow from the answers. */
void strategies_make(const struct answers *answers, uint64_t bytes, struct strategy *strategies);

/* The measured results of one strategy. */
struct timing {
    uint64_t lines; /* lines read in each repeat */
    double milliseconds[JOB_MAX_REPEATS];
    double gbps;         /* median, in 10^9 bytes per second */
    uint64_t mismatches; /* wrong words, over all repeats */
};

/* Sets gbps from the times of `repeats` repeats. */
void timing_derive(struct timing *t, uint32_t repeats);

/* The contents of the report. */
struct report {
    const struct answers *answers;
    const struct strategy *strategies; /* [STRATEGY_COUNT] */
    const struct timing *timings;      /* [STRATEGY_COUNT]; NULL if only planned */
    uint64_t bytes;
    const struct job_options *options;
};

void report_print(FILE *out, const struct report *report);
/* Writes the report as one JSON document. Returns false, with a message in `why`, if `path` cannot
 * be written. */
bool report_write_json(const char *path, const struct report *report, char *why);

#ifdef __cplusplus
}
#endif
