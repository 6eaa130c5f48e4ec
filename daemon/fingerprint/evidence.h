/* evidence.h: the evidence of a number in a fingerprint: the method that found it, the repeats of
 * the method, and the margin from another result. Repeats and margins of each method are defined in
 * docs/methods.md.
 *
 * An unknown number has no evidence. The same applies to a number that the driver reported, or that
 * is computed from other numbers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum evidence_method {
    EVIDENCE_NONE = 0,     /* no evidence */
    EVIDENCE_ENTRY_SEARCH, /* walks with halved strides, until not all loads miss */
    EVIDENCE_ENTRY_TEST, /* latency of walks beyond saturation, less the latency of a walk that fits
                          */
    EVIDENCE_REFINE,     /* walks over footprints that differ by one page */
    EVIDENCE_ROUNDS,     /* one SM evicts entries, and all other SMs check */
    EVIDENCE_PAIRS,      /* one SM evicts entries, and another SM checks */
    EVIDENCE_ROUNDS_AND_PAIRS, /* rounds and pairs, with the same result */
    EVIDENCE_TRACES,           /* latency and page of every load of a cyclic walk */
    EVIDENCE_STRIDES,          /* walks with strides below and above the length of an entry */
    EVIDENCE_FLOOR_PLAN,       /* the smallest regular die that explains the groups */
    EVIDENCE_RANDOM_READS,     /* throughput of random reads */
    EVIDENCE_CLASSES,          /* gaps between the numbers of groups */
    EVIDENCE_GROUP_PAIRS,      /* reads of two groups at the same time, and of each group alone */
    EVIDENCE_MEAN_CURVES,      /* published mean latencies by footprint, at three strides */
    EVIDENCE_MEAN_PAIRS,       /* published mean latencies of pairs of SMs */
    EVIDENCE_RANDOM_ACCESSES,  /* throughput of random accesses of another kind */
    EVIDENCE_RUN_LENGTHS,      /* random reads over runs of physical memory of several lengths */
    EVIDENCE_WALKS,            /* timed loads that depend on one another */
    EVIDENCE_SIDES,            /* timed atomics of many SMs on the same lines */
    EVIDENCE_WORKING_SETS,     /* throughput of random reads of sets that caches may keep */
    EVIDENCE_BANKS,     /* loads of a warp from shared memory, by the distance between lanes */
    EVIDENCE_CLUSTERS,  /* clusters whose blocks report their SMs */
    EVIDENCE_IN_FLIGHT, /* throughput of random reads by warps and by loads in flight */
    EVIDENCE_SM_COUNTS, /* throughput of random reads by number of SMs */
    EVIDENCE_METHOD_COUNT
};

/* "none", "entry-search", "entry-test", .. */
const char *evidence_method_name(enum evidence_method m);
/* Returns false and leaves `*out` unchanged if no method has this name. */
bool evidence_method_from_name(const char *name, enum evidence_method *out);

struct evidence {
    enum evidence_method method;
    uint32_t repeats; /* number of repeats, at least 1; 0 with EVIDENCE_NONE */
    double margin;    /* distance from the threshold: 0 at the threshold, 1 at the largest possible
                         distance */
};

/* Makes evidence with at least one repeat. The margin is clamped to 0..1 and truncated to
 * thousandths; NaN becomes 0. */
struct evidence evidence_make(enum evidence_method method, uint64_t repeats, double margin);
/* Returns the evidence of a number that is based on both `a` and `b`: the smaller margin, the fewer
 * repeats, and the method of `a`. */
struct evidence evidence_weaker(struct evidence a, struct evidence b);
/* Returns the evidence of repeated measurements of one number. The margin is 1 less their range
 * over their median; 0 if there is only one measurement. */
struct evidence evidence_of_repeats(enum evidence_method method, const double *values,
                                    uint32_t count);

/* Returns the fault of the evidence as a part of a sentence, or NULL if the evidence is valid.
 * `known` is true if the number is known. */
const char *evidence_fault(struct evidence e, bool known);
