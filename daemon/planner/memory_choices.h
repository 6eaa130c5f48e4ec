/* memory_choices.h: every choice to allocate memory and to access it at random, ranked:
 * the kind of memory, and any SM anywhere (naive), passes over scopes, or windows by group. Pure;
 * no allocation; any thread.
 *
 * Choices in device memory are those of strategy_plan, in its order. Those in other kinds are
 * interpolated from the regions that were probed (docs/planner.md, "Memory"); larger regions have
 * no number.
 */
#ifndef REACH_PLANNER_MEMORY_CHOICES_H
#define REACH_PLANNER_MEMORY_CHOICES_H

#include "planner/strategy.h"

/* What `gbps` rests on. */
enum choice_basis {
    CHOICE_NOT_MEASURED = 0, /* no number: beyond what was probed, or not measured at all */
    CHOICE_MEASURED,         /* such accesses over this size, or within the reach of the device */
    CHOICE_BETWEEN,          /* smaller and larger regions were probed, or accesses measured */
    CHOICE_SCALED,           /* from other accesses: BASIS_SCALED, or beyond the reach from reads */
    CHOICE_AT_LEAST,         /* no number: all that was probed is reached, and this is more */
    CHOICE_SIMULATED         /* as CHOICE_MEASURED, of a simulated GPU */
};
const char *choice_basis_name(enum choice_basis b); /* "not-measured", "measured", "between", .. */

enum { MEMORY_WHY_BYTES = STRATEGY_WHY_BYTES + 128 };

struct memory_choice {
    enum memory_kind kind;
    const char *peer_uuid;           /* of MEMORY_PEER, borrowed from the fingerprint; "": none */
    const char *allocate;            /* how, in a few words; static */
    struct maybe_u64 capacity_bytes; /* the most that one allocation of this kind can have */
    enum strategy strategy;          /* naive, scopes (device memory only) or windows */
    struct maybe_f64 gbps;           /* predicted: transaction bytes of useful accesses */
    enum choice_basis basis;
    struct maybe_u64 probed_bytes; /* largest region probed so; device: not applicable */
    struct maybe_f64 probed_gbps;  /* such accesses there */
    struct maybe_u32 sms;          /* enough to fill the link, at least one of each window */
    uint64_t passes;               /* over all accesses; 1 but for scopes */
    uint64_t scope_bytes;          /* of each pass; 0: none */
    uint32_t windows;              /* 0: none */
    uint64_t window_bytes;         /* of the longest; of other kinds than the device's, the mean */
    double rank_gbps;              /* what it is ranked by */
    uint32_t doubt;                /* whether the bytes fit; 0: they do */
    char why[MEMORY_WHY_BYTES];    /* one sentence for a person */
};

/* A kind of memory that this location includes and that is not among the choices. */
struct memory_left_out {
    enum memory_kind kind;
    const char *peer_uuid; /* as in memory_choice */
    char why[200];
};

enum {
    MEMORY_MAX_CHOICES = STRATEGY_WINDOWS + 1 + 2 * FINGERPRINT_MAX_MEMORY,
    MEMORY_MAX_LEFT_OUT = 1 + FINGERPRINT_MAX_MEMORY
};

struct memory_answer {
    char fingerprint_id[FINGERPRINT_ID_BYTES];
    uint32_t element_bytes; /* defaults filled in */
    uint32_t transaction_bytes;
    /* No choice has a known capacity below the bytes. Those that may be too small come last, peers
     * behind all others. Best first: by gbps or, if there is none, by half of probed_gbps, so that
     * a choice that was measured comes first unless another promises twice as much. Those within
     * STRATEGY_WORTH of one another: measured before not, naive before windows before scopes,
     * common kinds before others. At least one. */
    uint32_t choice_count;
    struct memory_choice choices[MEMORY_MAX_CHOICES];
    uint32_t left_out_count;
    struct memory_left_out left_out[MEMORY_MAX_LEFT_OUT];
    char reason[MEMORY_WHY_BYTES + 160]; /* of the first; what to do about those without a number */
};

/* Errors: STATUS_INVALID_ARGUMENT (a number out of range; names the parameter),
 * STATUS_TOO_MANY_BYTES (the location has less, as far as the fingerprint knows),
 * STATUS_NOT_APPLICABLE (the fingerprint has no choice). `*out` is then not to be read. */
enum status memory_choices_rank(const struct fingerprint *fp, const struct memory_request *request,
                                struct memory_answer *out, struct err *err);

#endif
