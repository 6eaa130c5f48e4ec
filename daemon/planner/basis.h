/* basis.h: what the cost of an access rests on. Pure; any thread. */
#ifndef REACH_PLANNER_BASIS_H
#define REACH_PLANNER_BASIS_H

#include "fingerprint/fingerprint.h"

enum basis {
    BASIS_NONE = 0,  /* no measurement supports a number */
    BASIS_MEASURED,  /* accesses of this kind and size */
    BASIS_BETWEEN,   /* of this kind, smaller and larger ones */
    BASIS_SCALED,    /* of this kind: larger than any measured, by the byte; or smaller, and then it
                        is the least that can be expected */
    BASIS_JOB,       /* what the job measured itself, within the reach alone */
    BASIS_SIMULATED, /* as BASIS_MEASURED, of a simulated GPU */
    BASIS_COUNT
};
const char *basis_name(enum basis b); /* "none", "measured", "between", "scaled", .. */
/* The basis of a number of this fingerprint: nothing of a simulated GPU is measured. */
enum basis basis_of_origin(const struct fingerprint *fp, enum basis b);

#endif
