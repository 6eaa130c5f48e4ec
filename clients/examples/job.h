/* job.h: what all jobs of the papers have in common. A job says what it is (struct job), brings the
 * few functions that need a GPU, and job_main does the rest: options, asking, every strategy of the
 * plan in turn, comparing results, report. Plain C without CUDA, so that all of it is tested
 * against jobs that run on the CPU (tests/unit/test_jobs.c).
 *
 * How a run goes, for each size:
 *   1. prepare       the memory of that size, and its contents
 *   2. inside, look  the same job inside the reach, and with nothing to do but look: what the
 *                    planner cannot know of a job
 *   3. plan          all strategies, predicted
 *   4. run           each strategy that the job knows, round after round; medians; results compared
 *
 * Functions that can fail return false and put a sentence into `why` (JOB_TEXT_BYTES). One thread.
 */
#ifndef REACH_EXAMPLES_JOB_H
#define REACH_EXAMPLES_JOB_H

#include "clients/c/reach.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    JOB_TEXT_BYTES = 768,
    JOB_MAX_SIZES = 16,
    JOB_MAX_REPEATS = 32,
    JOB_MAX_WAYS = 8,
    JOB_RESULTS = 3 /* numbers that a result has at most */
};

/* The command line. Strings are borrowed from it, or static. */
struct job_options {
    const char *where; /* as reach_open takes it; NULL: its default */
    const char *gpu;   /* CUDA's index; with dry_run the daemon's index or a UUID */
    uint32_t size_count;
    uint64_t bytes[JOB_MAX_SIZES]; /* 0: the largest that the GPU gives */
    uint64_t count;                /* samples, bags, values: what the job calls its work */
    uint32_t row_bytes;            /* gather */
    bool host_input;               /* grouping: the input streams from host memory */
    uint32_t repeats;              /* timed ones */
    uint32_t seed;
    const char *json; /* path, or NULL */
    bool dry_run;
    bool help;
};

/* What a run has found out; all strategies must find the same. */
struct job_result {
    uint64_t number[JOB_RESULTS];
};

/* One way to do the job: a strategy of the plan, or a variant of how the job does it. */
struct job_way {
    enum reach_strategy strategy;
    uint32_t variant;    /* 0, or as the job numbers them */
    const char *label;   /* "naive", "scopes, streamed again", .. */
    uint32_t pass_count; /* 1 but for scopes */
    uint64_t scope_bytes;
    uint32_t windows;
    struct reach_number predicted_gbps;
    double milliseconds[JOB_MAX_REPEATS];
    double median_milliseconds;
    double gbps; /* measured */
    struct job_result result;
    bool right; /* every repeat found what the first way and the reference found */
};

/* All that is known of one size. */
struct job_run {
    uint64_t bytes;
    double useful_bytes;       /* that one run moves: accesses x transaction */
    double inside_gbps;        /* the same job inside the reach */
    double scan_rate;          /* 10^9 positions per second that it can scan and skip */
    struct reach_answer *plan; /* owned */
    uint32_t way_count;
    struct job_way ways[JOB_MAX_WAYS];
    struct job_result reference; /* of the CPU */
    uint32_t reference_known;    /* bit i: number[i] is */
    uint32_t repeats;
};

/* Where each SM works in one pass. The windows are those of the plan, or the one that is here. */
struct job_pass {
    struct reach_windows windows;
    struct reach_window one;
    int16_t window_of_sm[REACH_SM_MAX];
};

/* A variant of a strategy. */
struct job_variant {
    enum reach_strategy strategy;
    uint32_t variant;
    const char *label;
    bool unplanned; /* the plan's prediction is not of this variant */
};

struct job {
    const char *name;  /* of the program */
    const char *title; /* one line */
    const char *help;  /* its own options */
    const char *unit;  /* what --count counts: "samples" */
    const char *result_names[JOB_RESULTS];
    uint64_t default_count;
    void *state;
    /* The ways that the job knows; ended by a NULL label. Called when options are parsed. */
    const struct job_variant *(*variants)(const struct job_options *options);
    /* CUDA's GPU `index`; its UUID. */
    bool (*open)(void *state, const struct job_options *options, int index,
                 char uuid[REACH_UUID_BYTES], char *why);
    /* Makes ready for `*bytes` (0: the largest, then told); `reach_bytes` is what one group
     * reaches. The reference of the CPU, as far as there is one, into `run`. */
    bool (*prepare)(void *state, uint64_t *bytes, uint64_t reach_bytes, struct job_run *run,
                    char *why);
    /* Milliseconds of the job inside half of the reach, and of looking at all of its input. */
    bool (*inside)(void *state, double *out_milliseconds, char *why);
    bool (*look)(void *state, double *out_milliseconds, char *why);
    /* One run. `passes` has way->pass_count tables; a way that is dealt first uses passes[0]. */
    bool (*run)(void *state, const struct job_way *way, const struct job_pass *passes,
                double *out_milliseconds, struct job_result *out, char *why);
    /* Access, sizes and input: what the job says of itself; all but bytes, inside and look. */
    void (*describe)(void *state, const struct job_options *options, struct reach_job *out);
    void (*close)(void *state);
};

/* ---- job_options.c ---- */
bool job_options_parse(int argc, char **argv, const struct job *job, struct job_options *out,
                       char *why);
void job_options_help(FILE *out, const struct job *job);

/* ---- job_ways.c ---- */
/* The ways of a job that the plan says are possible, best first, the order of `variants` among
 * equals; a variant that is not planned comes last and has no prediction. Returns how many. */
uint32_t job_ways_make(const struct job_variant *variants, const struct reach_answer *plan,
                       struct job_way ways[JOB_MAX_WAYS]);
/* Where each SM works in pass `pass` of a way: one window over everything (naive), the pass's scope
 * (scopes), or the plan's windows. `sm_slots`: of the GPU. Borders of scopes are multiples of
 * `granule_bytes`; together the scopes cover `bytes` once. */
void job_way_pass(const struct job_way *way, const struct reach_answer *plan, uint64_t bytes,
                  uint32_t sm_slots, uint32_t pass, struct job_pass *out);
/* One window for every SM. `out` must not move afterwards. */
void job_one_window(uint64_t first_byte, uint64_t length_bytes, uint32_t sm_slots,
                    struct job_pass *out);

/* ---- job_measure.c ---- */
/* Runs all ways of a run, round by round, so that a clock that drifts is fair to all; the first
 * round warms up. Fills what was measured, and `right`. */
bool job_measure(const struct job *job, struct job_run *run, uint32_t sm_slots, char *why);
double job_median(const double *values, uint32_t count);
/* The way with the highest measured speed; way_count must not be 0. */
uint32_t job_best(const struct job_run *run);

/* ---- job_report.c, job_json.c ---- */
void job_report(FILE *out, const struct job *job, const struct job_options *options,
                const struct job_run *run);
bool job_write_json(const char *path, const struct job *job, const struct job_options *options,
                    const struct job_run *runs, uint32_t count, char *why);

/* ---- job_main.c ---- */
/* The main of every job. 0: all ran and all results are the same; 1: not; 2: wrong options. */
int job_main(int argc, char **argv, const struct job *job);

#ifdef __cplusplus
}
#endif

#endif
