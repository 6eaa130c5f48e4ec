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
int lab_bench_timed(void);

/* Pichai 2014. `arguments` are options, and the names of targets or the number of a figure.
 * They are put in another order.
 *   --json       (figures) JSON
 *   --svg        (figures) a picture
 *   --warps N    warps of a core: 48 as in section 6.2, or 32 as in 5.2
 *   --gap N      N times as many instructions between those with memory, whose share the paper
 *                does not say
 *   --threads N  runs at the same time; 0: one for each processor
 *   --fitted     the jobs of lab_gen_fitted */
struct lab_paper_options {
    bool json, svg, fitted;
    uint32_t warps, gap_times, threads; /* 0: the usual */
};
int lab_check_pichai(int count, char **arguments);
/* The same targets with each value that the paper's text does not say set otherwise. */
int lab_check_pichai_varied(void);
int lab_paper_pichai(int count, char **arguments);

/* Mosaic 2017: the targets with these names, all if there is none; a figure. `whole`: sweeps over
 * all 235 workloads and not over a part of them. */
int lab_check_mosaic(char **ids, int count, bool whole);
int lab_paper_mosaic(const char *figure, const char *option); /* NULL, --json or --svg */

#endif
