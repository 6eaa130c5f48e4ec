/* placement.h: the two basic answers of the planner. The functions are pure and may be called on
 * any thread. libreach links this module too. The id of a fingerprint takes about 200 us and memory
 * to compute. Everything else takes a few us and no memory, so frequent callers should pass the id.
 *
 *   scope      the bytes that one pass may touch at random before translation sets the speed
 *              (Karnagel 2017, section 5: passes over TLB scopes)
 *   placement  the window in which each SM should work, so that all of the memory is reached at
 *              full speed (Walker 2024, section 2.4: groups in windows)
 *
 * Windows are balanced by SM count: the length of a window is proportional to the number of its
 * SMs. If the measured reads of the groups are not in proportion to their SMs, windows are balanced
 * by reads. Windows are aligned to the TLB entry, or to the requested granularity if that is
 * coarser. Windows are not longer than the reach less one entry, so they fit at any alignment of
 * the job's base address.
 */
#pragma once

#include "types/access.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "planner/layout.h"

enum { PLACEMENT_MAX_WINDOWS = 256, PLANNER_REASON_BYTES = 480 };

/* The largest size in a request: 2^50 bytes (1 PiB). A larger size gives
 * STATUS_INVALID_ARGUMENT. */
#define PLACEMENT_MAX_BYTES ((uint64_t)1 << 50)

/* The recommendation of the answer. The set of recommendations is closed, so programs can branch on
 * them. */
enum advice {
    ADVICE_NOTHING_TO_DO = 0, /* the bytes fit the reach, and any SM may work anywhere */
    ADVICE_SCOPES,            /* passes over scopes */
    ADVICE_WINDOWS,           /* groups in windows */
    ADVICE_NO_LIMIT_SEEN,     /* the probed range shows no limit that costs speed */
    ADVICE_NOT_ENOUGH_GROUPS  /* windows would need more groups than there are; use scopes */
};
const char *advice_name(enum advice a); /* "nothing-to-do", "scopes", "windows", ... */

struct scope_request {
    /* The allocations that the job touches at random, 1..PLACEMENT_MAX_BYTES in total. If row_bytes
     * is 0, a single allocation is cut at any byte, and several allocations are cut at multiples of
     * SCOPE_ROW_BYTES. */
    struct layout layout;
    enum access access;
    const char *fingerprint_id; /* id of the fingerprint; if NULL, the planner computes the id */
};

/* The default granularity of the bounds of several allocations. In a job the default is the
 * element. */
enum { SCOPE_ROW_BYTES = 128 };

struct scope_answer {
    char fingerprint_id[FINGERPRINT_ID_BYTES];
    enum advice advice;
    uint64_t scope_bytes; /* largest range that one pass should touch */
    uint64_t passes;      /* ceil(bytes / scope_bytes) */
    struct layout layout; /* layout of the request with defaults filled in */
    uint64_t step_bytes;  /* scope k begins at position k step_bytes of the layout; there are
                             `passes` scopes, as equal as whole TLB entries allow */
    struct maybe_f64 predicted_gbps;   /* predicted speed of useful accesses, without the scan */
    struct maybe_f64 naive_gbps;       /* predicted speed of one pass over all bytes */
    char reason[PLANNER_REASON_BYTES]; /* the compared sizes in a sentence, and the next step if a
                                          number is absent */
};

struct placement_request {
    uint64_t bytes;             /* length of the allocation, 1..PLACEMENT_MAX_BYTES */
    uint32_t windows;           /* 0 means as few as the reach allows */
    uint64_t granularity_bytes; /* window bounds are multiples of this size, which need not be a
                                   power of two; 0 means the size of a TLB entry */
    const char *fingerprint_id; /* same as in scope_request */
    uint64_t reserve_bytes; /* bytes that all SMs also touch at random; subtracted from every window
                               in whole entries, plus one entry for alignment */
    uint64_t alignment_bytes; /* margin that is also subtracted from every window
                                 (layout_alignment_bytes) */
};

struct placement_window {
    uint64_t first_byte;
    uint64_t length_bytes;
    uint32_t sm_count;
    uint32_t group_count;
};

struct placement_answer {
    char fingerprint_id[FINGERPRINT_ID_BYTES];
    enum advice advice;
    uint32_t window_count;
    struct placement_window windows[PLACEMENT_MAX_WINDOWS];
    uint32_t sm_slots;                   /* length of window_of_sm: highest SM id + 1 */
    int16_t window_of_sm[REACH_MAX_SMS]; /* window of each SM id; -1 if there is no such SM, or if
                                            it gets no work */
    uint64_t headroom_bytes;             /* reach less the longest window and the reserve */
    double imbalance; /* work per SM in the busiest window, relative to the mean; 1 means even */
    struct maybe_f64 predicted_gbps; /* predicted speed with this placement */
    struct maybe_f64 naive_gbps;     /* predicted speed without a placement */
    char reason[PLANNER_REASON_BYTES];
};

/* Finds the scopes of a job. Returns STATUS_INVALID_ARGUMENT if `bytes` is 0 or above
 * PLACEMENT_MAX_BYTES. Returns STATUS_TOO_MANY_BYTES if `bytes` exceeds the GPU's own memory, to
 * which these answers apply. Returns STATUS_NOT_APPLICABLE if the fingerprint lacks a result; the
 * message names the result and the next step. */
enum status placement_scope(const struct fingerprint *fp, const struct scope_request *request,
                            struct scope_answer *out, struct err *err);

/* Places SMs in windows. Returns the errors of placement_scope. Also returns
 * STATUS_INVALID_ARGUMENT if the groups cannot serve the number of windows, or if the granularity
 * leaves a window empty or beyond the reach. */
enum status placement_plan(const struct fingerprint *fp, const struct placement_request *request,
                           struct placement_answer *out, struct err *err);
