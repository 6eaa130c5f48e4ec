/* probes.h: chooses the next probes of each kind, as a part of campaign.c. The functions are
 * pure. */
#pragma once

#include "analysis/sharing/window_level.h"
#include "campaign/campaign_step.h"

/* ---- READ: the throughput curve, and random accesses of other kinds (read_probes.c) ---- */

/* Adds all missing READ probes of the curve: naive reads of every region, and reads by group and by
 * SM of regions beyond the reach. Reads by SM are the control, which must show no gain. There are
 * no probes if the memory behind the range is too small to measure throughput. */
void read_probes_next(const struct observation_set *set, const struct structure *s,
                      struct campaign_step *out);

/* Adds all missing READ probes of each other kind (analysis/throughput/throughput.h). Naive reads
 * cover one region within the reach of a group and at most five regions beyond it. The largest
 * region is also read by group. There are no probes if the curve has no probes. */
void read_probes_rates(const struct observation_set *set, const struct structure *s,
                       struct campaign_step *out);

/* Writes the window of each SM by id. A window has whole groups, and all windows have about the
 * same number of SMs. Elements of SMs without a group stay unchanged. */
void read_probes_by_group(const struct sm_partition *partition, uint32_t windows, uint16_t *out);
/* Writes the windows of the control: windows in turn for the SMs in order of their groups. */
void read_probes_by_sm(const struct sm_partition *partition, uint32_t windows, uint16_t *out);

/* ---- kinds of memory (memory_probes.c) ---- */

/* Adds the next probes of the first kind of memory that lacks probes. Returns false if no probe is
 * missing, if the time is too short, or if the source has too little host memory. */
bool memory_probes_next(const struct observation_set *set, const struct structure *s,
                        enum depth depth, struct campaign_step *out);

/* ---- which SMs share a level (sharing_probes.c) ---- */

/* Adds the next rounds or rows of pairs of the first level whose sharing is unknown. There are no
 * probes if the sharing of all levels is known, or if neither rounds nor pairs fit. Returns
 * STATUS_DISTURBED if results for a level contradict each other, or if its groups are not complete
 * after one round for each SM. */
enum status sharing_probes_next(const struct observation_set *set, const struct structure *s,
                                double share, struct campaign_step *out, struct err *err);

/* Adds the next missing rows of the full matrix of pairs of the window level. */
void sharing_probes_matrix(const struct observation_set *set, const struct structure *s,
                           double from_progress, struct campaign_step *out);
