/* verdict.h: whether something else had a hand in a measurement, and how one says so. A flat value
 * that travels with an observation, and with a fingerprint's conditions. */
#ifndef REACH_BASE_VERDICT_H
#define REACH_BASE_VERDICT_H

#include <stdbool.h>

enum verdict {
    VERDICT_CLEAN = 0, /* so that a zeroed struct is what nobody has complained about */
    VERDICT_DISTURBED, /* something else had a hand in it: ask again */
    VERDICT_UNUSABLE   /* says nothing at all: a fault of the device, or no signal */
};
/* "clean", "disturbed", "unusable". */
const char *verdict_name(enum verdict v);
/* False where the name is none of these; `*out` is then untouched. */
bool verdict_from_name(const char *name, enum verdict *out);

enum { VERDICT_MESSAGE_BYTES = 160 };

/* A verdict and the reason for it. */
struct assessment {
    enum verdict verdict;
    char message[VERDICT_MESSAGE_BYTES]; /* "" where clean; always terminated */
};

#endif
