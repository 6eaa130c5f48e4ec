/* random_reads.h: counts the misses of random reads of 128 bytes by all SMs of a simulated GPU. The
 * TLBs are filled first, so the counts are valid for a long job. The same arguments give the same
 * counts. */
#pragma once

#include "base/status.h"
#include "gpu/sim/sim_desc.h"

#include <stdint.h>

struct random_reads {
    uint64_t region_bytes;
    uint64_t frame_bytes;   /* frame of physical memory; used if scattered_share > 0 */
    double scattered_share; /* share of the frames, drawn at random, 0..1 */
    uint64_t seed;
};

/* Shares of all reads, 0..1. */
struct random_reads_misses {
    double walked;    /* reads that missed every level */
    double scattered; /* reads of scattered frames that missed every level */
};

/* Returns STATUS_NO_MEMORY if out of memory. */
enum status random_reads_count(const struct sim_desc *machine, const struct random_reads *reads,
                               struct random_reads_misses *out, struct err *err);

/* Counts the share of reads that miss every level, unless *walked is a share already. */
enum status random_reads_share(const struct sim_desc *machine, const struct random_reads *reads,
                               double *walked, struct err *err);
