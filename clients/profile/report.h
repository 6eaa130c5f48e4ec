/* report.h: the conclusions about the kernels of recorded processes. The functions read traces, and
 * otherwise depend on their arguments only.
 *
 * A report has a section for each GPU of each process. It borrows the recordings and the
 * fingerprints. */
#pragma once

#include "clients/profile/launch_cost.h"

enum report_verdict {
    REPORT_LIMITED = 0,    /* translation explains the measured time */
    REPORT_UNTIMED,        /* translation is predicted to limit; no recorded launch was timed */
    REPORT_UNEXPLAINED,    /* the predicted and the measured time differ */
    REPORT_HIDDEN,         /* other work takes longer than translation */
    REPORT_IN_REACH,       /* hardly any access misses */
    REPORT_IN_ORDER,       /* no access is at random */
    REPORT_IN_CACHE,       /* all touched memory stays in a cache */
    REPORT_NO_FINGERPRINT, /* only footprints are known */
    REPORT_NOT_RECORDED,   /* only launches and times are known */
    REPORT_REFUSED,        /* the kernel could not be recorded; `note` has the reason */
    REPORT_UNKNOWN,        /* the times cannot be predicted; `note` has the reason */
    REPORT_VERDICT_COUNT
};
const char *report_verdict_name(enum report_verdict verdict); /* "limited", "unexplained", .. */

/* The largest difference between the predicted and the measured time of a limited kernel. */
#define REPORT_TOLERANCE 0.25

enum { REPORT_NOTE_BYTES = 320 };

struct report_option {
    enum memory_kind kind;
    enum strategy strategy;
    double factor; /* predicted speed relative to the kernel as it is: to its measured time if the
                      option replaces the operator, otherwise to its predicted time */
};

/* One kernel. Predicted numbers are sums over its recorded launches. */
struct report_row {
    const struct recording_kernel *kernel;
    const struct recording_launch *launch; /* the first recorded launch with a trace, or NULL */
    char *name;
    double time_share;             /* share of the time of all kernels of the section, 0..1 */
    uint64_t touched[PLACE_COUNT]; /* largest number of touched bytes of a launch */
    enum access_order order[PLACE_COUNT];
    enum rlt_kind kind; /* kind of most random accesses */
    enum report_verdict verdict;
    bool has_times; /* whether the following numbers are set */
    double misses;  /* share of the random accesses that miss every level */
    /* Time divided by the predicted time within the reach: the measured time of a limited kernel,
     * otherwise the predicted one. An upper bound, because translation can hide other limits that
     * remain within the reach. */
    double costs;
    double predicted_ns, in_reach_ns, translation_ns;
    double measured_ns;    /* of the same launches; 0 means unknown */
    bool partial;          /* recordings have ended before their launches, so more is touched */
    uint32_t option_count; /* set if the kernel is limited or untimed; fastest first */
    struct report_option options[LAUNCH_MAX_OPTIONS];
    /* Time of the whole run that the fastest option saves. For an untimed kernel: predicted time of
     * the recorded launches that the option saves. */
    double gain_ns;
    char note[REPORT_NOTE_BYTES];
};

/* One GPU of one process. */
struct report_section {
    const struct recording *recording;
    uint32_t gpu;                 /* index into the GPUs of the recording */
    const struct fingerprint *fp; /* NULL if there is none; `why` has the reason */
    const char *why;
    uint32_t row_count;
    struct report_row *rows; /* limited, untimed and other kernels, each by gain, then by time */
    double time_ns;
    double gain_ns;         /* of the limited kernels */
    double untimed_gain_ns; /* of the untimed kernels */
};

struct report {
    uint32_t section_count;
    struct report_section *sections;
    double time_ns; /* sums over the sections */
    double gain_ns;
    double untimed_gain_ns;
    uint32_t limited_count;
    uint32_t untimed_count;
};

/* Finds the fingerprint of a GPU. Returns NULL and sets `*out_why` to a reason that lives as long
 * as the context if there is none. */
typedef const struct fingerprint *report_find_fn(void *context, const struct recording_gpu *gpu,
                                                 const char **out_why);

struct report_source {
    const struct recording *recordings;
    uint32_t count;
    const char *folder; /* folder of the traces */
    report_find_fn *find;
    void *context;
    struct whatif_shared *shared; /* NULL if no other report shares its counts */
};

/* Makes the report. A trace that cannot be used leaves its kernel without a prediction, with the
 * reason. Returns STATUS_NO_MEMORY if out of memory. Free `out` with report_free in every case. */
enum status report_make(const struct report_source *source, struct report *out, struct err *err);
void report_free(struct report *take);

/* Returns the section and the row with the largest gain, or false if there is no row. */
bool report_first(const struct report *r, const struct report_section **out_section,
                  const struct report_row **out_row);
