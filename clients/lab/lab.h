/* lab.h: the parts of reach-lab, which compares the model of translation (daemon/gpu/sim) with
 * hardware that was measured. Results depend on their arguments alone: they repeat byte for byte.
 */
#ifndef REACH_CLIENTS_LAB_LAB_H
#define REACH_CLIENTS_LAB_LAB_H

#include "fingerprint/fingerprint.h"
#include "gpu/sim/sim_desc.h"

/* Exit statuses. */
enum { LAB_AS_SAID = 0, LAB_NOT_AS_SAID = 1, LAB_ERROR = 2 };

/* The chip of a fingerprint as the model sees it: its SMs, and each level whose entries are known.
 * A level of unknown sets becomes one set. STATUS_INCONCLUSIVE if the SMs or the entries of the
 * window level are not known. */
enum status lab_machine_of(const struct fingerprint *fp, struct sim_desc *out, struct err *err);

/* Random reads of 128 bytes by all SMs, counted once the levels hold what they hold for good. */
struct lab_reads {
    uint64_t region_bytes;
    uint64_t frame_bytes;   /* of physical memory; used if scattered_share > 0 */
    double scattered_share; /* of the frames, drawn at random, 0..1 */
    uint64_t seed;
};
/* Shares of the reads, 0..1. */
struct lab_misses {
    double walked;    /* missed every level */
    double scattered; /* of the reads too: walked in a scattered frame */
};
enum status lab_count_reads(const struct sim_desc *machine, const struct lab_reads *reads,
                            struct lab_misses *out, struct err *err);

/* Each prints to stdout and returns an exit status. */
int lab_check(const char *folder); /* of docs/measurements */
int lab_bench(void);
/* The targets with these names, all if there is none. */
int lab_check_pichai(char **ids, int count);
int lab_paper_pichai(const char *figure, bool json);
int lab_bench_timed(void);
/* The same for Mosaic. `whole`: sweeps over all 235 workloads. */
int lab_check_mosaic(char **ids, int count, bool whole);
int lab_paper_mosaic(const char *figure, bool json);

#endif
