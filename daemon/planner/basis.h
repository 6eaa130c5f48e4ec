/* basis.h: the measurements that the cost of an access is based on. The functions are pure and may
 * be called on any thread. */
#pragma once

#include "fingerprint/fingerprint.h"

enum basis {
    BASIS_NONE = 0, /* no measurement supports a number */
    BASIS_MEASURED, /* accesses of this kind and size were measured */
    BASIS_BETWEEN,  /* this kind was measured at smaller and larger sizes */
    BASIS_SCALED, /* this kind was measured only at smaller sizes, and cost is per byte; or only at
                     larger sizes, and the speed is a lower bound */
    BASIS_JOB,    /* the job itself measured its speed within the reach */
    BASIS_SIMULATED, /* like BASIS_MEASURED, for a simulated GPU */
    BASIS_COUNT
};
const char *basis_name(enum basis b); /* "none", "measured", "between", "scaled", .. */
/* Returns the basis of a number of this fingerprint: BASIS_SIMULATED instead of BASIS_MEASURED if
 * the GPU is simulated. */
enum basis basis_of_origin(const struct fingerprint *fp, enum basis b);
