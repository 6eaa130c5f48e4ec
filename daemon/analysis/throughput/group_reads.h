/* group_reads.h: reads of each group of the window level alone, and of every pair of groups. The
 * functions are pure.
 *
 * The method is Walker's (2024, section 2.3, figures 4 and 5). A group alone, with all other SMs
 * idle, reads at random within its reach and beyond it. Two groups read side by side, each in its
 * own window within its reach. Both windows together are longer than one reach, so two groups that
 * shared a TLB would slow each other down. A slow pair is measured again with both windows inside
 * one reach. If it is slow there too, the two share bandwidth and not a TLB.
 *
 * The campaign that schedules the probes and the analysis that reads them share these definitions.
 */
#pragma once

#include "analysis/sharing/window_level.h"
#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

enum {
    GROUP_READS_MAX_PAIRS = 500, /* more pairs are not measured */
    GROUP_READS_MAX_ASKS = 32
};

/* The reads to make next. */
struct group_asks {
    uint32_t total;          /* number of reads of groups alone and of pairs */
    uint32_t missing;        /* number of these reads that are missing */
    uint32_t closer;         /* number of further reads of slow pairs and of uncertain groups */
    uint32_t closer_missing; /* number of closer reads that are missing */
    uint32_t count;          /* number of missing probes in `specs`; more may be missing */
    struct probe_spec specs[GROUP_READS_MAX_ASKS];
};

/* Finds the missing probes. Nothing is missing if groups are not known or there is only one.
 * Nothing is missing either if the memory behind the range is too small to measure throughput. */
void group_reads_missing(const struct observation_set *set, const struct structure *s,
                         struct group_asks *out);

/* Fills in the reads of each group of out->topology, alone and in pairs; the partition must be
 * filled in. */
void group_reads_derive(const struct observation_set *set, const struct structure *s,
                        struct topology *out);
