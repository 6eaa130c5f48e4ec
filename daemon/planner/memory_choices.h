/* memory_choices.h: every way to allocate memory and to access it at random, ranked. A choice is a
 * kind of memory and a strategy: any SM anywhere (naive), passes over scopes, or windows by group.
 * The functions are pure, allocate nothing, and may be called on any thread.
 *
 * Choices in device memory are those of strategy_plan, in its order. Those in other kinds are
 * interpolated from the regions that were probed (docs/planner.md, "Memory"); larger regions have
 * no number.
 */
#ifndef REACH_PLANNER_MEMORY_CHOICES_H
#define REACH_PLANNER_MEMORY_CHOICES_H

#include "planner/strategy.h"

/* The basis of `gbps`. */
enum choice_basis {
    CHOICE_NOT_MEASURED = 0, /* no number: beyond the probed range, or not measured at all */
    CHOICE_MEASURED,         /* measured accesses of this size, or within the reach of the device */
    CHOICE_BETWEEN,          /* smaller and larger regions were probed, or accesses measured */
    CHOICE_SCALED,   /* computed from other accesses: BASIS_SCALED, or reads beyond the reach */
    CHOICE_AT_LEAST, /* no number: all probed memory is reached, and this is more */
    CHOICE_SIMULATED /* like CHOICE_MEASURED, for a simulated GPU */
};
const char *choice_basis_name(enum choice_basis b); /* "not-measured", "measured", "between", .. */

enum { MEMORY_WHY_BYTES = STRATEGY_WHY_BYTES + 128 };

struct memory_choice {
    enum memory_kind kind;
    const char *peer_uuid;           /* MEMORY_PEER: borrowed from the fingerprint; otherwise "" */
    const char *allocate;            /* the way to allocate it, in a few words; static */
    struct maybe_u64 capacity_bytes; /* the most that one allocation of this kind can have */
    enum strategy strategy;          /* naive, scopes (device memory only) or windows */
    struct maybe_f64 gbps;           /* predicted transaction bytes of useful accesses */
    enum choice_basis basis;
    struct maybe_u64 probed_bytes; /* largest region probed in this way */
    struct maybe_f64 probed_gbps;  /* speed of such accesses there */
    struct maybe_u32 sms;          /* enough SMs to fill the link, at least one of each window */
    uint64_t passes;               /* passes over all accesses; 1 except for scopes */
    uint64_t scope_bytes;          /* bytes of each pass; 0 means no scopes */
    uint32_t windows;              /* 0 means none */
    uint64_t window_bytes;         /* longest window; for other kinds than the device's, the mean */
    double rank_gbps;              /* the number that ranks the choice */
    uint32_t doubt;                /* how uncertain it is that the bytes fit; 0 if they fit */
    char why[MEMORY_WHY_BYTES];    /* explanation in one sentence */
};

/* A kind of memory that this location includes and that is not among the choices. */
struct memory_left_out {
    enum memory_kind kind;
    const char *peer_uuid; /* same as in memory_choice */
    char why[200];
};

enum {
    MEMORY_MAX_CHOICES = STRATEGY_WINDOWS + 1 + 2 * FINGERPRINT_MAX_MEMORY,
    MEMORY_MAX_LEFT_OUT = 1 + FINGERPRINT_MAX_MEMORY
};

struct memory_answer {
    char fingerprint_id[FINGERPRINT_ID_BYTES];
    uint32_t element_bytes; /* request with defaults filled in */
    uint32_t transaction_bytes;
    /* The choices, best first; there is at least one. No choice has a known capacity below the
     * bytes. Those that may be too small come last, peers behind all others. The order is by gbps
     * or, if it is unknown, by half of probed_gbps, so a measured choice comes first unless another
     * promises twice its speed. Choices within STRATEGY_WORTH of one another are ordered further:
     * measured before unmeasured, naive before windows before scopes, common kinds before
     * others. */
    uint32_t choice_count;
    struct memory_choice choices[MEMORY_MAX_CHOICES];
    uint32_t left_out_count;
    struct memory_left_out left_out[MEMORY_MAX_LEFT_OUT];
    char reason[MEMORY_WHY_BYTES +
                160]; /* reason for the first choice, and steps for choices without a number */
};

/* Errors: STATUS_INVALID_ARGUMENT if a number is out of range, with the parameter in the message;
 * STATUS_TOO_MANY_BYTES if the location has less memory, as far as known; STATUS_NOT_APPLICABLE if
 * the fingerprint has no choice. After an error `*out` is not valid. */
enum status memory_choices_rank(const struct fingerprint *fp, const struct memory_request *request,
                                struct memory_answer *out, struct err *err);

#endif
