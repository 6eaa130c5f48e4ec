/* read_probes.h: which READ probe next: the throughput curve. Pure; a part of campaign.c. */
#ifndef REACH_CAMPAIGN_READ_PROBES_H
#define REACH_CAMPAIGN_READ_PROBES_H

#include "analysis/sharing/window_level.h"
#include "campaign/campaign.h"

/* All READ probes of the curve that are missing: naive over every region, and beyond the reach by
 * group and, as the control that must show no gain, by SM. None where the memory behind the range
 * is too small for throughput to mean anything. */
void read_probes_next(const struct observation_set *set, const struct structure *s,
                      struct campaign_step *out);

/* ---- shared with rate_probes.c ---- */

enum { READ_PROBES_MAX_REGIONS = 30 };

/* Ascending, without doubles; the last is the largest that can be probed. */
struct read_regions {
    uint32_t count;
    uint64_t bytes[READ_PROBES_MAX_REGIONS];
};

/* Those of the curve. */
void read_probes_regions(const struct observation_set *set, const struct structure *s,
                         struct read_regions *out);
/* A READ of so many windows, with no points yet and all SMs idle. */
struct probe_spec read_probes_spec(uint32_t windows);
/* The window of each SM, by id: whole groups, so that each window has about as many SMs. `out` has
 * REACH_MAX_SMS slots; those of SMs without a group are not written. */
void read_probes_partition_groups(const struct sm_partition *partition, uint32_t windows,
                                  uint16_t *out);
/* Appends the spec, unless it has no points, there is no room or it has been answered. */
void read_probes_add(const struct observation_set *set, const struct probe_spec *spec,
                     struct campaign_step *out);

#endif
