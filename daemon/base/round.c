/* round.c: see round.h. */
#include "base/round.h"

#include <math.h>

double round_six_digits(double v)
{
    static const double least = 1e5;  /* of six digits before the point */
    static const double exact = 1e22; /* powers of ten have no error up to here */
    const double size = fabs(v);
    double scale = 1;

    if (!(size > 0) || !isfinite(v))
        return v;
    if (size < least) {
        while (size * scale < least && scale < exact)
            scale *= 10;
        return nearbyint(v * scale) / scale;
    }
    while (size / scale >= least * 10 && scale < exact)
        scale *= 10;
    return nearbyint(v / scale) * scale;
}
