/* split.h: divides one GPU among several jobs by whole groups, so that no job evicts the
 * translations of another. The functions are pure, allocate nothing, and may be called on any
 * thread.
 *
 * Each group works for one job. A job uses its groups in windows of the planner: its own
 * allocation, cut by its own groups. Levels that all SMs share cannot be split; the answer reports
 * them.
 */
#pragma once

#include "planner/placement.h"

enum { SPLIT_MAX_JOBS = 16 };

#define SPLIT_MAX_WEIGHT 1000000.0

struct split_job {
    uint64_t bytes; /* size of the job's own allocation, 1..PLACEMENT_MAX_BYTES */
    double weight;  /* share of the SMs relative to the other jobs; 0 means 1 */
};

struct split_request {
    uint32_t job_count; /* 1..SPLIT_MAX_JOBS */
    struct split_job jobs[SPLIT_MAX_JOBS];
    const char *fingerprint_id; /* may be NULL, as in placement_request */
};

struct split_part {
    bool fits; /* the windows of the job are within the reach; if false, one window has all bytes of
                  the job */
    uint32_t sm_count;
    uint32_t group_count;
    uint32_t window_count;
    uint32_t first_window; /* index of the first window of the job in windows[] of the answer */
    struct maybe_f64 gbps; /* predicted speed of 128-byte reads while the other jobs work too */
    struct maybe_f64 unsplit_gbps; /* predicted speed if every job used any SM */
    char why[200];
};

struct split_answer {
    char fingerprint_id[FINGERPRINT_ID_BYTES];
    uint32_t job_count;
    struct split_part parts[SPLIT_MAX_JOBS];
    uint32_t window_count; /* number of windows of all parts */
    /* first_byte is a position in the job's own allocation */
    struct placement_window windows[PLACEMENT_MAX_WINDOWS];
    uint32_t sm_slots;                /* length of job_of_sm and window_of_sm: highest SM id + 1 */
    int16_t job_of_sm[REACH_MAX_SMS]; /* job of each SM id; -1 if there is no such SM, or if it gets
                                         no work */
    int16_t window_of_sm[REACH_MAX_SMS]; /* number of the window among the windows of the job, from
                                            0; -1 if job_of_sm is -1 */
    char reason[PLANNER_REASON_BYTES + 80];
};

/* Divides the GPU. Returns STATUS_INVALID_ARGUMENT if the number of jobs, a size or a weight is out
 * of range, or if there are more jobs than groups. Returns STATUS_NOT_APPLICABLE if the fingerprint
 * has no groups or no reach. */
enum status split_jobs(const struct fingerprint *fp, const struct split_request *request,
                       struct split_answer *out, struct err *err);
