/* mechanisms.c: see mechanisms.h. */
#include "clients/lab/papers/programs/mechanisms.h"

#include "clients/lab/papers/pichai/pichai_machines.h"
#include "clients/lab/papers/programs/trace_work.h"

#include <string.h>

static const struct mechanism table[] = {
    {"no-tlb", NULL, "", NO_TLB},
    {"naive", "no-tlb", "-20 to -50 %", NAIVE_128_3},
    {"8-walkers", "no-tlb", "10 % below augmented", WALKERS_8},
    {"augmented", "no-tlb", "0 to -10 %", AUGMENTED},
    {"ccws", "no-tlb", "+20 % or more", CCWS},
    {"ccws-augmented", "augmented", "+5 to +10 %", CCWS_AUGMENTED},
    {"ta-ccws", "augmented", "more than CCWS", TA_CCWS_4},
    {"tcws", "augmented", "more than TA-CCWS", TCWS_8},
    {"tcws-lru", "augmented", "more than TCWS", DEPTH_1248},
    {"tbc", "no-tlb", "gains", TBC},
    {"tbc-augmented", "augmented", "less than TBC", TBC_AUGMENTED},
    {"tbc-aware", "augmented", "near TBC", AWARE_3},
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

/* The warps of a core are as many whole blocks as fit into the warps of the paper's machine. */
static enum status run_pichai(const struct mechanism *m, const struct trace *trace, uint32_t gap,
                              struct mechanism_result *out, struct err *err)
{
    const struct lab_work *of_core[LAB_MAX_CORES];
    struct lab_machine machine;
    struct trace_work work;
    struct lab_result r;
    enum status s = trace_work_set(trace, gap, &work, err);
    if (s != STATUS_OK)
        return s;
    pichai_machine((enum pichai_machine)m->machine, &machine);
    machine.warps -= machine.warps % work.work.block_warps;
    for (uint32_t i = 0; i < LAB_MAX_CORES; i++)
        of_core[i] = &work.work;
    s = lab_engine_run(&machine, of_core, (trace->block_count - 1) / machine.cores + 1, &r, err);
    if (s == STATUS_OK)
        *out = (struct mechanism_result){.cycles = r.cycles,
                                         .instructions = r.all.instructions,
                                         .lookups = r.all.pages,
                                         .misses = r.all.page_misses};
    return s;
}

enum status mechanism_run(uint32_t which, const struct trace *trace, uint32_t gap,
                          struct mechanism_result *out, struct err *err)
{
    return run_pichai(&table[which], trace, gap, out, err);
}
