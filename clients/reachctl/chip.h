/* chip.h: the structure of a chip for `reachctl map`: the SM groups of a fingerprint, the window of
 * each over the whole memory, and the SMs that are disabled. Pure. */
#ifndef REACHCTL_CHIP_H
#define REACHCTL_CHIP_H

#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "planner/placement.h"

#include <stdbool.h>

enum { CHIP_NO_WINDOW = -1 };

struct chip {
    struct fingerprint fp;
    char id[FINGERPRINT_ID_BYTES]; /* of fp */
    uint64_t job_bytes;            /* that the windows are for; 0: all of the GPU's memory */
    /* The rest is derived from them: */
    char map[FINGERPRINT_MAP_HASH_BYTES]; /* "": no groups are known */
    uint32_t group_count;
    uint64_t bytes; /* job_bytes, or all */
    /* The windows over them. If they cannot be planned, `why` has the reason. */
    bool planned;
    struct placement_answer plan;
    struct err why;
    int window_of_group[REACH_MAX_GROUPS]; /* CHIP_NO_WINDOW: none */
};

/* Fills in everything except fp, id and job_bytes. */
void chip_derive(struct chip *chip);

/* Writes the SMs of one group in ascending order to out[REACH_MAX_SMS]; returns their number. */
uint32_t chip_group_sms(const struct chip *chip, uint32_t group, uint16_t *out);
/* Likewise the groups of one window, or those without one (CHIP_NO_WINDOW), to
 * out[REACH_MAX_GROUPS]. */
uint32_t chip_window_groups(const struct chip *chip, int window, uint16_t *out);
/* The number of SMs of a full group that this one lacks; 0 if the size of a full group is not
 * known. */
uint32_t chip_group_lacks(const struct chip *chip, uint32_t group);

/* "0-1,48-49,128": numbers in ascending order as ranges, cut if they do not fit. Returns `out`. */
char *chip_format_list(const uint16_t *numbers, uint32_t count, char *out, size_t out_size);

#endif
