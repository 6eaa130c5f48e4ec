/* host_gather.h: the host side of host_gather: the advice of reachd for a size, the windows of each
 * choice, the report. The code is plain C without CUDA, so that it can be tested and can plan on
 * any machine.
 *
 * Functions that can fail return false with a message in `why` (JOB_TEXT_BYTES). Call them from one
 * thread.
 */
#pragma once

#include "job.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "types/memory_kind.h" /* needs C linkage, because it is a C header */

enum { GATHER_MAX_CHOICES = 32, GATHER_MAX_COUNTS = 12 };

/* One choice of the advice: a kind of host memory, and whether SMs read anywhere or in windows.
 */
struct gather_choice {
    enum memory_kind kind;
    enum reach_strategy strategy; /* REACH_NAIVE or REACH_WINDOWS */
    bool predicted;
    double predicted_gbps;
    uint64_t lines; /* lines read in each repeat */
    double milliseconds[JOB_MAX_REPEATS];
    double gbps;              /* median speed; 0 if not measured */
    uint64_t mismatches;      /* words that did not have the value of their index */
    char why[JOB_TEXT_BYTES]; /* text of the advice, or why it is not measured */
};

/* The advice for one size, best first, and the measured results. */
struct gather_size {
    uint64_t bytes;
    char fingerprint_id[32], origin[16];
    uint32_t choice_count;
    struct gather_choice choices[GATHER_MAX_CHOICES];
};

/* Speeds of one kind by the number of SMs that read. */
struct gather_counts {
    enum memory_kind kind;
    uint64_t bytes;
    uint32_t count;
    uint32_t sms[GATHER_MAX_COUNTS];
    double gbps[GATHER_MAX_COUNTS];
};

/* `windows` points to the arrays, so do not copy or move the struct. */
struct gather_layout {
    struct reach_windows windows;
    struct reach_window window[REACH_WINDOW_MAX];
    int16_t window_of_sm[REACH_SM_MAX];
};

/* Writes the path of the request for the advice about `bytes`. */
void gather_target(const char *gpu, uint64_t bytes, char *out, size_t out_bytes);
/* Reads the answer. Leaves out choices outside of host memory, and choices whose strategy is
 * neither naive nor windows. Returns false if there is no choice, or if the document is invalid. */
bool gather_read_advice(const char *json, uint64_t bytes, struct gather_size *out, char *why);

/* Gives every group its own window, with a length in proportion to its SMs. reachd measures windows
 * of host memory in the same way. Returns false if no groups are known. */
bool gather_by_group(const struct reach_fingerprint *chip, uint64_t bytes,
                     struct gather_layout *out);
/* Makes one window for `count` SMs that are spread over the chip. */
void gather_some_sms(const struct reach_fingerprint *chip, uint32_t count, uint64_t bytes,
                     struct gather_layout *out);

/* Sets gbps from the times of `repeats` repeats. */
void gather_derive(struct gather_choice *choice, uint32_t repeats);
/* Returns the fastest measured choice, or NULL if none was measured. */
const struct gather_choice *gather_best(const struct gather_size *size);
/* Returns the naive choice of pinned memory, the base of comparison, or NULL if it was not
 * measured. */
const struct gather_choice *gather_pinned(const struct gather_size *size);
/* Returns whether the first choice of the advice is the fastest measured, apart from noise. */
bool gather_first_is_fastest(const struct gather_size *size);

/* Returns the number behind `key` in a file of "key: number kB" lines, in bytes, or 0 if it is
 * missing. */
uint64_t gather_read_kib(const char *path, const char *key);

void gather_report(FILE *out, const struct gather_size *size, const char *gpu, bool measured);
void gather_report_counts(FILE *out, const struct gather_counts *counts);
bool gather_write_json(const char *path, const char *gpu, const struct job_options *options,
                       const struct gather_size *sizes, uint32_t count,
                       const struct gather_counts *counts, char *why);

#ifdef __cplusplus
}
#endif
