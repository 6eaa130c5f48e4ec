/* whatif_answer.h: the questions about a traced job, and the answer. */
#pragma once

#include "clients/lab/trace/rlt.h"
#include "planner/strategy.h"

enum whatif_question {
    WHATIF_AS_IT_IS = 0,
    WHATIF_CONTIGUITY, /* value: share of physically contiguous frames */
    WHATIF_ENTRY,      /* value: bytes of an entry of the last level */
    WHATIF_ORDER,      /* value: accesses per buffer; each buffer is sorted by entry first */
    WHATIF_BLOCKS,     /* value: resident blocks per SM */
    WHATIF_SCOPES,     /* value: number of passes */
    WHATIF_WINDOWS,    /* value: number of windows */
    WHATIF_QUESTION_COUNT
};
const char *whatif_question_name(enum whatif_question q); /* "as-it-is", "contiguity", .. */

enum { WHATIF_SHARED_QUEUES = 16 };

/* Counts that answers for one fingerprint share, because they do not depend on the trace. They take
 * most of the time of an answer about a short trace. All members are 0 at first. One thread may use
 * the counts at a time. */
struct whatif_shared {
    char fingerprint_id[FINGERPRINT_ID_BYTES]; /* the counts are of this fingerprint */
    double curve_walks;  /* misses per random read over the largest region of the curve, or 0 */
    double beyond_walks; /* misses per random read over twice the reach, or 0 */
    uint32_t queue_count;
    struct whatif_shared_queue {
        uint64_t access_ps, ahead_ps; /* of the miss queue */
        uint64_t walks;               /* of the reads over the largest region */
    } queues[WHATIF_SHARED_QUEUES];
};

/* Numbers per access are means over all accesses of the trace. */
struct whatif_options {
    double contiguous;    /* share of the frames, 0..1; if negative, every row gets a range */
    double in_reach_gbps; /* measured speed of the job within the reach, in bytes that memory moves;
                             0 means the speed in the fingerprint */
    double input_bytes;   /* input that is read in order, per access; each pass and window reads it
                             again; in_reach_gbps includes one reading */
    double output_bytes;  /* output per access that several passes or windows add to */
    uint64_t reserve_bytes;   /* memory that all SMs access at random; reduces scopes and windows */
    uint64_t launch_accesses; /* accesses per launch of the job. Scopes and windows launch more
                                 often. An added launch costs the same as in a plan; 0 means no
                                 cost. in_reach_gbps includes the launches of the job */
    uint32_t sm_blocks;       /* maximum resident blocks per SM; 0 means no limit but threads */
    bool cold;                /* count from empty TLBs, without running the trace once first */
    uint32_t questions;       /* bit q asks question q; 0 asks all. Question 0 is always answered */
    struct whatif_shared *shared; /* read and extended; NULL if no other answer shares its counts */
};

enum { WHATIF_MAX_ROWS = 48, WHATIF_NOTE_BYTES = 200 };

/* No row has a number if a larger share of the accesses to global memory is missing from the trace.
 * The walks of missing accesses are unknown, and the difference between strategies can be as small
 * as this share. */
#define WHATIF_MOST_LEFT_OUT 0.03

/* Times are nanoseconds of the whole GPU per access. An access is a line of a record. A line has
 * 128 bytes, or the bytes of the granule if it is larger. */
struct whatif_row {
    enum whatif_question question;
    double value;
    bool known; /* if false, no number is set and `note` contains the reason */
    double ns;  /* time with the given share of contiguous frames; all are contiguous if none is
                   given */
    double ns_at_worst; /* time without contiguous frames if no share is given, otherwise equal to
                           ns */
    double gbps;        /* speed of memory at ns */
    double walk_share;  /* share of the accesses that missed every level */
    enum bound bound;   /* bound at ns: memory or translation */
    char note[WHATIF_NOTE_BYTES];
};

struct whatif_answer {
    uint64_t accesses, records;
    uint64_t bytes;               /* bytes that the trace touches or allocates */
    struct rlt_left_out left_out; /* left-out accesses of the trace */
    bool refused;            /* more than WHATIF_MOST_LEFT_OUT is left out, so no row is known */
    double memory_ns;        /* memory time of an access, without translation */
    double miss_ns;          /* cost of a miss of every level in contiguous memory */
    double scattered_factor; /* cost of a miss in scattered memory divided by miss_ns; 0 means not
                                measured */
    uint32_t row_count;      /* fastest row first, rows without a number last */
    struct whatif_row rows[WHATIF_MAX_ROWS];
};
