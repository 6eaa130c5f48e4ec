/* job.h: the host side that the example jobs share: command line, requests to reachd, every
 * strategy of a plan in turn, comparison of the results, report. The code is plain C without CUDA,
 * so that it can be tested with jobs that run on the CPU (tests/unit/clients/examples/test_jobs.c).
 *
 * For each size job_main calls
 *   1. prepare     allocates and fills the memory
 *   2. calibrate   measures the numbers of a job that the planner lacks
 *   3.             gets the plan: all strategies, with predictions
 *   4. run         once per strategy and round; medians are reported, results compared
 *
 * Functions that can fail return false with a message in `why` (JOB_TEXT_BYTES). Call them from one
 * thread.
 */
#pragma once

#include "clients/c/reach.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct json_writer;

enum {
    JOB_TEXT_BYTES = 768,
    JOB_MAX_SIZES = 16,
    JOB_MAX_REPEATS = 64,
    JOB_MAX_CHOICES = 8,
    JOB_RESULTS = 3 /* largest count of numbers in a result */
};

/* The command line. Strings are borrowed from it, or static. */
struct job_options {
    const char *uri; /* URI for reach_open; NULL means its default */
    const char *gpu; /* CUDA's index; with dry_run the daemon's index or a UUID */
    uint32_t size_count;
    uint64_t bytes[JOB_MAX_SIZES]; /* sizes; 0 means the largest that the GPU can allocate */
    uint64_t count;                /* samples, bags, values: the job's unit of work */
    uint32_t row_bytes;            /* bytes of a row (gather) */
    bool host_input;               /* the input streams from host memory (grouping) */
    const char *strategy;          /* name of the only strategy to run, or NULL for all */
    uint32_t repeats;              /* number of timed repeats */
    uint32_t seed;
    const char *json; /* path of the JSON output, or NULL */
    bool dry_run;
    bool help;
};

/* The largest values that options may have. */
struct job_limits {
    uint32_t sizes; /* at most JOB_MAX_SIZES */
    uint64_t bytes;
    uint64_t count;
    uint32_t repeats; /* at most JOB_MAX_REPEATS */
    uint32_t seed;
};

/* The results of one execution; all strategies must compute the same results. */
struct job_result {
    uint64_t number[JOB_RESULTS];
};

/* One choice for the job: a strategy of the plan, or a variant of its implementation. */
struct job_choice {
    enum reach_strategy strategy;
    uint32_t variant;    /* 0, or a number that the job defines */
    const char *label;   /* such as "naive" or "scopes, streamed again" */
    uint32_t pass_count; /* 1 except for scopes */
    uint64_t scope_bytes;
    uint32_t windows;
    struct reach_number predicted_gbps;
    double milliseconds[JOB_MAX_REPEATS];
    double gbps; /* speed of the median repeat */
    struct job_result result;
    bool right; /* whether every repeat matched the first choice and the reference */
};

/* All results for one size. */
struct job_run {
    uint64_t bytes;
    double useful_bytes;       /* of one execution: batches x accesses x transaction_bytes */
    double in_reach_gbps;      /* speed of the same job within the reach */
    double scan_rate;          /* 10^9 positions per second that the job can scan */
    struct reach_answer *plan; /* owned */
    uint32_t choice_count;
    struct job_choice choices[JOB_MAX_CHOICES];
    struct job_result reference; /* computed by the CPU */
    uint32_t reference_known;    /* bit i is set if number[i] is known */
    uint32_t repeats;            /* 0 if the run is only planned */
};

/* The window of each SM in one pass: the windows of the plan, or `one` in this struct. */
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
    bool unplanned; /* the plan's prediction does not apply to this variant */
};

struct job {
    const char *name;  /* name of the program */
    const char *title; /* title of the report, one line */
    const char *help;  /* help text of its own options */
    const char *unit;  /* unit of `count` and name of its option, such as "samples" */
    const char *result_names[JOB_RESULTS];
    uint64_t default_count;
    const struct job_limits *limits; /* limits of the options; NULL means the usual limits */
    void *state;
    /* Returns the choices that the job implements; a NULL label ends them. If NULL, job_strategies
     * is used. */
    const struct job_variant *(*variants)(const struct job_options *options);
    /* Opens CUDA's GPU `index` and returns its UUID. */
    bool (*open)(void *state, const struct job_options *options, int index,
                 char uuid[REACH_UUID_BYTES], char *why);
    /* Allocates `*bytes`. 0 means the largest size, which is then returned. `reach_bytes` is the
     * reach of one group. Writes the CPU's reference to `run` if there is one. */
    bool (*prepare)(void *state, uint64_t *bytes, uint64_t reach_bytes, struct job_run *run,
                    char *why);
    /* Returns milliseconds of the job within half of the reach, and of the scan of all of its
     * input. */
    bool (*calibrate)(void *state, double *out_in_reach_ms, double *out_scan_ms, char *why);
    /* Runs the job once. `passes` has choice->pass_count elements; partitioned windows use
     * passes[0].
     */
    bool (*run)(void *state, const struct job_choice *choice, const struct job_pass *passes,
                double *out_milliseconds, struct job_result *out, char *why);
    /* Fills the job's request to the planner for one batch, without its size and the measured
     * speeds. */
    void (*describe)(void *state, const struct job_options *options, struct reach_job *out);
    /* Returns the number of batches of one execution; each has its own launches. NULL means one. */
    uint64_t (*batches)(const struct job_options *options);
    void (*close)(void *state);
};

/* ---- job_options.c ---- */
/* Formats a message into `why`; returns false. */
bool job_fail(char *why, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Requires name, help, unit, default_count and limits of `job`. */
bool job_options_parse(int argc, char **argv, const struct job *job, struct job_options *out,
                       char *why);
void job_options_help(FILE *out, const struct job *job);

/* ---- job_choices.c ---- */
/* One variant per strategy that a job can implement, which excludes plain windows. */
extern const struct job_variant job_strategies[];

/* Sets the choices that the plan considers possible, best first; with `strategy` only those of the
 * strategy of this name. Equal choices have the order of `variants`; unplanned variants come last,
 * without a prediction. Returns their number. */
uint32_t job_choices_make(const struct job_variant *variants, const struct reach_answer *plan,
                          const char *strategy, struct job_choice choices[JOB_MAX_CHOICES]);
/* Sets the windows of pass `pass` of a choice: one window over everything (naive), one scope
 * (scopes), or the plan's windows. `sm_slots` is the number of SM ids of the GPU. The scopes
 * together cover `bytes` once. */
void job_choice_pass(const struct job_choice *choice, const struct reach_answer *plan,
                     uint64_t bytes, uint32_t sm_slots, uint32_t pass, struct job_pass *out);
/* Makes one window for every SM. `out` must not move afterwards. */
void job_one_window(uint64_t first_byte, uint64_t length_bytes, uint32_t sm_slots,
                    struct job_pass *out);
/* Lays windows side by side over the whole lines of `bytes`. Each is as long as its share of the
 * SMs (sm_count); at least one sm_count must not be 0. */
void job_windows_divide(struct reach_window *window, uint32_t count, uint64_t bytes);
/* Returns the length of all windows together. */
uint64_t job_windows_bytes(const struct reach_windows *windows);
/* Runs all choices, round by round, so that a drifting clock affects all equally. The first round
 * warms up. Fills in the measured values and `right`. */
bool job_measure(const struct job *job, struct job_run *run, uint32_t sm_slots, char *why);
/* Returns the index of the choice with the highest measured throughput; choice_count must not be
 * 0. */
uint32_t job_best(const struct job_run *run);

/* ---- job_report.c ---- */
void job_report(FILE *out, const struct job *job, const struct job_options *options,
                const struct job_run *run);
bool job_write_json(const char *path, const struct job *job, const struct job_options *options,
                    const struct job_run *runs, uint32_t count, char *why);
/* Prints a blank and the number, right-aligned, or "-" if it is not known. */
void job_print_number(FILE *out, int width, int digits, bool known, double value);
/* Adds a number to a document, with eight significant digits, or null if it is not known. */
void job_write_number(struct json_writer *t, const char *name, bool known, double value);
void job_write_numbers(struct json_writer *t, const char *name, const double *values,
                       uint32_t count);
/* These functions begin a document, to which members can be added, and write it to `path`. */
void job_begin_document(struct json_writer *t);
bool job_end_document(struct json_writer *t, const char *path, char *why);

/* ---- job_main.c ---- */
/* The main function of every job. Returns 0 if all results are the same, 1 if they differ or if the
 * job failed, and 2 for wrong options. */
int job_main(int argc, char **argv, const struct job *job);
/* Returns the exit status of a program that is not a job. It is 0 if all is good and the whole
 * output was written, else 1, with a message if the output is incomplete. */
int job_exit(const char *name, bool good);

#ifdef __cplusplus
}
#endif
