/* diff.h: compares two fingerprints. They are equal, changed in ways that can be described, or from
 * other hardware. The functions are pure. The result does not depend on the order of the
 * fingerprints.
 *
 * Other hardware has another UUID, serial number or origin. Other SM groups under the same UUID are
 * other hardware too, because the die determines which SMs share a TLB. A number that only one side
 * has is no difference, because a quick measurement finds fewer numbers. Noise between two
 * measurements of one quiet chip is no difference: times, notes, a few cycles of a penalty, a few
 * percent of a throughput.
 */
#pragma once

#include "fingerprint/fingerprint.h"

enum fingerprint_class { FINGERPRINT_SAME = 0, FINGERPRINT_CHANGED, FINGERPRINT_OTHER_HARDWARE };
/* "same", "changed", "other-hardware". */
const char *fingerprint_class_name(enum fingerprint_class c);

enum { FINGERPRINT_MAX_DIFFERENCES = 40, FINGERPRINT_DIFFERENCE_BYTES = 160 };

struct fingerprint_diff {
    enum fingerprint_class result; /* the most severe class of all differences */
    uint32_t count;                /* at most FINGERPRINT_MAX_DIFFERENCES; more are dropped */
    char sentences[FINGERPRINT_MAX_DIFFERENCES][FINGERPRINT_DIFFERENCE_BYTES];
};

/* Compares two fingerprints, which must have passed fingerprint_check. */
void fingerprint_compare(const struct fingerprint *a, const struct fingerprint *b,
                         struct fingerprint_diff *out);

/* Returns whether two partitions agree on the SMs whose group is known in both. If they disagree,
 * SMs `*first` and `*second` are in one group in only one partition. */
bool sm_partitions_agree(const struct sm_partition *a, const struct sm_partition *b,
                         uint32_t *first, uint32_t *second);
