/* memory_choices.h: lists and ranks the ways to allocate memory and to access it at random. A
 * choice is a kind of memory and a strategy: any SM anywhere (naive), passes over scopes, groups in
 * windows, one launch after a sort of the accesses, or gathers by the CPU. The functions are pure,
 * allocate nothing, and may be called on any thread.
 *
 * The choices in device memory are the options of strategy_plan, in its order. Speeds of other
 * kinds are interpolated from the regions that were probed (docs/planner.md, "Memory"). The speed
 * of a larger region is unknown.
 */
#pragma once

#include "planner/strategy.h"

/* The basis of `gbps`. */
enum choice_basis {
    CHOICE_NOT_MEASURED = 0, /* the speed is unknown and was not measured */
    CHOICE_MEASURED, /* such accesses were measured over this many bytes or within the reach */
    CHOICE_BETWEEN,  /* the speed is interpolated between regions or between sizes of accesses */
    CHOICE_SCALED,   /* the speed is computed from other accesses: from accesses of another size, or
                        from reads beyond the reach */
    CHOICE_AT_LEAST, /* the speed is unknown: the request exceeds the probed memory, and all probed
                        memory is reached */
    CHOICE_EXTRAPOLATED, /* the speed is on the line through the two largest regions, both out of
                            reach */
    CHOICE_SIMULATED     /* like CHOICE_MEASURED, for a simulated GPU */
};
const char *choice_basis_name(enum choice_basis b); /* "not-measured", "measured", "between", .. */

enum { MEMORY_WHY_BYTES = STRATEGY_WHY_BYTES + 128 };

struct memory_choice {
    enum memory_kind kind;
    const char *peer_uuid; /* UUID of the peer for MEMORY_PEER, borrowed from the fingerprint;
                              otherwise "" */
    const char *allocate;  /* way to allocate this memory, in a few words; static text */
    struct maybe_u64 capacity_bytes; /* largest size of one allocation of this kind */
    enum strategy strategy;          /* naive, scopes, windows, sorted or cpu-gather */
    struct maybe_f64 gbps; /* predicted transaction bytes of useful accesses, per second */
    enum choice_basis basis;
    struct maybe_u64 probed_bytes;    /* largest region that was probed with this strategy */
    struct maybe_f64 probed_gbps;     /* speed of such accesses over the largest region */
    struct maybe_u32 sms;             /* SMs that fill the link, at least one of each window */
    struct maybe_u64 in_flight_bytes; /* bytes in flight that fill the link */
    uint64_t passes;                  /* passes over all accesses; 1 except for scopes */
    uint64_t scope_bytes;             /* bytes of each pass; 0 means no scopes */
    uint32_t windows;                 /* number of windows; 0 means no windows */
    uint64_t window_bytes; /* length of the longest window in device memory; mean length in other
                              kinds */
    double rank_gbps;      /* the speed that ranks the choice */
    uint32_t doubt;        /* degree of doubt that the bytes fit; 0 if they fit */
    char why[MEMORY_WHY_BYTES]; /* explanation in one sentence */
};

/* A requested kind of memory that is not among the choices. */
struct memory_left_out {
    enum memory_kind kind;
    const char *peer_uuid; /* same as in memory_choice */
    char why[200];
};

enum {
    MEMORY_MAX_CHOICES = STRATEGY_WINDOWS + 1 + 4 * FINGERPRINT_MAX_MEMORY,
    MEMORY_MAX_LEFT_OUT = 1 + FINGERPRINT_MAX_MEMORY
};

struct memory_answer {
    char fingerprint_id[FINGERPRINT_ID_BYTES];
    uint32_t element_bytes; /* request with defaults filled in */
    uint32_t transaction_bytes;
    /* The choices, best first. There is at least one, and no choice has a known capacity below the
     * bytes. Choices that may be too small come last, and among them peers come last. The order is
     * by `gbps`, or by half of `probed_gbps` if `gbps` is unknown. So a measured choice comes first
     * unless an unmeasured one promises twice its speed. Choices within STRATEGY_WORTH of one
     * another have this order: measured before unmeasured, naive before windows before scopes
     * before gathers by the CPU, common kinds before others. Sorted is last, because its speed
     * leaves out the sort. */
    uint32_t choice_count;
    struct memory_choice choices[MEMORY_MAX_CHOICES];
    uint32_t left_out_count;
    struct memory_left_out left_out[MEMORY_MAX_LEFT_OUT];
    char reason[MEMORY_WHY_BYTES +
                160]; /* reason for the first choice, and steps for choices without a number */
};

/* Ranks the choices. Returns STATUS_INVALID_ARGUMENT, with the parameter in the message, if a
 * number is out of range. Returns STATUS_TOO_MANY_BYTES if the location is known to have less
 * memory, and STATUS_NOT_APPLICABLE if there is no choice. After an error `*out` is not valid. */
enum status memory_choices_rank(const struct fingerprint *fp, const struct memory_request *request,
                                struct memory_answer *out, struct err *err);
