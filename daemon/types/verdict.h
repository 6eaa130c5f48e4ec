/* verdict.h: the verdict on whether other work disturbed a measurement. It is a flat value that
 * travels with an observation, and with the conditions of a fingerprint. */
#pragma once

#include <stdbool.h>

enum verdict {
    VERDICT_CLEAN = 0, /* a zeroed struct is clean */
    VERDICT_DISTURBED, /* something else used the GPU, so the probe is repeated */
    VERDICT_UNUSABLE   /* the values have no information: a fault of the device, or no signal */
};
/* Returns "clean", "disturbed" or "unusable". */
const char *verdict_name(enum verdict v);
/* Returns false if no enumerator has the name; `*out` is then unchanged. */
bool verdict_from_name(const char *name, enum verdict *out);

enum { VERDICT_MESSAGE_BYTES = 160 };

/* A verdict and the reason for it. */
struct assessment {
    enum verdict verdict;
    char message[VERDICT_MESSAGE_BYTES]; /* reason of the verdict; "" if the verdict is clean */
};
