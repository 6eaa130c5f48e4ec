/* probes.h: chooses the next probes of each kind. Pure; parts of campaign.c. */
#ifndef REACH_CAMPAIGN_PROBES_H
#define REACH_CAMPAIGN_PROBES_H

#include "analysis/sharing/window_level.h"
#include "campaign/campaign_step.h"

/* ---- READ: the throughput curve, and random accesses of other kinds (read_probes.c) ---- */

/* Adds all missing READ probes of the curve: naive over every region, and beyond the reach by group
 * and, as the control that must show no gain, by SM. There are none if the memory behind the range
 * is too small to measure throughput. */
void read_probes_next(const struct observation_set *set, const struct structure *s,
                      struct campaign_step *out);

/* Adds all missing READ probes of each other kind (analysis/throughput/throughput.h). Naive reads
 * cover one region within the reach of a group and at most five beyond it; the largest region is
 * also read by group. There are none if the curve has none. */
void read_probes_rates(const struct observation_set *set, const struct structure *s,
                       struct campaign_step *out);

/* The window of each SM, by id: whole groups, so that each window has about the same number of SMs.
 * SMs without a group are not written. */
void read_probes_by_group(const struct sm_partition *partition, uint32_t windows, uint16_t *out);
/* The control: windows along the SMs in order of their groups. */
void read_probes_by_sm(const struct sm_partition *partition, uint32_t windows, uint16_t *out);

/* ---- kinds of memory (memory_probes.c) ---- */

/* Adds the next probes of the first kind of memory that lacks some. Returns false if no probe is
 * missing, if the time for them is spent, or if the source has no host memory to spare. */
bool memory_probes_next(const struct observation_set *set, const struct structure *s,
                        enum depth depth, struct campaign_step *out);

/* ---- which SMs share a level (sharing_probes.c) ---- */

/* Adds the next round or pair rows of the first level whose sharing is not known. There are none if
 * all are known, or if neither probe fits a level. Returns STATUS_DISTURBED if a level contradicts
 * itself, or if its groups do not close after one round for each SM. */
enum status sharing_probes_next(const struct observation_set *set, const struct structure *s,
                                double share, struct campaign_step *out, struct err *err);

/* Adds the next rows of the full pair matrix of the window level. There are none if all are
 * present. */
void sharing_probes_matrix(const struct observation_set *set, const struct structure *s,
                           double from_progress, struct campaign_step *out);

#endif
