/* placement.h: the two basic answers of the planner. Pure; any thread. libreach links this too.
 * Computing the id of a fingerprint takes some 200 us and memory, the rest a few us and none: a
 * caller that answers often passes the id.
 *
 *   scope      how many bytes may one pass touch at random before translation sets the speed?
 *              (Karnagel 2017, section 5: passes over TLB scopes)
 *   placement  which SM should work in which window, so that all of the memory is reached at full
 *              speed? (Walker 2024, section 2.4: groups in windows)
 *
 * Windows are balanced by SM count (a window is as long as its SMs' share), or by what the groups
 * read if that was measured and differs from their SMs' share beyond noise; aligned to the TLB
 * entry (or to the requested granularity, if that is coarser), and no longer than the reach less
 * one entry, so that they fit whatever the alignment of the job's base address.
 */
#ifndef REACH_PLANNER_PLACEMENT_H
#define REACH_PLANNER_PLACEMENT_H

#include "types/access.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "planner/layout.h"

enum { PLACEMENT_MAX_WINDOWS = 256, PLANNER_REASON_BYTES = 480 };

/* The most bytes of a request: 2^50 (1 PiB). More is STATUS_INVALID_ARGUMENT. */
#define PLACEMENT_MAX_BYTES ((uint64_t)1 << 50)

/* What the answer recommends. A closed set, so that programs can branch on it. */
enum advice {
    ADVICE_NOTHING_TO_DO = 0, /* the bytes fit the reach: any SM may work anywhere */
    ADVICE_SCOPES,            /* passes over scopes */
    ADVICE_WINDOWS,           /* groups in windows */
    ADVICE_NO_LIMIT_SEEN,     /* none that costs speed, up to the range probed */
    ADVICE_NOT_ENOUGH_GROUPS  /* windows would need more groups than there are: use scopes */
};
const char *advice_name(enum advice a); /* "nothing-to-do", "scopes", "windows", ... */

struct scope_request {
    /* 1..PLACEMENT_MAX_BYTES together, each touched: what the job touches at random. Row bytes of
     * 0: any byte for one allocation, SCOPE_ROW_BYTES for several. */
    struct layout layout;
    enum access access;
    const char *fingerprint_id; /* of the fingerprint, if the caller has it; NULL: computed */
};

/* Bounds of several allocations, unless the request has others: elements of a job by default. */
enum { SCOPE_ROW_BYTES = 128 };

struct scope_answer {
    char fingerprint_id[FINGERPRINT_ID_BYTES];
    enum advice advice;
    uint64_t scope_bytes; /* largest range one pass should touch; all if that fits */
    uint64_t passes;      /* ceil(bytes / scope_bytes) */
    struct layout layout; /* defaults filled in */
    uint64_t step_bytes; /* scope k begins at position k step_bytes of the layout: `passes` of them,
                            as equal as whole TLB entries allow */
    struct maybe_f64
        predicted_gbps;          /* of useful lines; scanning the skipped ones is not included */
    struct maybe_f64 naive_gbps; /* of one pass over everything */
    char reason[PLANNER_REASON_BYTES]; /* what was compared with what; what to do if a number is
                                          absent */
};

struct placement_request {
    uint64_t bytes;             /* 1..PLACEMENT_MAX_BYTES: length of the allocation */
    uint32_t windows;           /* 0: as few as the reach allows */
    uint64_t granularity_bytes; /* window bounds are multiples of this; 0: the TLB entry. A power of
                                   two not needed */
    const char *fingerprint_id; /* as in scope_request */
    uint64_t reserve_bytes;     /* touched at random besides, by all SMs: comes off every window,
                                   in whole entries and one for its alignment */
    uint64_t alignment_bytes;   /* comes off every window besides (layout_alignment_bytes) */
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
    int16_t window_of_sm[REACH_MAX_SMS]; /* by SM id; -1: no such SM, or assign it no work */
    uint64_t headroom_bytes;             /* reach less the longest window and the reserve */
    double imbalance; /* work per SM in the busiest window over that in all; 1 is even */
    struct maybe_f64 predicted_gbps; /* predicted with this placement */
    struct maybe_f64 naive_gbps;     /* predicted without */
    char reason[PLANNER_REASON_BYTES];
};

/* Errors: STATUS_INVALID_ARGUMENT (bytes 0 or above PLACEMENT_MAX_BYTES), STATUS_TOO_MANY_BYTES
 * (more than this GPU's own memory, which is what these answers are about), STATUS_NOT_APPLICABLE
 * (the fingerprint knows too little; the message says what is missing and how to get it). */
enum status placement_scope(const struct fingerprint *fp, const struct scope_request *request,
                            struct scope_answer *out, struct err *err);

/* Errors as above; also STATUS_INVALID_ARGUMENT for a window count that the groups cannot serve or
 * a granularity that leaves a window empty or beyond the reach. */
enum status placement_plan(const struct fingerprint *fp, const struct placement_request *request,
                           struct placement_answer *out, struct err *err);

#endif
