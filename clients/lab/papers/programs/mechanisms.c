/* mechanisms.c: see mechanisms.h. */
#include "clients/lab/papers/programs/mechanisms.h"

#include "clients/lab/papers/mosaic/mosaic_time.h"
#include "clients/lab/papers/pichai/pichai_machines.h"

#include <string.h>

#define MOSAIC(design) (MECHANISM_MOSAIC + (uint32_t)(design))
static const struct mechanism table[] = {
    {"no-tlb", NULL, "", .machine = NO_TLB},
    {"naive", "no-tlb", "-20 to -50 %", .machine = NAIVE_128_3},
    {"8-walkers", "augmented", "-10 %", .machine = WALKERS_8},
    {"augmented", "no-tlb", "0 to -10 %", .machine = AUGMENTED},
    {"ccws", "no-tlb", "+20 % or more", .machine = CCWS},
    {"ccws-augmented", "augmented", "+5 to +10 %", .machine = CCWS_AUGMENTED},
    {"ta-ccws", "augmented", "above CCWS", .machine = TA_CCWS_4},
    {"tcws", "augmented", "above TA-CCWS", .machine = TCWS},
    {"tcws-lru", "augmented", "above TCWS", .machine = DEPTH_1248},
    {"tbc", "no-tlb", "no number", .machine = TBC},
    {"tbc-augmented", "tbc", "-20 %", .machine = TBC_AUGMENTED},
    {"tbc-aware", "tbc", "-3 to -12 %", .machine = AWARE_3},
    {"ideal", NULL, "", .machine = MOSAIC(MOSAIC_IDEAL)},
    {"gpu-mmu", "ideal", "-48.1 %", .machine = MOSAIC(MOSAIC_BASE)},
    {"large-pages", "ideal", "within 2 %", .machine = MOSAIC(MOSAIC_LARGE)},
    {"mosaic", "gpu-mmu", "+55.5 %", .machine = MOSAIC(MOSAIC_MOSAIC)},
    {"mosaic-fragmented", "mosaic", "no number", .machine = MOSAIC(MOSAIC_MOSAIC), .occupancy = 0.1,
     .no_compaction = true},
    {"mosaic-cac", "mosaic-fragmented", "gains", .machine = MOSAIC(MOSAIC_MOSAIC),
     .occupancy = 0.1},
};
enum { COUNT = sizeof table / sizeof table[0] };

const struct mechanism *mechanisms(uint32_t *out_count)
{
    *out_count = COUNT;
    return table;
}

uint32_t mechanism_find(const char *name)
{
    for (uint32_t i = 0; i < COUNT; i++) {
        if (strcmp(table[i].name, name) == 0)
            return i;
    }
    return UINT32_MAX;
}

/* A core has only whole blocks, so it may have fewer warps than the core of the paper. */
static enum status run_pichai(const struct mechanism *m, const struct trace *trace, uint32_t gap,
                              struct mechanism_result *out, struct err *err)
{
    struct lab_machine machine;
    struct lab_job job;
    struct lab_result r;
    enum status s = lab_job_set(trace, gap, &job, err);
    if (s != STATUS_OK)
        return s;
    pichai_machine((enum pichai_machine)m->machine, &machine);
    machine.warps -= machine.warps % job.block_warps;
    s = lab_engine_run(&machine, &job, &r, err);
    if (s == STATUS_OK)
        *out = (struct mechanism_result){.cycles = r.cycles,
                                         .instructions = r.all.instructions,
                                         .lookups = r.all.pages,
                                         .misses = r.all.page_misses};
    return s;
}

/* Time does not contain the copies of compaction. */
static enum status run_mosaic(const struct mechanism *m, const struct trace *trace, uint32_t gap,
                              struct mechanism_result *out, struct err *err)
{
    const struct mosaic_run run = {.trace = trace,
                                   .design = (enum mosaic_design)(m->machine - MECHANISM_MOSAIC),
                                   .gap = gap,
                                   .occupancy = m->occupancy,
                                   .compact = !m->no_compaction};
    struct mosaic_result r;
    const enum status s = mosaic_time_run(&run, &r, err);
    if (s == STATUS_OK)
        *out = (struct mechanism_result){.cycles = r.cycles,
                                         .instructions = r.instructions,
                                         .lookups = r.mmu.l1_lookups,
                                         .misses = r.mmu.l2_misses};
    return s;
}

enum status mechanism_run(uint32_t which, const struct trace *trace, uint32_t gap,
                          struct mechanism_result *out, struct err *err)
{
    const struct mechanism *m = &table[which];
    return (m->machine < MECHANISM_MOSAIC ? run_pichai : run_mosaic)(m, trace, gap, out, err);
}
