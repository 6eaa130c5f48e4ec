/* chip.h: what is worth drawing of a fingerprint: which SMs go together, which window of the whole
 * memory each group would work in, and what the die lacks. For `reachctl map`, `hwloc` and `nfd`,
 * which say the same in three forms. Pure. */
#ifndef REACHCTL_CHIP_H
#define REACHCTL_CHIP_H

#include "fingerprint/fingerprint.h"
#include "planner/placement.h"

#include <stdbool.h>

enum { CHIP_NO_WINDOW = -1 };

struct chip {
    const struct fingerprint *fp; /* borrowed */
    char id[FINGERPRINT_ID_BYTES];
    char map[FINGERPRINT_MAP_HASH_BYTES]; /* "": no groups are known */
    uint32_t group_count;
    /* The windows over all of the GPU's memory; where that could not be planned, `why` says what is
     * missing, and there are none. */
    bool planned;
    struct placement_answer plan;
    struct err why;
    int window_of_group[REACH_MAX_GROUPS]; /* CHIP_NO_WINDOW: none */
};

/* Works the rest out from `fp`, which must outlive `out`. `id` is its name. */
void chip_read(const struct fingerprint *fp, const char *id, struct chip *out);

/* SMs of one group, rising; returns how many. `out` has room for REACH_MAX_SMS. */
uint32_t chip_group_sms(const struct chip *chip, uint32_t group, uint16_t *out);
/* The groups of one window, or those of none (CHIP_NO_WINDOW), rising. `out` has room for
 * REACH_MAX_GROUPS. */
uint32_t chip_window_groups(const struct chip *chip, int window, uint16_t *out);
/* How many SMs of a full group this one lacks; 0 where the size of a full group is not known. */
uint32_t chip_group_lacks(const struct chip *chip, uint32_t group);

#endif
