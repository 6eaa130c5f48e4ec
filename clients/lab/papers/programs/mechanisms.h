/* mechanisms.h: the mechanisms of published papers that run recorded programs. A mechanism is a
 * simulated machine and the machine that it is compared with. The functions are thread-safe. */
#pragma once

#include "base/status.h"
#include "clients/lab/trace/trace.h"

struct mechanism {
    const char *name;    /* argument of `run` */
    const char *against; /* name of the machine that it is compared with, or NULL */
    const char *paper;   /* what the paper reports for its own programs, in time */
    uint32_t machine;    /* enum pichai_machine, or MECHANISM_MOSAIC and enum mosaic_design */
    double occupancy;    /* Mosaic: share of each frame that foreign data hold (frames_fragment) */
    bool no_compaction;  /* Mosaic: fragmented frames stay fragmented */
};
#define MECHANISM_MOSAIC 1000u
const struct mechanism *mechanisms(uint32_t *out_count);

/* Returns the number of a mechanism, or UINT32_MAX. */
uint32_t mechanism_find(const char *name);

struct mechanism_result {
    uint64_t cycles;
    uint64_t instructions; /* warp instructions */
    uint64_t lookups;      /* first lookups of pages in the TLBs of the cores */
    uint64_t misses;       /* Pichai: number of `lookups` that missed; Mosaic: walks */
};

/* Runs all records of the trace. `gap` is the number of instructions before each access. */
enum status mechanism_run(uint32_t which, const struct trace *trace, uint32_t gap,
                          struct mechanism_result *out, struct err *err);
