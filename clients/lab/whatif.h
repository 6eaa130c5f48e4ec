/* whatif.h: what a traced job costs on a measured GPU, and what would change that. The TLBs of the
 * fingerprint are simulated on the trace; what memory and a miss cost is measured and in the
 * fingerprint. A time is that of the busiest of the two, as in docs/planner.md.
 *
 * Pure, but for memory that is allocated and freed: the same fingerprint, trace and options always
 * give the same answer. Any thread, one answer each.
 */
#ifndef REACH_CLIENTS_LAB_WHATIF_H
#define REACH_CLIENTS_LAB_WHATIF_H

#include "clients/lab/trace.h"
#include "fingerprint/fingerprint.h"
#include "planner/strategy.h"

enum whatif_question {
    WHATIF_AS_IT_IS = 0,
    WHATIF_CONTIGUITY, /* value: the share of physically contiguous frames */
    WHATIF_ENTRY,      /* value: bytes of an entry of the last level */
    WHATIF_ORDER,      /* value: accesses in a buffer that is sorted by entry before it is done */
    WHATIF_BLOCKS,     /* value: blocks on an SM side by side */
    WHATIF_SCOPES,     /* value: passes */
    WHATIF_WINDOWS,    /* value: windows */
    WHATIF_QUESTION_COUNT
};
const char *whatif_question_name(enum whatif_question q); /* "as-it-is", "contiguity", .. */

struct whatif_options {
    double contiguous;    /* share of the frames, 0..1; below 0: not known, and a range is given */
    double in_reach_gbps; /* the job's own speed within the reach, in bytes that memory moves; 0:
                             what the fingerprint says of such accesses */
    double input_bytes;  /* that the job reads in order for an access: each pass and window reads it
                            again, and in_reach_gbps has one reading in it; 0: none */
    double output_bytes; /* that several passes or windows add to, for an access; 0: none */
    uint64_t
        reserve_bytes; /* touched at random besides, by all SMs: comes off scopes and windows */
    uint64_t launch_accesses; /* that the job makes in one launch: what scopes and windows launch
                                 and wait more than that costs what it costs in a plan; 0: nothing.
                                 in_reach_gbps has the job's own launches in it */
    uint32_t sm_blocks;       /* side by side on an SM; 0: as many as their threads allow */
    bool cold;                /* count from empty TLBs; else the trace is run once before */
    uint32_t questions; /* bit q: enum whatif_question q; 0: all. The first is always answered */
};

enum { WHATIF_MAX_ROWS = 48, WHATIF_NOTE_BYTES = 200 };

/* A trace that lacks a larger share of the accesses to global memory gets no predictions: the walks
 * of the missing accesses are unknown, and strategies can differ by no more than that share. */
#define WHATIF_MOST_LEFT_OUT 0.03

/* Nanoseconds of the whole GPU for each access (a line of 128 bytes, or the granule, of a record).
 */
struct whatif_row {
    enum whatif_question question;
    double value;
    bool known;         /* false: `note` says why there is no number */
    double ns;          /* with the share of contiguous frames that was told, or all of them */
    double ns_at_worst; /* with none, if no share was told; else as ns */
    double gbps;        /* that memory moves, at ns */
    double walk_share;  /* of the accesses, that missed every level */
    enum bound bound;   /* at ns: memory or translation */
    char note[WHATIF_NOTE_BYTES];
};

struct whatif_answer {
    uint64_t accesses, records;
    uint64_t bytes;               /* that the trace touches, or has allocated */
    struct rlt_left_out left_out; /* of the trace */
    bool refused;     /* more than WHATIF_MOST_LEFT_OUT is left out: no number below is known */
    double memory_ns; /* of an access, without translation */
    double miss_ns;   /* of one access that missed every level, contiguous memory */
    double scattered_factor; /* of its price in memory that is not; 0: not measured */
    uint32_t row_count;      /* the best first; then those without a number */
    struct whatif_row rows[WHATIF_MAX_ROWS];
};

/* STATUS_INCONCLUSIVE: the fingerprint lacks groups, entries, or speeds (measure again with depth
 * full); STATUS_INVALID_ARGUMENT: an option; STATUS_NO_MEMORY. */
enum status whatif_ask(const struct fingerprint *fp, const struct trace *trace,
                       const struct whatif_options *options, struct whatif_answer *out,
                       struct err *err);

#endif
