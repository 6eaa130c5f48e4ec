/* chip.h: the structure of a chip for `reachctl map`. It consists of the SM groups of a
 * fingerprint, the window of each over the whole memory, and the disabled SMs. The functions are
 * pure. */
#pragma once

#include "base/json_writer.h"
#include "base/status.h"
#include "fingerprint/fingerprint.h"
#include "planner/placement.h"

#include <stdbool.h>

enum { CHIP_NO_WINDOW = -1 };

struct chip {
    struct fingerprint fp;
    char id[FINGERPRINT_ID_BYTES]; /* of fp */
    uint64_t job_bytes;            /* memory that the windows cover; 0 for all memory of the GPU */
    /* chip_derive computes the rest: */
    char map[FINGERPRINT_MAP_HASH_BYTES]; /* "" if no groups are known */
    uint32_t group_count;
    uint64_t bytes; /* job_bytes, or all memory */
    /* The windows over `bytes`. If they cannot be planned, `why` has the reason. */
    bool planned;
    struct placement_answer plan;
    struct err why;
    int window_of_group[REACH_MAX_GROUPS]; /* CHIP_NO_WINDOW if a group has no window */
};

/* Fills in everything except fp, id and job_bytes. */
void chip_derive(struct chip *chip);

/* Writes the SMs of one group in ascending order to out[REACH_MAX_SMS]; returns their number. */
uint32_t chip_group_sms(const struct chip *chip, uint32_t group, uint16_t *out);
/* Writes the groups of one window, or the groups without a window (CHIP_NO_WINDOW), to
 * out[REACH_MAX_GROUPS]; returns their number. */
uint32_t chip_window_groups(const struct chip *chip, int window, uint16_t *out);
/* Returns the number of SMs that this group lacks compared with a full one; 0 if the size of a full
 * group is not known. */
uint32_t chip_group_lacks(const struct chip *chip, uint32_t group);

/* Writes numbers in ascending order as ranges, "0-1,48-49,128", truncated if they do not fit.
 * Returns `out`. */
char *chip_format_list(const uint16_t *numbers, uint32_t count, char *out, size_t out_size);
/* Writes numbers as an array. */
void chip_write_numbers(struct json_writer *t, const char *name, const uint16_t *numbers,
                        uint32_t count);
