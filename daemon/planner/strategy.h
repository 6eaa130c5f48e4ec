/* strategy.h: the planner. What a job says of itself in; every way to do it, ranked, out. Pure: no
 * I/O, no allocation, no hidden state; any thread. libreach links it too. Some microseconds where
 * the caller hands the fingerprint's id in (as in placement.h).
 *
 *   naive        one pass, any SM anywhere
 *   scopes       one pass for each TLB scope (Karnagel 2017, section 5)
 *   windows      groups in windows; each SM draws work of its own window (Walker 2024, section 2.4)
 *   filtered     groups in windows; the SMs of each look at all the input and keep what is theirs
 *   partitioned  the input is dealt to the windows first (read, written, read again), then windows
 *
 * Each is priced by the four things that can be the narrowest: looking at positions, the input,
 * memory, translation. docs/planner.md has the formulas, what is measured and what is assumed.
 */
#ifndef REACH_PLANNER_STRATEGY_H
#define REACH_PLANNER_STRATEGY_H

#include "planner/placement.h"

enum strategy {
    STRATEGY_NAIVE = 0,
    STRATEGY_SCOPES,
    STRATEGY_WINDOWS,
    STRATEGY_FILTERED_WINDOWS,
    STRATEGY_PARTITIONED_WINDOWS,
    STRATEGY_COUNT
};
/* "naive", "scopes", "windows", "filtered-windows", "partitioned-windows" */
const char *strategy_name(enum strategy s);

/* What is busy all the time while the others wait. */
enum bound { BOUND_UNKNOWN = 0, BOUND_MEMORY, BOUND_TRANSLATION, BOUND_INPUT, BOUND_SCAN };
const char *bound_name(enum bound b); /* "unknown", "memory", "translation", ... */

/* What the price of an access rests on. */
enum basis {
    BASIS_NONE = 0, /* nothing is measured that would support a number */
    BASIS_MEASURED, /* accesses of this kind and size */
    BASIS_BETWEEN,  /* of this kind, smaller and larger ones */
    BASIS_SCALED,   /* of this kind: larger than any measured, by the byte; or smaller, and then it
                       is the least that can be expected */
    BASIS_JOB       /* what the job measured itself, inside the reach alone */
};
const char *basis_name(enum basis b); /* "none", "measured", "between", "scaled", "job" */

/* What a job says of itself. All zero but for `bytes`: reads of 128 bytes at positions that it
 * computes, at no cost, any number of times, by SMs that can be told where to work. */
struct job_request {
    uint64_t bytes; /* 1..PLACEMENT_MAX_BYTES: touched at random */
    enum access access;
    uint32_t element_bytes;     /* of one access; 0: 128. At most STRATEGY_MAX_TRANSACTION */
    uint32_t transaction_bytes; /* what memory moves for it; 0: the element, rounded up to 32 */
    uint64_t reserve_bytes;     /* touched at random besides, by all SMs: comes off every window and
                                   every scope, in whole TLB entries and one for its alignment */
    uint64_t accesses;          /* in all; 0: not said, and extra bytes are told by access alone */
    bool no_sm_binding;         /* work cannot be bound to SMs */
    bool single_pass;           /* the input cannot be read again */
    double input_bytes;         /* of input for one access; 0: positions are computed, not read */
    double input_gbps;          /* of one reading of it over a link, beside all else; what is needed
                                   again is kept in this GPU's memory, chunk by chunk. 0: it lies
                                   there as a whole */
    double output_bytes;        /* of output for one access that several may add to: each pass or
                                   window but one reads and writes it once more; 0: none */
    double partition_bytes; /* that a partition writes for one access; 0: input_bytes, or 8 where
                          positions are computed */
    double scan_gps; /* 10^9 positions a second that all SMs together can look at and skip; 0: not
                        said, taken as free */
    double in_reach_gbps; /* what this very job reaches inside the reach, looking and one reading of
                           its input included; 0: what the fingerprint says of such accesses */
    uint32_t windows;     /* 0: as few as the reach allows */
    uint64_t granularity_bytes; /* bounds of windows are multiples; 0: the TLB entry */
    const char *fingerprint_id; /* of the fingerprint, where the caller has it; NULL: worked out */
};

/* The parameters of a job request by the names that the API gives them, but for bytes, access and
 * windows: for code that reads, checks or writes them one after the other. */
enum job_field_kind {
    JOB_FIELD_BYTES,        /* uint64_t, a size */
    JOB_FIELD_ACCESS_BYTES, /* uint32_t, a size of one access */
    JOB_FIELD_COUNTER,      /* uint64_t */
    JOB_FIELD_FLAG,         /* bool */
    JOB_FIELD_REAL          /* double, from 0 to `most` */
};
struct job_field {
    const char *name;
    enum job_field_kind kind;
    size_t offset; /* in struct job_request */
    double most;
};
enum { JOB_FIELD_COUNT = 13 };
extern const struct job_field job_fields[JOB_FIELD_COUNT];

enum { STRATEGY_MAX_TRANSACTION = 1 << 20, STRATEGY_WHY_BYTES = 320 };

/* Most that input_, output_ and partition_bytes may say, and the rates (10^6 GB/s): more is absurd.
 */
#define STRATEGY_MAX_INPUT_BYTES 1048576.0
#define STRATEGY_MAX_RATE        1000000.0

/* One way to do the job. Numbers of what is not possible are 0 or unknown. */
struct strategy_option {
    enum strategy strategy;
    bool possible;         /* if not, `why` says why not */
    struct maybe_f64 gbps; /* predicted: transaction bytes of useful accesses over the whole time */
    struct maybe_f64 times_naive;       /* gbps over that of naive */
    uint64_t passes;                    /* over all the input; 1 but for scopes */
    uint32_t windows;                   /* 0: none */
    uint64_t scope_bytes;               /* of each pass but perhaps the last; 0: none */
    double extra_bytes;                 /* moved beyond what naive moves, for one access */
    struct maybe_f64 extra_bytes_total; /* unknown where the accesses were not said */
    enum bound bound;                   /* of the passes or windows as they mostly are */
    char why[STRATEGY_WHY_BYTES];       /* one sentence for a person */
};

struct strategy_answer {
    char fingerprint_id[FINGERPRINT_ID_BYTES];
    uint32_t element_bytes; /* as taken where the request left them out */
    uint32_t transaction_bytes;
    enum basis basis;               /* of the prices of accesses */
    struct maybe_f64 in_reach_gbps; /* such accesses inside the reach, nothing else in the way */
    /* Best first: by predicted throughput, those within STRATEGY_WORTH of one another by
     * simplicity (naive, windows, filtered, scopes, partitioned); what is not possible last. Where
     * nobody measured what naive costs, it is taken for as fast as it can be, but for windows:
     * they cost nothing and stand before it. options[0] is always possible. */
    struct strategy_option options[STRATEGY_COUNT];
    /* What scopes need; 0 and 0 where they are not possible. */
    uint64_t scope_bytes;
    uint64_t passes;
    /* What windows, filtered and partitioned need; there wherever one of them is possible. */
    bool has_placement;
    struct placement_answer placement;
    char reason[STRATEGY_WHY_BYTES + 160]; /* of the first: what was compared with what */
};

/* A gain below this is no gain: predictions are no better. */
#define STRATEGY_WORTH 0.03

/* The sizes that a request means: what is left out (0) filled in. STATUS_INVALID_ARGUMENT where one
 * is absurd. */
enum status strategy_sizes(uint32_t element_bytes, uint32_t transaction_bytes,
                           uint32_t *out_element, uint32_t *out_transaction, struct err *err);

/* Errors: STATUS_INVALID_ARGUMENT (a number that makes no sense, windows or a granularity that the
 * groups cannot serve; the sentence names the parameter), STATUS_NOT_APPLICABLE (the fingerprint
 * knows too little; the sentence says what is missing and how to get it). `*out` is then not to be
 * read. */
enum status strategy_plan(const struct fingerprint *fp, const struct job_request *job,
                          struct strategy_answer *out, struct err *err);

#endif
