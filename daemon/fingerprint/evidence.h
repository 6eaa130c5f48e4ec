/* evidence.h: the evidence of a number in a fingerprint: the method that found it, the number of
 * repeats, and the distance from another result. docs/methods.md defines the repeats and the margin
 * of each method.
 *
 * An unknown number has no evidence. A number that the driver reported or that follows from others
 * by arithmetic has none either.
 */
#ifndef REACH_FINGERPRINT_EVIDENCE_H
#define REACH_FINGERPRINT_EVIDENCE_H

#include <stdbool.h>
#include <stdint.h>

enum evidence_method {
    EVIDENCE_NONE = 0,         /* no evidence */
    EVIDENCE_ENTRY_SEARCH,     /* strides halved until not all loads miss */
    EVIDENCE_ENTRY_TEST,       /* latency beyond saturation less latency that fits */
    EVIDENCE_REFINE,           /* footprints classified page by page */
    EVIDENCE_ROUNDS,           /* one SM evicts, all others check */
    EVIDENCE_PAIRS,            /* one SM evicts, one checks */
    EVIDENCE_ROUNDS_AND_PAIRS, /* both of these, and they agree */
    EVIDENCE_TRACES,           /* every load of a cycle, with its page */
    EVIDENCE_STRIDES,          /* walks below and above an entry's length */
    EVIDENCE_FLOOR_PLAN,       /* the smallest regular die that explains the groups */
    EVIDENCE_RANDOM_READS,     /* throughput of random reads */
    EVIDENCE_CLASSES,          /* gaps between the groups' numbers */
    EVIDENCE_GROUP_PAIRS,      /* two groups reading at the same time, against each alone */
    EVIDENCE_MEAN_CURVES,      /* published means over footprints, at three strides */
    EVIDENCE_MEAN_PAIRS,       /* a published matrix of means */
    EVIDENCE_RANDOM_ACCESSES,  /* throughput of random accesses of another kind */
    EVIDENCE_RUN_LENGTHS,      /* random reads over physical runs of several lengths */
    EVIDENCE_WALKS,            /* loads one after the other, each timed */
    EVIDENCE_SIDES,            /* atomics of many SMs on the same lines, each timed */
    EVIDENCE_WORKING_SETS,     /* throughput of random reads of sets that caches may keep */
    EVIDENCE_BANKS,     /* loads of a warp from shared memory, by the distance of its lanes */
    EVIDENCE_CLUSTERS,  /* clusters of blocks that report their SM */
    EVIDENCE_IN_FLIGHT, /* random reads by warps and by loads in flight */
    EVIDENCE_SM_COUNTS, /* random reads by the number of SMs */
    EVIDENCE_METHOD_COUNT
};

/* "entry-search", "refine", ..; "none". */
const char *evidence_method_name(enum evidence_method m);
/* Returns false if no method has this name; `*out` is then unchanged. */
bool evidence_method_from_name(const char *name, enum evidence_method *out);

struct evidence {
    enum evidence_method method;
    uint32_t repeats; /* 1 or more; 0 with EVIDENCE_NONE */
    double margin;    /* 0..1: 0 at the threshold, 1 at the largest possible distance */
};

/* Makes evidence. The margin is clamped to 0..1 and truncated to thousandths (NaN becomes 0), and
 * there is at least one repeat. */
struct evidence evidence_make(enum evidence_method method, uint64_t repeats, double margin);
/* Evidence of a number that needs both: the smaller margin, the fewer repeats, the method of
 * `a`. */
struct evidence evidence_weaker(struct evidence a, struct evidence b);
/* The agreement of repeated measurements of one number: 1 less their range over their median. With
 * one repeat it is 0, because the range is unknown. */
struct evidence evidence_of_repeats(enum evidence_method method, const double *values,
                                    uint32_t count);

/* The fault of the evidence, as in "has no repeats"; NULL if there is none. `known` is true if the
 * number is known. */
const char *evidence_fault(struct evidence e, bool known);

#endif
