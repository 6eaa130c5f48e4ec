/* whatif_answer.h: what can be asked about a traced job, and the answer. */
#ifndef REACH_CLIENTS_LAB_WHATIF_WHATIF_ANSWER_H
#define REACH_CLIENTS_LAB_WHATIF_WHATIF_ANSWER_H

#include "clients/lab/trace/rlt.h"
#include "planner/strategy.h"

enum whatif_question {
    WHATIF_AS_IT_IS = 0,
    WHATIF_CONTIGUITY, /* value: the share of physically contiguous frames */
    WHATIF_ENTRY,      /* value: bytes of an entry of the last level */
    WHATIF_ORDER,   /* value: accesses in a buffer that is sorted by entry before they are made */
    WHATIF_BLOCKS,  /* value: blocks on an SM at the same time */
    WHATIF_SCOPES,  /* value: passes */
    WHATIF_WINDOWS, /* value: windows */
    WHATIF_QUESTION_COUNT
};
const char *whatif_question_name(enum whatif_question q); /* "as-it-is", "contiguity", .. */

/* Numbers per access are means over all accesses of the trace. */
struct whatif_options {
    double contiguous;    /* share of the frames, 0..1; if negative, every row gets a range */
    double in_reach_gbps; /* the job's measured speed within the reach, in bytes that memory moves;
                             0 takes the fingerprint's speed of such accesses */
    double input_bytes;   /* read in order, per access; each pass and window reads them again, and
                             in_reach_gbps includes one reading */
    double output_bytes;  /* that several passes or windows add to, per access */
    uint64_t reserve_bytes;   /* touched at random by all SMs; reduces scopes and windows */
    uint64_t launch_accesses; /* accesses of one launch of the job. Scopes and windows launch more
                                 often, and each added launch costs what it costs in a plan. 0 adds
                                 nothing. in_reach_gbps includes the job's own launches */
    uint32_t sm_blocks;       /* on an SM at the same time; 0: all that their threads allow */
    bool cold;                /* count from empty TLBs instead of running the trace once before */
    uint32_t questions;       /* bit q asks question q; 0 asks all. Question 0 is always answered */
};

enum { WHATIF_MAX_ROWS = 48, WHATIF_NOTE_BYTES = 200 };

/* No row has a number if a larger share of the accesses to global memory is missing from the trace.
 * The walks of missing accesses are unknown, and strategies can differ by no more than that share.
 */
#define WHATIF_MOST_LEFT_OUT 0.03

/* Times are nanoseconds of the whole GPU per access. An access is a line of 128 bytes of a record,
 * or of the granule if that is larger. */
struct whatif_row {
    enum whatif_question question;
    double value;
    bool known;         /* if false, `note` has the reason and no number is set */
    double ns;          /* with the given share of contiguous frames, or with all contiguous */
    double ns_at_worst; /* with no contiguous frame if no share was given, otherwise equal to ns */
    double gbps;        /* that memory moves, at ns */
    double walk_share;  /* share of the accesses that missed every level */
    enum bound bound;   /* at ns: memory or translation */
    char note[WHATIF_NOTE_BYTES];
};

struct whatif_answer {
    uint64_t accesses, records;
    uint64_t bytes;               /* that the trace touches, or has allocated */
    struct rlt_left_out left_out; /* of the trace */
    bool refused;                 /* more than WHATIF_MOST_LEFT_OUT is left out: no row is known */
    double memory_ns;             /* of an access, without translation */
    double miss_ns;               /* of an access that missed every level, in contiguous memory */
    double scattered_factor; /* cost of a miss in scattered memory over miss_ns; 0: not measured */
    uint32_t row_count;      /* fastest first, then those without a number */
    struct whatif_row rows[WHATIF_MAX_ROWS];
};

#endif
