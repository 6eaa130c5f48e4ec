/* group_reads.h: reads of each group of the window level alone, and of every pair of groups. The
 * functions are pure.
 *
 * Walker 2024, sections 2.3 and figures 4 and 5. A group alone, its other SMs idle, reads at random
 * within its reach and beyond it. Two groups read side by side, each in its own window that it
 * reaches. Both windows together are longer than one reach, so two groups that shared a TLB would
 * slow each other down. A slow pair is measured again with both windows inside one reach. If it is
 * slow there too, the two share bandwidth and not a TLB.
 *
 * The campaign that schedules the probes and the analysis that reads them share these definitions.
 */
#ifndef REACH_ANALYSIS_THROUGHPUT_GROUP_READS_H
#define REACH_ANALYSIS_THROUGHPUT_GROUP_READS_H

#include "analysis/sharing/window_level.h"
#include "fingerprint/fingerprint.h"
#include "observe/observe.h"

enum {
    GROUP_READS_MAX_PAIRS = 500, /* more are not measured */
    GROUP_READS_MAX_ASKS = 32
};

/* The next reads. */
struct group_asks {
    uint32_t total;   /* groups alone, and pairs */
    uint32_t missing; /* of these */
    uint32_t closer;  /* slow pairs, to be read once more with windows that fit together */
    uint32_t closer_missing;
    uint32_t count; /* missing probes in `specs`; there may be more */
    struct probe_spec specs[GROUP_READS_MAX_ASKS];
};

/* Finds the missing probes. There are none if groups are not known, if there is only one group, or
 * if the memory behind the range is too small to measure throughput. */
void group_reads_missing(const struct observation_set *set, const struct structure *s,
                         struct group_asks *out);

/* Fills in the reads of each group of out->topology, alone and in pairs; the partition must be
 * filled in. */
void group_reads_derive(const struct observation_set *set, const struct structure *s,
                        struct topology *out);

#endif
